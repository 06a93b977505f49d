"""Lending the writer's transaction to a handler.

The writer's thread opens a transaction and serves the handler's statements from a queue, one by one, until the commit
or the rollback is asked for, or until the time is over. Nothing else is written meanwhile, so it stands outside the
group commit, and is short.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from importlib import resources
from queue import Empty, SimpleQueue
from typing import Any, Final, NamedTuple, Self

import apsw

from mainspring.errors import LendingError, MainspringError, StatementError, StoreError
from mainspring.port.loans import Connection, accepting, lasts
from mainspring.port.preconditions import Precondition
from mainspring.port.projections import Advance
from mainspring.port.records import InputRow, Outcome, Unit
from mainspring.stores.sql.projections import advance
from mainspring.stores.sqlite.commit import commit_units
from mainspring.stores.sqlite.dialect import DIALECT
from mainspring.stores.sqlite.faults import TROUBLE
from mainspring.stores.sqlite.statements import execute, run_on
from mainspring.stores.sqlite.threads import Answer, deliver
from mainspring.stores.sqlite.transaction import Transaction

STEPS_BETWEEN_LOOKS: Final = 10_000

# The tables that a handler may read but not write.
_SCHEMA: Final = resources.files("mainspring.stores.sqlite").joinpath("schema.sql").read_text("utf-8")
_OURS: Final = frozenset(re.findall(r"^CREATE TABLE (\w+)", _SCHEMA, re.MULTILINE))
_NUMBERED: Final = re.compile(r"\$\d")
# What would end the transaction, or change how every later one works: a temporary table hides ours of the same name.
_FORBIDDEN: Final = frozenset(
    {
        apsw.SQLITE_TRANSACTION,
        apsw.SQLITE_SAVEPOINT,
        apsw.SQLITE_ATTACH,
        apsw.SQLITE_DETACH,
        apsw.SQLITE_PRAGMA,
        apsw.SQLITE_CREATE_TEMP_TABLE,
        apsw.SQLITE_CREATE_TEMP_VIEW,
        apsw.SQLITE_CREATE_TEMP_TRIGGER,
    }
)
# What changes a table: SQLite names it first, or behind the index, the trigger or the database that is meant.
_WRITES: Final = frozenset({apsw.SQLITE_INSERT, apsw.SQLITE_UPDATE, apsw.SQLITE_DELETE, apsw.SQLITE_DROP_TABLE})
_WRITES_BEHIND: Final = frozenset(
    {
        apsw.SQLITE_ALTER_TABLE,
        apsw.SQLITE_CREATE_INDEX,
        apsw.SQLITE_DROP_INDEX,
        apsw.SQLITE_CREATE_TRIGGER,
        apsw.SQLITE_DROP_TRIGGER,
    }
)


class Record(tuple[Any, ...]):  # noqa: SLOT001  a tuple's subclass can have none of its own
    """A row that can be read by place and by name.

    >>> Record(("b-1", 2), ("id", "seats"))["seats"]
    2
    """

    _names: tuple[str, ...]

    def __new__(cls, values: Sequence[Any], names: tuple[str, ...]) -> Self:
        """Return a row with the names of its columns."""
        record = super().__new__(cls, values)
        record._names = names
        return record

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return super().__getitem__(key)
        if key not in self._names:
            raise KeyError(key)
        return super().__getitem__(self._names.index(key))


class Statement(Answer[list[Any]]):
    """A statement of the handler, for the writer's thread."""

    __slots__ = ("text", "values")

    def __init__(self, text: str, values: Sequence[Sequence[Any]]) -> None:
        super().__init__()
        self.text = text
        self.values = values

    def run(self, connection: apsw.Connection) -> list[Any]:
        """Run it once for each row of values, and return what the last run found."""
        found: list[Any] = []
        for values in self.values:
            found = _rows(execute(connection, self.text, _bindings(self.text, values)))
        return found


class Moving(Answer[bool]):
    """A move of a projection's checkpoint, for the writer's thread."""

    __slots__ = ("move",)

    def __init__(self, move: Advance) -> None:
        super().__init__()
        self.move = move


class Ending(NamedTuple):
    """What a lent transaction ends with; `repeats` says that it is committed even if inputs of it are there already."""

    units: Sequence[Unit]
    repeats: bool


