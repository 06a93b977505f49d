r"""Streams in a file of JSON lines: what `export` writes and `what-if --from` reads. docs/reference/export-format.md.

    {"line":"file", …}        what this is: format, version, whether payloads are in it, which fields were redacted
    {"line":"instance", …}    an instance, followed by its events in order
    {"line":"event", …}
    {"line":"end", …}         how many there were: a file without it is cut short

The lines of events are those of a purge's archive, which has no others; so an archive can be read, too.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Annotated, Any, Final, TypeAlias

from msgspec import Meta, Raw, Struct, json
from msgspec.structs import replace

from mainspring.analysis.export.redaction import Outgoing, Redaction
from mainspring.app.archive import event_document
from mainspring.engine.recording.stored_values import moment, time_us_of
from mainspring.engine.recording.walk import INPUTS
from mainspring.errors import OperationError
from mainspring.errors.reading import UNREADABLE
from mainspring.port.records import EventRow, InstanceRow, Ref, Status
from mainspring.sealing.seals import Seal
from mainspring.stores.sealed.files import opened_event

FORMAT: Final = "mainspring.streams"
VERSION: Final = 1

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NOTHING: Final = Raw()
_Moment = Annotated[datetime, Meta(tz=True)]
_encode = json.Encoder().encode


class StreamWriter:
    """Writes such a file."""

    def __init__(self, file: IO[bytes], redaction: Redaction) -> None:
        self._file = file
        self._redaction = redaction
        self._instances = self._events = 0

    def begin(self, now: datetime) -> None:
        """Write the first line."""
        redaction = self._redaction
        head = {"line": "file", "format": FORMAT, "version": VERSION, "written": now}
        self._line({**head, "payloads": redaction.payloads, "redacted": redaction.fields})

    def instance(self, row: InstanceRow) -> None:
        """Write the line of an instance."""
        self._instances += 1
        told = row.error is not None and self._redaction.payloads
        document: dict[str, Any] = {
            "line": "instance",
            "workflow": row.workflow,
            "instance": row.id,
            "status": row.status,
            "state": row.state,
            "version": row.version,
            "definition_version": row.definition_version,
            "began": moment(row.created_us),
            "updated": moment(row.updated_us),
            "error": self._redaction.error(row.error or "") if told else None,
        }
        self._line({name: value for name, value in document.items() if value is not None})

    def event(self, ref: Ref, row: EventRow, outgoing: Outgoing) -> None:
        """Write the line of an event."""
        self._events += 1
        row = replace(row, type=outgoing.type, body=outgoing.body, detail=outgoing.detail)
        document = {"line": "event", **event_document(ref, row)}
        if outgoing.gone is not None:
            document["gone"] = outgoing.gone
        if outgoing.redacted:
            document["redacted"] = True
        self._line(document)

    def cut(self, ref: Ref, why: str) -> None:
        """Say that the rest of an instance's events could not be read."""
        self._line({"line": "cut", "workflow": ref.workflow, "instance": ref.id, "why": why})

    def end(self) -> None:
        """Write the last line."""
        self._line({"line": "end", "instances": self._instances, "events": self._events})

    def close(self) -> None:
        """Nothing to release."""

    def _line(self, document: dict[str, Any]) -> None:
        self._file.write(_encode(document) + b"\n")


# ---- reading


class Line(Struct, frozen=True):
    """Any line of a file; `line` says which."""

    line: str = "event"
    workflow: str = ""
    instance: str = ""
    version: int = 0
    event: str = ""
    time: _Moment = _EPOCH
    type: str | None = None
    type_version: int = 1
    body: Raw = _NOTHING
    detail: Raw = _NOTHING
    kind: str | None = None
    message_id: str | None = None
    cause: int | None = None
    context: Raw = _NOTHING
    actor: str | None = None
    state: str | None = None
    attempt: int | None = None
    duration_us: int | None = None
    gone: str | None = None
    redacted: Any = None
    status: Status = "completed"
    definition_version: int = 0
    began: _Moment = _EPOCH
    updated: _Moment = _EPOCH
    error: str | None = None
    format: str = ""
    payloads: bool = True
    why: str = ""
    events: int = 0
    instances: int = 0


class Cut(Struct, frozen=True):
    """Stands for events of the instance that was read last which are not in the file, and says why.

    `inside`: the first of them may be a part of the step that was begun before.
    """

    why: str
    inside: bool = True


_JSON: Final = ("body", "detail", "context")
_SAME: Final = [name for name in EventRow.__struct_fields__ if name != "time_us"]
"""What a line says by the same name as a row."""

Item: TypeAlias = InstanceRow | EventRow | Cut

_decode = json.Decoder(Line).decode


def read_file(path: Path, seal: Seal | None = None) -> Iterator[Item]:
    """Yield what is in a file: each instance, then its events. Of an archive, instances of definition version 0.

    `seal` opens what an archive holds sealed.
    Raises an OperationError where the file is not what it should be.
    """
    try:
        with _opened(path) as file:
            yield from _items(path, file, seal)
    except (OSError, EOFError, zlib.error) as error:
        raise OperationError(
            str(path), f"cannot be read ({error})", "Name a file that `export` has written."
        ) from error


def _opened(path: Path) -> Any:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")


def _items(path: Path, file: IO[bytes], seal: Seal | None) -> Iterator[Item]:
    exported = ended = False
    last: tuple[str, str, int] = ("", "", 0)
    for number, text in enumerate(file, 1):
        try:
            line = _decode(text)
        except UNREADABLE as error:
            if exported or not last[0]:
                what = "is no line of an export or an archive"
                raise OperationError(f"{path}, line {number},", f"{what} ({error})", "Export again.") from error
            yield Cut("its archived stream is cut short")
            continue
        match line.line:
            case "file":
                _check_head(path, line)
                exported = True
            case "instance":
                last = (line.workflow, line.instance, 0)
                yield _instance(line)
            case "cut":
                yield Cut(line.why)
            case "end":
                ended = True
            case _:
                if (line.workflow, line.instance) != last[:2] or line.version <= last[2]:
                    # An archive says of an instance only what its events say; after a crash, it may say so twice.
                    yield _instance(line)
                last = (line.workflow, line.instance, line.version)
                yield from _event(line, seal)
    if exported and not ended:
        raise OperationError(str(path), "is cut short: its last line is missing", "Export again.")


def _check_head(path: Path, line: Line) -> None:
    if line.format != FORMAT or line.version != VERSION:
        found = f"{line.format or 'no format'} {line.version}"
        raise OperationError(str(path), f"has {found}; this release reads {FORMAT} {VERSION}", "Export again.")
    if not line.payloads:
        raise OperationError(str(path), "was exported without its messages", "Export with --payloads.")


def _instance(line: Line) -> InstanceRow:
    return InstanceRow(
        0,
        line.workflow,
        line.instance,
        line.version,
        line.status,
        line.state,
        line.error,
        line.definition_version,
        b'{"correlation_id":""}',
        time_us_of(line.began),
        time_us_of(line.updated),
    )


def _event(line: Line, seal: Seal | None) -> Iterator[Item]:
    inside = line.event not in INPUTS
    if line.redacted:
        yield Cut("a part of its stream was redacted", inside)
    elif line.gone is not None:
        yield Cut(f"a message of its stream is not there: {line.gone}", inside)
    values: dict[str, Any] = {name: getattr(line, name) for name in _SAME}
    values |= {name: bytes(values[name]) or None for name in _JSON}
    row = EventRow(**values, time_us=time_us_of(line.time))
    yield opened_event(Ref(line.workflow, line.instance), row, seal)
