"""The one thread that writes: a queue of jobs in, transactions out."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar

import apsw

from mainspring.errors import FaultyUnitError, MainspringError, StoreClosedError, StoreError, StoreMovedError
from mainspring.logs import logger
from mainspring.port.clock import Clock
from mainspring.port.records import Outcome, Unit
from mainspring.stores.commit.facts import Name, Owned
from mainspring.stores.sqlite.commit import commit_units
from mainspring.stores.sqlite.damage import refuse_broken_trees
from mainspring.stores.sqlite.faults import TROUBLE
from mainspring.stores.sqlite.loans import LentJob, SqliteLoan
from mainspring.stores.sqlite.lost_commits import refuse_lost_commits
from mainspring.stores.sqlite.place import CHECKPOINT_PAGES, Footing, Place, tune
from mainspring.stores.sqlite.schema import migrate
from mainspring.stores.sqlite.statements import execute, savepoint
from mainspring.stores.sqlite.threads import Answer, Thread, ThreadFactory, close, deliver
from mainspring.stores.sqlite.transaction import Transaction

UNITS_PER_TRANSACTION: Final = 4_000
IDLE_SECONDS: Final = 0.25
IDLE_PAGES: Final = 500

T = TypeVar("T")

_log = logger(__name__)


class Job(Answer[T], ABC):
    """Something to do in a transaction, or, if it is `bare`, between two.

    Nothing in it leads back to it: what holds itself is freed by the garbage collector only, late and all at once.
    """

    __slots__ = ()

    bare = False

    @property
    def weight(self) -> int:
        return 1

    @abstractmethod
    def run(self, transaction: Transaction) -> T:
        """Do it, and return the answer."""


class Call(Job[T]):
    """A function to call."""

    __slots__ = ("_function", "bare")

    def __init__(self, function: Callable[[Transaction], T], *, bare: bool = False) -> None:
        super().__init__()
        self._function = function
        self.bare = bare

    def run(self, transaction: Transaction) -> T:
        return self._function(transaction)


class CommitJob(Job[list[Outcome]]):
    """Units to commit. Those of several jobs are checked and written together."""

    __slots__ = ("units",)

    def __init__(self, worker: int, units: Sequence[Unit]) -> None:
        super().__init__()
        self.units: list[Owned] = [(worker, unit) for unit in units]

    @property
    def weight(self) -> int:
        return len(self.units)

    def run(self, transaction: Transaction) -> list[Outcome]:
        outcomes, news = commit_units(transaction.connection, transaction.now_us, self.units)
        transaction.news |= news
        return outcomes


class Writer:
    """Runs jobs in the order in which they came; all that wait when it is free share a transaction.

    No caller is answered before COMMIT has returned. A failure rolls everything back: if the database is in trouble,
    all get the error; if not, each job is tried alone, and of a commit each unit, so that only the faulty one fails.
    Once the file is gone from its place, nothing more is written.
    """

    def __init__(self, place: Place, clock: Clock, threads: ThreadFactory, on_news: Callable[[], None]) -> None:
        self._place = place
        self._clock = clock
        self._threads = threads
        self._on_news = on_news
        self._queue: SimpleQueue[Job[Any] | LentJob | None] = SimpleQueue()
        # One loan at a time is in the queue, so that what others write goes in between: heartbeats above all.
        self._lending = asyncio.Lock()
        self._closing = False
        self._thread: Thread | None = None
        self._ended: Answer[None] | None = None
        self._moved: StoreMovedError | None = None
        self._log_pages = 0
        self._checkpoint_at = CHECKPOINT_PAGES

    async def open(self) -> None:
        """Start the thread, and return when the schema is up to date."""
        opened: Answer[None] = Answer()
        ended = self._ended = Answer[None]()
        self._thread = self._threads(
            target=lambda: self._run(opened, ended), name="mainspring-sqlite-writer", daemon=True
        )
        self._thread.start()
        try:
            await opened.future
        except BaseException:
            self._queue.put(None)  # a caller that does not wait for the opening does not want it
            raise

    async def close(self) -> None:
        """Finish what was asked, and end."""
        if self._thread is None or self._ended is None:
            return
        self._closing = True
        self._queue.put(None)
        await self._ended.future
        self._thread.join()
        self._thread = None

    async def do(self, job: Job[T]) -> T:
        """Run a job and return its answer, when it is durable."""
        self._queue.put(job)
        return await job.future

    async def commit(self, worker: int, units: Sequence[Unit]) -> list[Outcome]:
        """Commit units, with those of others that wait."""
        job = CommitJob(worker, units)
        self._queue.put(job)
        return await job.future

    async def lend(self, job: LentJob) -> SqliteLoan:
        """Return a transaction for a handler, when its turn has come."""
        await self._lending.acquire()
        job.future.add_done_callback(lambda _: self._lending.release())
        if self._closing:
            job.future.cancel()
            raise StoreClosedError(str(self._place))
        self._queue.put(job)
        loan = SqliteLoan(job)
        try:
            await loan.begin()
        except BaseException:
            job.requests.put(None)
            raise
        return loan

    # ---- in the thread

    def _run(self, opened: Answer[None], ended: Answer[None]) -> None:
        connection: apsw.Connection | None = None
        try:
            try:
                connection = self._connect()
                opened.keep(None)
            except Exception as error:  # noqa: BLE001  whatever it is, it is the opener's
                opened.keep(None, self._place.error(error))
                return
            finally:
                deliver((opened,))
            while jobs := self._next(connection):
                self._work(connection, jobs)
                if self._log_pages >= self._checkpoint_at:
                    self._checkpoint(connection)
        finally:
            close(connection, self._place)
            deliver((ended,))

    def _connect(self) -> apsw.Connection:
        connection = self._place.connect(writes=True)
        try:
            refuse_lost_commits(connection, self._place)
            migrate(connection, self._place, self._clock.now_us())
            refuse_broken_trees(connection, self._place)
            tune(connection)
            self._place.footing = Footing(self._place, connection)
        except BaseException:
            connection.close()
            raise
        connection.set_wal_hook(self._logged)
        return connection

    def _next(self, connection: apsw.Connection) -> list[Job[Any] | LentJob]:
        """Wait for a job, and return it with all others that wait by then. Nothing means the end."""
        first = self._wait(connection)
        if first is None:
            return []
        jobs: list[Job[Any] | LentJob] = [first]
        weight = first.weight
        while weight < UNITS_PER_TRANSACTION:
            try:
                job = self._queue.get_nowait()
            except Empty:
                break
            if job is None:
                self._queue.put(None)  # the end comes after what was asked before it
                break
            jobs.append(job)
            weight += job.weight
        return jobs

    def _wait(self, connection: apsw.Connection) -> Job[Any] | LentJob | None:
        """Return the next job. A pause is used to move the log, so that the next rush begins with a short one."""
        if self._log_pages < IDLE_PAGES:
            return self._queue.get()
        try:
            return self._queue.get(timeout=IDLE_SECONDS)
        except Empty:
            self._checkpoint(connection)
            return self._queue.get()

    def _work(self, connection: apsw.Connection, jobs: list[Job[Any] | LentJob]) -> None:
        if self._moved is not None:
            for job in jobs:
                job.keep(None, self._moved)
            deliver(jobs)
            return
        bare: list[Job[Any]] = []
        together: list[Job[Any]] = []
        lent: list[LentJob] = []
        for job in jobs:
            if isinstance(job, LentJob):
                lent.append(job)
            else:
                (bare if job.bare else together).append(job)
        for job in bare:
            self._look(connection, job)
        news = self._transact(connection, together) if together else False
        deliver((*bare, *together), self._on_news if news else None)
        for job in lent:
            self._lend(connection, job)

    def _look(self, connection: apsw.Connection, job: Job[Any]) -> None:
        try:
            job.keep(job.run(Transaction(connection, self._clock.now_us())))
        except Exception as error:  # noqa: BLE001  whatever it is, it is the asker's
            job.keep(None, self._place.error(error))

    def _transact(self, connection: apsw.Connection, jobs: list[Job[Any]]) -> bool:
        """Run jobs in one transaction, and keep their answers. Return whether there is news for waiting workers."""
        transaction = Transaction(connection, self._clock.now_us())
        try:
            self._begin(connection)
            answers = _together(transaction, jobs)
            self._commit(connection)
        except Exception as cause:  # noqa: BLE001  every job gets an answer, whatever happened
            transaction.roll_back()
            if isinstance(cause, (*TROUBLE, StoreMovedError)):
                for job in jobs:
                    job.keep(None, self._place.error(cause))
                return False
            return self._one_by_one(connection, jobs, cause)
        for job, answer in zip(jobs, answers, strict=True):
            job.keep(answer)
        transaction.committed()
        return transaction.news

    def _begin(self, connection: apsw.Connection) -> None:
        # Before anything is written: where another process has begun a new log, this one would write over its frames.
        self._stay(connection)
        execute(connection, "BEGIN IMMEDIATE")

    def _commit(self, connection: apsw.Connection) -> None:
        execute(connection, "COMMIT")
        # Once more, because a file may go at any moment; before any caller gets its acknowledgement.
        self._stay(connection)

    def _stay(self, connection: apsw.Connection) -> None:
        try:
            self._place.stay()
        except StoreMovedError as moved:
            self._moved = moved
            # What is left of the log belongs to the file that was there.
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            raise

    def _lend(self, connection: apsw.Connection, job: LentJob) -> None:
        """Run a handler's transaction. Nothing else is in it, and it is never retried here."""
        transaction = Transaction(connection, self._clock.now_us())
        try:
            self._begin(connection)
            outcomes, lasts = job.run(transaction)
            if lasts:
                self._commit(connection)
            else:
                transaction.roll_back()
            job.keep(outcomes)
        except Exception as cause:  # noqa: BLE001  the handler gets an answer, whatever happened
            transaction.roll_back()
            job.keep(None, cause if isinstance(cause, MainspringError) else self._place.error(cause))
        deliver((job,), self._on_news if transaction.news else None)

    def _one_by_one(self, connection: apsw.Connection, jobs: list[Job[Any]], cause: Exception) -> bool:
        """Find the faulty job: each in a transaction of its own, and of a commit each unit."""
        if len(jobs) > 1:
            news = [self._transact(connection, [job]) for job in jobs]
            return any(news)
        job = jobs[0]
        if isinstance(job, CommitJob):
            return self._unit_by_unit(connection, job)
        job.keep(None, self._place.error(cause))
        return False

    def _unit_by_unit(self, connection: apsw.Connection, job: CommitJob) -> bool:
        """Commit what can be committed of a job. One transaction still: the caller waits for one fsync, not many."""
        transaction = Transaction(connection, self._clock.now_us())
        try:
            self._begin(connection)
            void: set[Name] = set()
            outcomes = [self._one(transaction, owned, void) for owned in job.units]
            self._commit(connection)
        except Exception as cause:  # noqa: BLE001  every job gets an answer, whatever happened
            transaction.roll_back()
            job.keep(None, self._place.error(cause))
            return False
        if any(isinstance(outcome, StoreError) for outcome in outcomes):
            job.keep(None, FaultyUnitError(str(self._place), outcomes))
        else:
            job.keep([outcome for outcome in outcomes if not isinstance(outcome, StoreError)])
        return transaction.news

    def _one(self, transaction: Transaction, owned: Owned, void: set[Name]) -> Outcome | StoreError:
        connection = transaction.connection
        try:
            with savepoint(connection):  # a savepoint: a faulty unit leaves no trace
                outcomes, news = commit_units(connection, transaction.now_us, [owned], void)
                transaction.news |= news
                return outcomes[0]
        except TROUBLE:
            raise
        except Exception as fault:  # noqa: BLE001  it is this unit's, and the others continue
            if owned[1].expected_version is not None:
                void.add((owned[1].workflow, owned[1].instance))
            return self._place.error(fault)

    def _logged(self, _connection: apsw.Connection, _database: str, pages: int) -> int:
        self._log_pages = pages
        return apsw.SQLITE_OK

    def _checkpoint(self, connection: apsw.Connection) -> None:
        """Move the log into the database, between two transactions: all callers have been answered by now."""
        try:
            in_log, moved = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.BusyError:
            in_log, moved = 1, 0  # another process does it
        except apsw.Error as error:
            _log.warning("%s: the log could not be moved into the database, will try again: %s", self._place, error)
            in_log, moved = 1, 0
        # If a reader holds the log open it grows for a while; trying at every commit would not help.
        self._checkpoint_at = CHECKPOINT_PAGES + (0 if in_log == moved else self._log_pages)
        self._log_pages = 0


def _together(transaction: Transaction, jobs: list[Job[Any]]) -> list[Any]:
    """Run jobs in order; commits that follow each other are one batch."""
    answers: list[Any] = []
    index = 0
    while index < len(jobs):
        commits: list[CommitJob] = []
        while index < len(jobs) and isinstance(job := jobs[index], CommitJob):
            commits.append(job)
            index += 1
        if commits:
            answers += _committed(transaction, commits)
        else:
            answers.append(jobs[index].run(transaction))
            index += 1
    return answers


def _committed(transaction: Transaction, jobs: list[CommitJob]) -> list[list[Outcome]]:
    units = jobs[0].units if len(jobs) == 1 else [owned for job in jobs for owned in job.units]
    outcomes, news = commit_units(transaction.connection, transaction.now_us, units)
    transaction.news |= news
    parts: list[list[Outcome]] = []
    begin = 0
    for job in jobs:
        parts.append(outcomes[begin : begin + len(job.units)])
        begin += len(job.units)
    return parts
