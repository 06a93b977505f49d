"""Lending: a handler writes in the very transaction that records its result."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Iterable, Sequence
from typing import Any, Final, Protocol

from mainspring.errors import LendingError, StatementError
from mainspring.port.preconditions import Precondition
from mainspring.port.projections import Advance
from mainspring.port.records import Committed, Duplicate, InputRow, Outcome, Unit

# A database may obey, and keep what was written so far without what belongs to it. A call is one statement.
_ENDS: Final = re.compile(
    r"(?:\s|;|--[^\n]*\n|/\*.*?\*/)*"
    r"(COMMIT|END|ABORT|PREPARE\s+TRANSACTION|ROLLBACK(?!\s+(?:WORK\s+|TRANSACTION\s+)?TO\b))\b",
    re.IGNORECASE | re.DOTALL,
)


class Ask(Protocol):
    """How a store runs a statement: once for each row of values. With one it returns what was found."""

    def __call__(self, statement: str, values: Sequence[Sequence[Any]], /) -> Awaitable[list[Any]]: ...


class Connection:
    """What a handler finds as `context.connection`: a database, inside the transaction that records the result.

    The same five verbs on every store, with `$1`, `$2` … for values. A row can be read by place and by name. A
    statement that fails spoils the transaction, even if the error is caught: nothing of it is committed.

    >>> async def book(command: object, context: object, connection: Connection) -> None:
    ...     await connection.execute("INSERT INTO bookings (id, seats) VALUES ($1, $2)", "b-1", 2)
    ...     seats = await connection.fetchval("SELECT sum(seats) FROM bookings")
    """

    __slots__ = ("_ask", "_over", "_spoiled", "_under_way")

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._over: str | None = None
        self._spoiled: str | None = None
        self._under_way = 0

    async def execute(self, statement: str, *values: Any) -> None:
        """Run a statement."""
        await self._run(statement, (values,))

    async def executemany(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement once for each row of values."""
        await self._run(statement, [tuple(row) for row in rows])

    async def fetch(self, statement: str, *values: Any) -> list[Any]:
        """Return all rows of a query."""
        return await self._run(statement, (values,))

    async def fetchrow(self, statement: str, *values: Any) -> Any:
        """Return the first row of a query, or None."""
        rows = await self._run(statement, (values,))
        return rows[0] if rows else None

    async def fetchval(self, statement: str, *values: Any) -> Any:
        """Return the first value of a query's first row, or None."""
        rows = await self._run(statement, (values,))
        return rows[0][0] if rows else None

    @property
    def usable(self) -> bool:
        """Whether its transaction is not over yet."""
        return self._over is None

    def end(self, why: str) -> None:
        """Refuse further use."""
        self._over = self._over or why

    def finish(self) -> None:
        """Refuse further use, since it is about to be committed; raise if it cannot be."""
        self.check()
        if self._under_way:
            raise LendingError("A statement is still under way", "Await every statement.")
        self.end("it is being committed")

    def check(self) -> None:
        """Refuse to continue a transaction that a failed statement has spoiled, or that is over."""
        if self._over is not None:
            raise LendingError(f"The transaction is over: {self._over}", "Await every statement before.")
        if self._spoiled is not None:
            raise LendingError(
                f"A statement failed ({self._spoiled}), so nothing of this transaction can be kept",
                "Let the error out, or avoid it, as with INSERT … ON CONFLICT.",
            )

    async def _run(self, statement: str, values: Sequence[Sequence[Any]]) -> list[Any]:
        self.check()
        _check_goes_on(statement)
        self._under_way += 1
        try:
            return await self._ask(statement, values)
        except BaseException as error:
            self._spoiled = error.failure if isinstance(error, StatementError) else f"{type(error).__name__}: {error}"
            raise
        finally:
            self._under_way -= 1


def _check_goes_on(statement: str) -> None:
    """Refuse a statement that would end the transaction; nothing was done, so it can continue without."""
    if ends := _ENDS.match(statement):
        raise LendingError(
            f"{ends[1].upper()} would end the transaction before its time",
            "Leave it out: what is written is committed when it is left, and undone by an exception.",
        )


def accepting(rows: Sequence[InputRow], requires: Sequence[Precondition | None] = ()) -> list[Unit]:
    """Return the units that accept inputs, each for itself, with what the sender of each requires, if they say so.

    >>> [unit.workflow for unit in accepting([InputRow("W", "i", "m-1", "command", "Go", 1, b"{}", 0, b"{}")])]
    ['W']
    """
    required = requires or [None] * len(rows)
    pairs = zip(rows, required, strict=True)
    return [Unit(row.workflow, row.instance, accepts=(row,), requires=condition) for row, condition in pairs]


def bare_acceptance(unit: Unit) -> Unit:
    """Return what a unit would be that accepts its first input and does nothing else.

    >>> bare_acceptance(Unit("W", "i", direct=True)).direct
    False
    """
    return Unit(unit.workflow, unit.instance, unit.key, accepts=unit.accepts[:1], requires=unit.requires)


def lasts(outcomes: Iterable[Outcome], *, repeats: bool) -> bool:
    """Return True if a transaction with these outcomes is committed; `repeats` says that what is there may be.

    >>> lasts([Committed(0), Duplicate(same=True)], repeats=True), lasts([Duplicate(same=True)], repeats=False)
    (True, False)
    """
    return all(isinstance(o, Committed) or (repeats and isinstance(o, Duplicate) and o.same) for o in outcomes)


class Loan(Protocol):
    """An open transaction, lent to a handler or a sender. It ends by `commit`, `accept`, `roll_back`, or its limit."""

    @property
    def connection(self) -> Connection:
        """What the handler writes with."""
        ...

    async def advance(self, move: Advance) -> bool:
        """Move a projection's checkpoint in the transaction. False: another process moved it first; nothing is done."""
        ...

    async def commit(self, unit: Unit) -> Outcome:
        """Commit what the handler wrote together with a unit; if that is refused, nothing of either is kept."""
        ...

    async def accept(self, rows: Sequence[InputRow], requires: Sequence[Precondition | None] = ()) -> list[Outcome]:
        """Commit what was written together with inputs, and return an outcome for each.

        A duplicate of the same message is no obstacle; if its id belongs to another message, or an instance is not as
        `requires` says for its input, nothing is kept.
        """
        ...

    async def roll_back(self) -> None:
        """Undo everything, unless it has ended already."""
        ...
