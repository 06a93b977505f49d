"""The store: each verb of the port, handed to the writer or to a reader."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeVar

import apsw

from mainspring.errors import StoreClosedError
from mainspring.port.attempts import Attempt
from mainspring.port.attributes import AttributeRow
from mainspring.port.clock import Clock
from mainspring.port.findings import Examination
from mainspring.port.leaving import NOTHING, Leaves, Waiting
from mainspring.port.lending import Loan
from mainspring.port.outlines import Outline, OutlineSpot
from mainspring.port.projections import Advance, Behind, Checkpoint, Document
from mainspring.port.purging import Purgeable, PurgeCursor, Purged, PurgePage
from mainspring.port.records import (
    Claims,
    DeadLetter,
    EventRow,
    InputRow,
    InstanceFilter,
    InstanceRow,
    Loaded,
    Outcome,
    OutputClaim,
    OutputKey,
    Ref,
    Relayed,
    Remembered,
    Stats,
    Unit,
)
from mainspring.port.searching import AttributeName, Found
from mainspring.port.store import Tally, TaskSpot
from mainspring.port.suspects import Alone, Suspect
from mainspring.port.tasks import Hand, Refused, TaskFilter, TaskRow
from mainspring.port.workers import WorkerRow
from mainspring.stores.sqlite import projections, purge, reads, searching, tasks, work
from mainspring.stores.sqlite.connection import Place
from mainspring.stores.sqlite.examine import examine
from mainspring.stores.sqlite.hints import Hints, written
from mainspring.stores.sqlite.lending import LentJob
from mainspring.stores.sqlite.schema import refuse_newer, version_of
from mainspring.stores.sqlite.sql import execute
from mainspring.stores.sqlite.threads import Readers, ThreadFactory
from mainspring.stores.sqlite.workers import WorkerLocks, Workers
from mainspring.stores.sqlite.writer import Call, CommitJob, Transaction, Writer

BUSY_SECONDS: Final = 5.0

T = TypeVar("T")


class SqliteStore:
    """A store in one file on a local disk.

    The clock is read in the writer's thread too: a timer is due so long after its commit, not after the call.
    `busy_seconds` bounds the wait for another process's lock, `threads` makes the threads, and `vfs` names a file
    system registered with SQLite, if it is not to be the usual one.

    >>> import asyncio
    >>> from tempfile import TemporaryDirectory
    >>> from mainspring.testing.clock import VirtualClock
    >>> async def twice(path: Path) -> list[Outcome]:
    ...     store = SqliteStore(path, VirtualClock())
    ...     await store.open()
    ...     unit = Unit("W", "i", expected_version=0, events=(EventRow(1, "Began", 0),))
    ...     outcomes = await store.commit(0, [unit, unit])
    ...     await store.close()
    ...     return outcomes
    >>> with TemporaryDirectory() as folder:
    ...     asyncio.run(twice(Path(folder) / "orders.db"))
    [Committed(key=1, positions=(), unclaimed=()), Conflict(reason='version')]
    """

    def __init__(
        self,
        path: str | Path,
        clock: Clock,
        *,
        busy_seconds: float = BUSY_SECONDS,
        threads: ThreadFactory = threading.Thread,
        vfs: str | None = None,
    ) -> None:
        self._place = Place(path, busy_seconds=busy_seconds, vfs=vfs)
        self._clock = clock
        self._threads = threads
        self._locks = WorkerLocks(self._place.path)
        self._workers = Workers(self._locks)
        log = self._place.path.with_name(f"{self._place.path.name}-wal")
        # It is asked several times a step: without a call of its own between.
        self.now_us = clock.now_us
        self._hints = Hints(clock, self._foreign_commits, lambda: written(log))
        self._writer: Writer | None = None
        self._readers: Readers | None = None

    @property
    def lends(self) -> bool:
        return True

    async def open(self) -> None:
        if self._writer is not None:
            return
        writer = Writer(self._place, self._clock, self._threads, self._hints.give)
        await writer.open()
        self._writer = writer
        self._readers = Readers(self._place, self._threads)
        await self._hints.reset()

    async def close(self) -> None:
        writer, readers, self._writer, self._readers = self._writer, self._readers, None, None
        if readers is not None:
            await readers.close()
        if writer is not None:
            await writer.close()
        # Last, so that nobody relieves a worker whose commits are still under way.
        self._locks.unlock_all()

    # ---- workers

    async def register_worker(self, name: str, lease_us: int, knows: str = "") -> int:
        return await self._write(lambda transaction: self._workers.register(transaction, name, lease_us, knows))

    async def heartbeat(self, worker: int, held: str = "") -> bool:
        def extend(transaction: Transaction) -> tuple[bool, int]:
            return self._workers.extend(transaction, worker, held), version_of(transaction.connection)

        known, version = await self._write(extend)
        refuse_newer(self._place, version)
        return known

    async def release_worker(self, worker: int) -> None:
        await self._write(lambda transaction: self._workers.release(transaction, [worker]))

    async def relieve(self) -> int:
        return await self._write(self._workers.relieve)

    async def workers(self) -> list[WorkerRow]:
        return await self._read(reads.workers)

    async def holds(self, worker: int) -> list[OutputKey]:
        return await self._read(lambda connection: reads.holds(connection, worker))

    async def holds_inputs(self, worker: int) -> list[tuple[Ref, int]]:
        return await self._read(lambda connection: reads.holds_inputs(connection, worker))

    async def suspects(self, limit: int) -> list[Suspect]:
        return await self._read(lambda connection: reads.suspects(connection, limit))

    # ---- commit and work

    async def commit(self, worker: int, units: Sequence[Unit]) -> list[Outcome]:
        return await self._open_writer().do(CommitJob(worker, units))

    async def lend(self, worker: int, limit_seconds: float) -> Loan:
        return await self._open_writer().lend(LentJob(worker, limit_seconds, self._place.error))

    async def claim(
        self, worker: int, destinations: Sequence[str], workflows: Sequence[str], limit: int, leaves: Leaves = NOTHING
    ) -> Claims:
        return await self._write(lambda t: work.claim(t, worker, destinations, workflows, limit, leaves))

    async def claim_alone(self, worker: int, suspect: Suspect | None) -> Alone | None:
        return await self._write(lambda t: work.claim_alone(t, worker, suspect))

    async def relay(self, limit: int) -> Relayed:
        return Relayed(0)  # no other library may write to the file: who sends beside rows of their own borrows from us

    async def restore_output(self, dead_letter: int, expected_version: int | None = None) -> bool:
        return await self._write(lambda transaction: work.restore_output(transaction, dead_letter, expected_version))

    async def hand(self, ref: Ref, version: int, hand: Hand) -> TaskRow | Refused:
        return await self._write(lambda t: tasks.hand(t.connection, ref, version, hand, t.now_us))

    async def pick(self, role: str, actor: str, limit: int) -> list[TaskRow]:
        return await self._write(lambda t: tasks.pick(t.connection, role, actor, limit, t.now_us))

    async def wait_for_work(self, timeout_seconds: float) -> None:
        await self._hints.wait(timeout_seconds)

    # ---- reading

    async def load(self, refs: Sequence[Ref], most: int | None = None) -> list[Loaded | None]:
        return await self._read(lambda connection: reads.load(connection, refs, most))

    async def remembered(self, key: str) -> Remembered | None:
        now_us = self.now_us()
        return await self._read(lambda connection: reads.remembered(connection, key, now_us))

    async def instances(self, where: InstanceFilter, limit: int, after: int = 0) -> list[InstanceRow]:
        return await self._read(lambda connection: reads.instances(connection, where, limit, after))

    async def search(self, where: InstanceFilter, limit: int, after: int | None = None, newest: bool = False) -> Found:
        return await self._read(lambda connection: searching.search(connection, where, limit, after, newest))

    async def attributes(self, ref: Ref) -> list[AttributeRow]:
        return await self._read(lambda connection: reads.attributes(connection, ref))

    async def attribute_names(self) -> list[AttributeName]:
        return await self._read(searching.attribute_names)

    async def stream(self, ref: Ref, after: int, limit: int) -> list[EventRow]:
        return await self._read(lambda connection: reads.stream(connection, ref, after, limit))

    async def feed(self, after: int, limit: int) -> list[tuple[int, Ref, EventRow]]:
        return await self._read(lambda connection: reads.feed(connection, after, limit))

    async def outlines(self, spots: Sequence[OutlineSpot], limit: int) -> list[Outline]:
        return await self._read(lambda connection: reads.outlines(connection, spots, limit))

    async def inbox(self, ref: Ref, limit: int) -> list[InputRow]:
        return await self._read(lambda connection: reads.inbox(connection, ref, limit))

    async def outputs(self, ref: Ref | None, timers: bool, limit: int) -> list[OutputClaim]:
        return await self._read(lambda connection: reads.outputs(connection, ref, timers, limit))

    async def attempts(self, ref: Ref, limit: int) -> list[Attempt]:
        return await self._read(lambda connection: reads.attempts(connection, ref, limit))

    async def waiting(self, before_us: int) -> list[Waiting]:
        return await self._read(lambda connection: reads.waiting(connection, before_us))

    async def timers(self, limit: int) -> list[OutputClaim]:
        return await self._read(lambda connection: searching.timers(connection, limit))

    async def dead_letters(self, limit: int, after: int = 0, ids: Sequence[int] | None = None) -> list[DeadLetter]:
        return await self._read(lambda connection: reads.dead_letters(connection, limit, after, ids))

    async def tasks(self, where: TaskFilter, limit: int, after: TaskSpot | None = None) -> list[TaskRow]:
        return await self._read(lambda connection: tasks.listed(connection, where, limit, after))

    async def task(self, ref: Ref, version: int) -> TaskRow | None:
        return await self._read(lambda connection: tasks.get(connection, ref, version))

    async def stats(self) -> Stats:
        now_us = self.now_us()
        return await self._read(lambda connection: reads.stats(connection, now_us))

    async def tally(self) -> Tally:
        return await self._read(reads.tally)

    # ---- purging

    async def purgeable(self, workflow: str, before_us: int, limit: int, after: PurgeCursor | None = None) -> PurgePage:
        return await self._read(lambda connection: purge.purgeable(connection, workflow, before_us, limit, after))

    async def purge(self, found: Sequence[Purgeable], events: int) -> Purged:
        return await self._write(lambda transaction: purge.purge(transaction, found, events))

    async def examine(self) -> Examination:
        return await asyncio.to_thread(examine, self._place.path)

    # ---- projections

    async def checkpoints(self, projection: str | None = None) -> list[Checkpoint]:
        return await self._read(lambda connection: projections.checkpoints(connection, projection))

    async def advance(self, move: Advance) -> bool:
        return await self._write(lambda transaction: projections.advance(transaction, move))

    async def documents(self, projection: str, keys: Sequence[str], generation: int | None = None) -> list[Document]:
        return await self._read(lambda connection: projections.documents(connection, projection, keys, generation))

    async def list_documents(self, projection: str, prefix: str, after: str, limit: int) -> list[Document]:
        return await self._read(
            lambda connection: projections.list_documents(connection, projection, prefix, after, limit)
        )

    async def clear_documents(self, projection: str, generation: int, limit: int) -> int:
        return await self._write(lambda transaction: projections.clear(transaction, projection, generation, limit))

    async def behind(self, position: int, limit: int) -> Behind:
        return await self._read(lambda connection: projections.behind(connection, position, limit))

    # ---- ways to the database

    async def _write(self, run: Callable[[Transaction], T]) -> T:
        return await self._open_writer().do(Call(run))

    async def _read(self, ask: Callable[[apsw.Connection], T]) -> T:
        if self._readers is None:
            raise StoreClosedError(str(self._place))
        return await self._readers.read(ask)

    async def _foreign_commits(self) -> int:
        return await self._open_writer().do(Call(_data_version, bare=True))

    def _open_writer(self) -> Writer:
        if self._writer is None:
            raise StoreClosedError(str(self._place))
        return self._writer


def _data_version(transaction: Transaction) -> int:
    """Return a number that changes when another process has committed. The writer's own commits do not change it."""
    return execute(transaction.connection, "PRAGMA data_version").get
