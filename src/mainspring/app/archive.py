"""The archive of purged streams: a file of JSON lines, one event a line, durable before its stream goes."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import IO, Any

from msgspec import Raw, json

from mainspring.engine.recording.event_rows import message_id_of
from mainspring.engine.recording.stored_values import moment
from mainspring.errors import OperationError
from mainspring.port.records import EventRow, Ref
from mainspring.sealing.seals import Seal, is_secret
from mainspring.stores.sealed.files import sealed_event

_encode = json.Encoder().encode


class Archive:
    """A file that is only ever appended to. Its methods block: they are called in a thread."""

    def __init__(self, path: str | Path, seal: Seal | None = None) -> None:
        self._path = Path(path)
        # What is sealed in the database stays sealed here: with its key, it is erased in both.
        self._seal = seal if seal is not None and is_secret(seal) else None
        self._file: IO[bytes] | None = None

    def add(self, ref: Ref, rows: list[EventRow]) -> None:
        """Write events. They are not durable before `sync`."""
        if self._seal is not None:
            rows = [sealed_event(ref, row, self._seal) for row in rows]
        lines = b"".join(_line(ref, row) for row in rows)
        try:
            (self._file or self._open()).write(lines)
        except OSError as error:
            raise self._failed(error) from error

    def sync(self) -> None:
        """Return when all that was written is on the disk."""
        if self._file is None:
            return
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._failed(error) from error

    def close(self) -> None:
        """Write no more. What was not synced need not be there: its streams were not purged."""
        file, self._file = self._file, None
        if file is not None:
            with contextlib.suppress(OSError):
                file.close()

    def _open(self) -> IO[bytes]:
        file = self._file = self._path.open("ab+")
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                # A crash has cut the last line short. Its stream was not purged, and follows whole.
                file.write(b"\n")
        else:
            _sync_folder(self._path.parent)
        return file

    def _failed(self, error: OSError) -> OperationError:
        return OperationError(
            f"The archive {self._path}",
            f"cannot be written ({error.strerror or error})",
            "Nothing is purged that is not in it: make room or name another file, and purge again.",
        )


def _sync_folder(folder: Path) -> None:
    """Make a new file's name as durable as what will be in it."""
    if os.name != "posix":  # other systems cannot open a folder
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _line(ref: Ref, row: EventRow) -> bytes:
    return _encode(event_document(ref, row)) + b"\n"


def event_document(ref: Ref, row: EventRow) -> dict[str, Any]:
    """Return an event as it stands in a line of a file; what it does not have is left out.

    >>> event_document(Ref("W", "i"), EventRow(1, "Began", 0))["event"]
    'Began'
    """
    document: dict[str, Any] = {
        "workflow": ref.workflow,
        "instance": ref.id,
        "version": row.version,
        "event": row.event,
        "time": moment(row.time_us),
        "type": row.type,
        "type_version": None if row.type is None else row.type_version,
        "body": _raw(row.body),
        "detail": _raw(row.detail),
        "kind": row.kind,
        "message_id": message_id_of(ref, row),
        "cause": row.cause,
        "context": _raw(row.context),
        "actor": row.actor,
        "state": row.state,
        "attempt": row.attempt,
        "duration_us": row.duration_us,
    }
    return {name: value for name, value in document.items() if value is not None}


def _raw(body: bytes | None) -> Raw | None:
    """Return JSON as it was written. A line break in it can only stand between two values."""
    return None if body is None else Raw(body.replace(b"\r", b" ").replace(b"\n", b" "))
