"""Streams to a file: written beside it, and put in its place when it is whole."""

from __future__ import annotations

import contextlib
import gzip
import os
from collections.abc import Callable, Generator, Sequence
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Final, Literal, Protocol, TypeAlias

from msgspec import Struct

from mainspring.analysis.export.redaction import Outgoing, Redaction
from mainspring.analysis.export.stream_file import StreamWriter
from mainspring.analysis.streams import DAMAGED, INSTANCES_PER_READ, PURGED, Stream, Unread, listed, pages, read
from mainspring.engine.recording.stored_values import moment
from mainspring.errors import DamagedRecordError, NoSuchInstanceError, OperationError
from mainspring.port.records import EventRow, InstanceFilter, InstanceRow, Ref
from mainspring.port.store import Store

Format: TypeAlias = Literal["jsonl", "xes", "ocel"]
GZIP_LEVEL: Final = 6
LEFT_OUT_NAMED: Final = 100


class Exported(Struct, frozen=True):
    """What was written. `left_out` are instances whose streams could not be read, or not to their end, and why.

    At most the first 100 of them are named; `unread` counts all.
    """

    instances: int
    events: int
    unread: int = 0
    left_out: tuple[tuple[str, str], ...] = ()


class Writer(Protocol):
    """Writes streams in one of the formats: each instance, then its events."""

    def begin(self, now: datetime) -> None:
        """Write what stands at the beginning."""
        ...

    def instance(self, row: InstanceRow) -> None:
        """Begin with an instance."""
        ...

    def event(self, ref: Ref, row: EventRow, outgoing: Outgoing) -> None:
        """Write an event of the instance that was begun last; of its message only what may leave."""
        ...

    def cut(self, ref: Ref, why: str) -> None:
        """Record that the rest of that instance's events cannot be read."""
        ...

    def end(self) -> None:
        """Write what stands at the end."""
        ...

    def close(self) -> None:
        """Release what was held for the end, written or not."""
        ...


def _writer(format: Format, file: IO[bytes], redaction: Redaction) -> Writer:
    """Return the writer of a format. Those for process mining are loaded where they are asked for."""
    if format == "xes":
        from mainspring.analysis.export.event_logs import XesWriter  # noqa: PLC0415

        return XesWriter(file, redaction)
    if format == "ocel":
        from mainspring.analysis.export.event_logs import OcelWriter  # noqa: PLC0415

        return OcelWriter(file, redaction)
    return StreamWriter(file, redaction)


async def export(
    store: Store,
    path: Path,
    wheres: Sequence[InstanceFilter] = (InstanceFilter(),),
    *,
    format: Format = "jsonl",
    redaction: Redaction | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> Exported:
    """Write the streams of the instances that the filters find to a file; compressed if its name ends in .gz.

    Messages are left out unless a `redaction` lets them through. What is at the path stays until the file is whole.
    """
    redaction = redaction or Redaction()
    with _replaced(path) as file:
        writer = _writer(format, file, redaction)
        try:
            return await _Export(store, writer, redaction, on_progress).write(wheres)
        finally:
            writer.close()


class _Export:
    """One export under way."""

    def __init__(
        self, store: Store, writer: Writer, redaction: Redaction, on_progress: Callable[[int], None] | None
    ) -> None:
        self._store = store
        self._writer = writer
        self._redaction = redaction
        self._on_progress = on_progress
        self._instances = self._events = self._unread = 0
        self._left_out: list[tuple[str, str]] = []

    async def write(self, wheres: Sequence[InstanceFilter]) -> Exported:
        self._writer.begin(moment(self._store.now_us()))
        async for rows in listed(self._store, wheres):
            for begin in range(0, len(rows), INSTANCES_PER_READ):
                batch = rows[begin : begin + INSTANCES_PER_READ]
                for stream in await read(self._store, batch):
                    await self._take(stream)
                if self._on_progress is not None:
                    self._on_progress(len(batch))
        self._writer.end()
        return Exported(self._instances, self._events, self._unread, tuple(self._left_out))

    async def _take(self, stream: Stream | Unread) -> None:
        if isinstance(stream, Unread):
            self._leave_out(Ref(stream.row.workflow, stream.row.id), stream.why)
            return
        ref = stream.ref
        try:
            self._writer.instance(stream.row)
            self._instances += 1
            async for page in pages(self._store, stream):
                for row in page:
                    self._writer.event(ref, row, self._redaction.outgoing(row))
                self._events += len(page)
        except DamagedRecordError:
            self._cut(ref, DAMAGED)
        except NoSuchInstanceError:
            self._cut(ref, PURGED)

    def _cut(self, ref: Ref, why: str) -> None:
        self._writer.cut(ref, why)
        self._leave_out(ref, why)

    def _leave_out(self, ref: Ref, why: str) -> None:
        self._unread += 1
        if len(self._left_out) < LEFT_OUT_NAMED:
            self._left_out.append((str(ref), why))


@contextlib.contextmanager
def _replaced(path: Path) -> Generator[IO[bytes]]:
    """Open a temporary file, and rename it to the path when it is whole and on the disk."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as plain:
            with _packed(path, plain) as file:
                yield file
            plain.flush()
            os.fsync(plain.fileno())
        part.replace(path)
    except OSError as error:
        problem = f"cannot be written ({error.strerror or error})"
        raise OperationError(str(path), problem, "Make room, or name another file.") from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def _packed(path: Path, file: IO[bytes]) -> Any:
    if path.suffix != ".gz":
        return contextlib.nullcontext(file)
    return gzip.GzipFile(path.stem, "wb", GZIP_LEVEL, file)
