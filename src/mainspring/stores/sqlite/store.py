"""The store: each verb of the port, handed to the writer or to a reader."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeVar

import apsw

from mainspring.errors import StoreClosedError
from mainspring.port.clock import Clock
from mainspring.port.examination import Examination
from mainspring.port.loans import Loan
from mainspring.port.records import NO_LEAVES, Claims, Leaves, Outcome, Ref, Relayed, Unit
from mainspring.port.tasks import Hand, Refused, TaskRow
from mainspring.stores.sql.dialogue import Dialogue
from mainspring.stores.sql.store import SqlStore
from mainspring.stores.sqlite import tasks, work
from mainspring.stores.sqlite.dialect import DIALECT
from mainspring.stores.sqlite.examination import examine
from mainspring.stores.sqlite.hints import FileHints, written
from mainspring.stores.sqlite.loans import LentJob
from mainspring.stores.sqlite.place import Place
from mainspring.stores.sqlite.schema import refuse_newer, version_of
from mainspring.stores.sqlite.statements import execute, run_on, savepoint
from mainspring.stores.sqlite.threads import Readers, ThreadFactory
from mainspring.stores.sqlite.transaction import Transaction
from mainspring.stores.sqlite.workers import WorkerLocks, Workers
from mainspring.stores.sqlite.writer import Call, Writer

BUSY_SECONDS: Final = 5.0

T = TypeVar("T")


class SqliteStore(SqlStore):
    """A store in one file on a local disk.

    The clock is read in the writer's thread too: a timer is due so long after its commit, not after the call.
    `busy_seconds` bounds the wait for another process's lock, `threads` makes the threads, and `vfs` names a file
    system registered with SQLite, if it is not to be the usual one.

    >>> import asyncio
    >>> from tempfile import TemporaryDirectory
    >>> from mainspring.port.records import EventRow
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

    dialect = DIALECT

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
        self._hints = FileHints(clock, self._foreign_commits, lambda: written(log))
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
        await self._hints.begin()

    async def close(self) -> None:
        writer, readers, self._writer, self._readers = self._writer, self._readers, None, None
        if readers is not None:
            await readers.close()
        if writer is not None:
            await writer.close()
        # Last, so that no process relieves a worker whose commits are still in flight.
        self._locks.unlock_all()

    # ---- workers

    async def register_worker(self, name: str, lease_us: int, knows: str = "") -> int:
        return await self._write(lambda transaction: self._workers.register(transaction, name, lease_us, knows))

    async def heartbeat(self, worker: int, standing: str = "") -> bool:
        def extend(transaction: Transaction) -> tuple[bool, int]:
            return self._workers.extend(transaction, worker, standing), version_of(transaction.connection)

        known, version = await self._write(extend)
        refuse_newer(self._place, version)
        return known

    async def release_worker(self, worker: int) -> None:
        await self._write(lambda transaction: self._workers.release(transaction, [worker]))

    async def relieve(self) -> int:
        return await self._write(self._workers.relieve)

    # ---- commit and work

    async def commit(self, worker: int, units: Sequence[Unit]) -> list[Outcome]:
        return await self._open_writer().commit(worker, units)

    async def lend(self, worker: int, limit_seconds: float) -> Loan:
        return await self._open_writer().lend(LentJob(worker, limit_seconds, self._place.error))

    async def claim(
        self, worker: int, destinations: Sequence[str], workflows: Sequence[str], limit: int, leaves: Leaves = NO_LEAVES
    ) -> Claims:
        return await self._write(lambda t: work.claim(t, worker, destinations, workflows, limit, leaves))

    async def relay(self, limit: int) -> Relayed:
        return Relayed(0)  # no other library may write to the file: callers with rows of their own borrow from us

    async def restore_output(self, dead_letter: int, expected_version: int | None = None) -> bool:
        return await self._write(lambda transaction: work.restore_output(transaction, dead_letter, expected_version))

    async def hand(self, ref: Ref, version: int, hand: Hand) -> TaskRow | Refused:
        return await self._write(lambda t: tasks.hand(t.connection, ref, version, hand, t.now_us))

    async def pick(self, role: str, actor: str, limit: int) -> list[TaskRow]:
        return await self._write(lambda t: tasks.pick(t.connection, role, actor, limit, t.now_us))

    async def wait_for_work(self, timeout_seconds: float) -> None:
        await self._hints.wait(timeout_seconds)

    async def examine(self) -> Examination:
        return await asyncio.to_thread(examine, self._place.path)

    # ---- ways to the database

    async def in_read(self, begin: Callable[[], Dialogue[T]], *, at_one_moment: bool) -> T:
        if self._readers is None:
            raise StoreClosedError(str(self._place))
        run = run_at_one_moment if at_one_moment else run_on
        return await self._readers.read(lambda connection: run(connection, begin()))

    async def in_transaction(self, begin: Callable[[int | None], Dialogue[T]]) -> T:
        return await self._write(lambda t: run_on(t.connection, begin(t.now_us)))

    async def _write(self, run: Callable[[Transaction], T]) -> T:
        return await self._open_writer().do(Call(run))

    async def _foreign_commits(self) -> int:
        return await self._open_writer().do(Call(_data_version, bare=True))

    def _open_writer(self) -> Writer:
        if self._writer is None:
            raise StoreClosedError(str(self._place))
        return self._writer


def run_at_one_moment(connection: apsw.Connection, dialogue: Dialogue[T]) -> T:
    """Run a dialogue in one read transaction."""
    with savepoint(connection):
        return run_on(connection, dialogue)


def _data_version(transaction: Transaction) -> int:
    """Return a number that changes when another process has committed. The writer's own commits do not change it."""
    return execute(transaction.connection, "PRAGMA data_version").get