class LentJob(Answer[list[Outcome] | None]):
    """A transaction for a handler, as the writer's thread sees it. Its answer is None if it was given up.

    `trouble` says what a failure means that is not its statement's.
    """

    def __init__(self, worker: int, limit_seconds: float, trouble: Callable[[Exception], StoreError]) -> None:
        super().__init__()
        self._trouble = trouble
        self.began: Answer[None] = Answer()
        self.requests: SimpleQueue[Statement | Moving | Ending | None] = SimpleQueue()
        self._worker = worker
        self._limit_seconds = limit_seconds

    @property
    def weight(self) -> int:
        return 1

    def run(self, transaction: Transaction) -> tuple[list[Outcome] | None, bool]:
        """Serve the handler, in the writer's thread, inside a transaction. Return whether that is to be committed."""
        deliver((self.began,))
        ending = self._serve(transaction, time.monotonic() + self._limit_seconds)
        if ending is None:
            return None, False
        owned = [(self._worker, unit) for unit in ending.units]
        outcomes, news = commit_units(transaction.connection, transaction.now_us, owned)
        transaction.news |= news
        return outcomes, lasts(outcomes, repeats=ending.repeats)

    def _serve(self, transaction: Transaction, deadline: float) -> Ending | None:
        """Run statements until the handler has ended, and return what is to be committed with them."""
        connection = transaction.connection
        connection.set_authorizer(self._allows)
        connection.set_progress_handler(lambda: time.monotonic() > deadline, STEPS_BETWEEN_LOOKS)
        try:
            while True:
                try:
                    request = self.requests.get(timeout=max(0.0, deadline - time.monotonic()))
                except Empty:
                    raise self._late() from None
                if isinstance(request, Statement):
                    self._answer(connection, request)
                elif isinstance(request, Moving):
                    self._move(transaction, request)
                else:
                    return request
                if not connection.in_transaction:
                    # Some failures undo everything: what came now would be committed by itself.
                    raise LendingError("SQLite undid the transaction", "See the error of its statement.")
        finally:
            connection.set_progress_handler(None)
            connection.set_authorizer(None)

    def _answer(self, connection: apsw.Connection, statement: Statement) -> None:
        try:
            statement.keep(statement.run(connection))
        except apsw.InterruptError:
            statement.keep(None, self._late())
        except Exception as cause:  # noqa: BLE001  whatever it is, the caller gets it
            statement.keep(None, self._failed(statement.text, cause))
        deliver((statement,))

    def _failed(self, statement: str, cause: Exception) -> MainspringError:
        if isinstance(cause, (*TROUBLE, OSError)):
            return self._trouble(cause)
        error = StatementError(statement, cause, refused=isinstance(cause, apsw.ConstraintError))
        error.__cause__ = cause
        return error

    def _move(self, transaction: Transaction, moving: Moving) -> None:
        connection = transaction.connection
        connection.set_authorizer(None)  # the checkpoint is a table of ours
        try:
            moving.keep(run_on(connection, advance(DIALECT, moving.move, transaction.now_us)))
        except Exception as error:  # noqa: BLE001  whatever it is, the caller gets it
            moving.keep(None, error)
        finally:
            connection.set_authorizer(self._allows)
        deliver((moving,))

    def _late(self) -> LendingError:
        return LendingError(
            f"The transaction took more than {self._limit_seconds:g} s and was rolled back",
            "Do less in it, call nothing over a network, or give it more time.",
        )

    def _allows(self, action: int, first: str | None, second: str | None, *_: str | None) -> int:
        ours = (action in _WRITES and first in _OURS) or (action in _WRITES_BEHIND and second in _OURS)
        return apsw.SQLITE_DENY if ours or action in _FORBIDDEN else apsw.SQLITE_OK


class SqliteLoan:
    """The same transaction, as the event loop sees it."""

    def __init__(self, job: LentJob) -> None:
        self._job = job
        self.connection = Connection(self._ask)

    async def begin(self) -> None:
        """Wait until the transaction is open, or raise why it cannot be."""
        await asyncio.wait((self._job.began.future, self._job.future), return_when=asyncio.FIRST_COMPLETED)
        if self._job.future.done():
            self._job.future.result()

    async def advance(self, move: Advance) -> bool:
        self.connection.check()
        return await self._asked(Moving(move))

    async def commit(self, unit: Unit) -> Outcome:
        return (await self._finish(Ending([unit], repeats=False)))[0]

    async def accept(self, rows: Sequence[InputRow], requires: Sequence[Precondition | None] = ()) -> list[Outcome]:
        return await self._finish(Ending(accepting(rows, requires), repeats=True))

    async def _finish(self, ending: Ending) -> list[Outcome]:
        try:
            self.connection.finish()
        except LendingError:
            await self.roll_back()
            raise
        self._job.requests.put(ending)
        outcomes = await self._job.future
        if outcomes is None:
            raise LendingError("The transaction was rolled back", "Commit it before.")
        return outcomes

    async def roll_back(self) -> None:
        self.connection.end("it was rolled back")
        if not self._job.future.done():
            self._job.requests.put(None)
            await asyncio.wait((self._job.future,))
        if not self._job.future.cancelled():
            self._job.future.exception()  # retrieved, or asyncio would log it later

    async def _ask(self, statement: str, values: Sequence[Sequence[Any]]) -> list[Any]:
        return await self._asked(Statement(statement, values))

    async def _asked(self, request: Any) -> Any:
        self._job.requests.put(request)
        # The thread may have given up a moment before.
        await asyncio.wait((request.future, self._job.future), return_when=asyncio.FIRST_COMPLETED)
        if not request.future.done():
            self._job.future.result()
        return await request.future


def _bindings(statement: str, values: Sequence[Any]) -> Any:
    """Return values as SQLite takes them: `$1` is a name there."""
    if _NUMBERED.search(statement):
        return {str(place): value for place, value in enumerate(values, 1)}
    return tuple(values)


def _rows(cursor: Any) -> list[Any]:
    names: tuple[str, ...] | None = None
    found: list[Any] = []
    for values in cursor:
        if names is None:
            names = tuple(column[0] for column in cursor.get_description())
        found.append(Record(values, names))
    return found
