"""Lending a transaction to a handler: its statements and its result's unit on one connection, outside group commit."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any, Final

import asyncpg  # pyright: ignore[reportMissingTypeStubs]  it has none

from mainspring.errors import LendingError, MainspringError, StatementError
from mainspring.port.loans import Connection, accepting, lasts
from mainspring.port.preconditions import Precondition
from mainspring.port.projections import Advance
from mainspring.port.records import InputRow, Outcome, Unit
from mainspring.stores.postgres.address import Address
from mainspring.stores.postgres.commit import Batches
from mainspring.stores.postgres.dialect import DIALECT
from mainspring.stores.postgres.faults import statement_failed, translated
from mainspring.stores.postgres.session import SETTINGS
from mainspring.stores.postgres.transaction import Transaction, Transactions
from mainspring.stores.sql.dialogue import run_async
from mainspring.stores.sql.projections import advance

_PLANNING: Final = [name for name in SETTINGS if name.startswith("enable_")]
# Our settings make plans for our statements. Others' deserve those that the server would make.
_THEIRS: Final = "".join(f"SET LOCAL {name} = on;" for name in _PLANNING) + "SET LOCAL plan_cache_mode = auto;"
# What the handler has set, for the transaction or for the session, ends before its result is recorded: a role of its
# own must not keep that from being written, and the next user of the connection must find it as it was.
_UNDO: Final = "RESET ROLE; RESET ALL; DISCARD TEMP;"
_SAVEPOINT: Final = "SAVEPOINT result;"
TRIES: Final = 3
_NUMBER: Final = "SELECT pg_current_xact_id()::text::bigint"


class Lender:
    """What loans have in common. Their number is bounded so that a connection is left for everything else."""

    def __init__(self, address: Address, transactions: Transactions, batches: Batches) -> None:
        self.address = address
        self.transactions = transactions
        self.batches = batches
        self.places = asyncio.Semaphore(max(1, address.connections - 2))


class RolledBackError(Exception):
    """Ends a transaction without a commit. Never seen outside."""


class PostgresLoan:
    """A transaction lent to a handler."""

    def __init__(self, lender: Lender, worker: int, limit_seconds: float) -> None:
        self._lender = lender
        self._worker = worker
        self._limit_seconds = limit_seconds
        self._exits = AsyncExitStack()
        self._transaction: Transaction | None = None
        self._number = 0
        self._busy = asyncio.Lock()
        self._deadline = 0.0
        self._expiry: asyncio.TimerHandle | None = None
        self.connection = Connection(self._ask)

    async def begin(self) -> None:
        """Open the transaction. Its time begins when it is open."""
        try:
            await self._exits.enter_async_context(self._lender.places)
            transaction = await self._exits.enter_async_context(self._lender.transactions.transaction())
            limit = f"{round(self._limit_seconds * 1_000)}ms"
            limits = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
            await transaction.session.run(_THEIRS + "".join(f"SET LOCAL {name} = '{limit}';" for name in limits))
            self._number = await transaction.session.value(_NUMBER)
        except BaseException as error:
            await self._exits.__aexit__(type(error), error, error.__traceback__)
            raise
        self._transaction = transaction
        loop = asyncio.get_running_loop()
        self._deadline = loop.time() + self._limit_seconds
        self._expiry = loop.call_at(self._deadline, self._expire)

    def _expire(self) -> None:
        """Release locks although the handler is still running: without its connection the server rolls back at once."""
        if self._transaction is not None and self.connection.usable:
            self.connection.end("its time is over")
            self._transaction.session.drop()

    async def advance(self, move: Advance) -> bool:
        self.connection.check()
        async with self._busy:
            transaction = self._transaction
            if transaction is None:
                raise self._late()
            try:
                return await run_async(advance(DIALECT, move, self._lender.batches.now_us()), transaction.rows)
            except MainspringError:
                raise
            except Exception as cause:
                raise translated(str(self._lender.address), cause) from cause

    async def commit(self, unit: Unit) -> Outcome:
        return (await self._finish([unit], repeats=False))[0]

    async def accept(self, rows: Sequence[InputRow], requires: Sequence[Precondition | None] = ()) -> list[Outcome]:
        outcomes = await self._finish(accepting(rows, requires) or [Unit("", "")], repeats=True)
        return outcomes[: len(rows)]

    async def _finish(self, units: Sequence[Unit], *, repeats: bool) -> list[Outcome]:
        transaction = self._transaction
        if transaction is None or asyncio.get_running_loop().time() > self._deadline:
            await self.roll_back()
            raise self._late()
        try:
            self.connection.finish()
            return await self._committed(transaction, units, repeats=repeats)
        except MainspringError:
            raise
        except asyncpg.IntegrityConstraintViolationError as cause:
            if getattr(cause, "schema_name", None) == self._lender.address.schema:
                raise translated(str(self._lender.address), cause) from cause
            # A constraint of theirs that is checked at the end.
            raise StatementError("COMMIT", cause, refused=True) from cause
        except Exception as cause:
            raise translated(str(self._lender.address), cause) from cause
        finally:
            await self.roll_back()

    async def roll_back(self) -> None:
        self.connection.end("it was rolled back")
        if self._transaction is not None:
            await self._end(RolledBackError())

    async def _committed(self, transaction: Transaction, units: Sequence[Unit], *, repeats: bool) -> list[Outcome]:
        if not transaction.session.busy:
            raise _ended_by_itself()
        await transaction.session.run(_UNDO + self._lender.transactions.settings + _SAVEPOINT)
        outcomes, news = await self._applied(transaction, units)
        if transaction.xid != self._number:
            raise _ended_by_itself()
        if lasts(outcomes, repeats=repeats):
            await self._end(None)
            if news:
                self._lender.batches.tell()
        return outcomes

    async def _applied(self, transaction: Transaction, units: Sequence[Unit]) -> tuple[list[Outcome], bool]:
        """Apply units; once more where another process has just begun the instance: that is a fact the next time."""
        for left in reversed(range(TRIES)):
            try:
                return await self._lender.batches.apply(transaction, self._worker, units)
            except asyncpg.UniqueViolationError:
                if not left:
                    raise
                await transaction.session.run("ROLLBACK TO SAVEPOINT result")
        raise AssertionError

    async def _end(self, error: RolledBackError | None) -> None:
        """Leave the transaction: committed without an error, else rolled back."""
        self._transaction = None
        if self._expiry is not None:
            self._expiry.cancel()
        if error is None:
            await self._exits.aclose()
            return
        with suppress(Exception):  # the error itself; of any other, the server rolls back what it has lost
            await self._exits.__aexit__(type(error), error, None)

    async def _ask(self, statement: str, values: Sequence[Sequence[Any]]) -> list[Any]:
        # A connection does one thing at a time; statements that come together wait for each other, as on SQLite.
        async with self._busy:
            transaction = self._transaction
            if transaction is None:
                raise self._late()
            session = transaction.session
            try:
                async with asyncio.timeout_at(self._deadline):
                    if len(values) == 1:
                        return list(await session.rows(statement, *values[0]))
                    await session.run_many(statement, values)
                    return []
            except TimeoutError:
                raise self._late() from None
            except Exception as cause:
                if not self.connection.usable:
                    raise self._late() from None  # it was cut for its time
                store = str(self._lender.address)
                raise statement_failed(store, statement, cause, lost=session.closed) from cause

    def _late(self) -> LendingError:
        return LendingError(
            f"The transaction took more than {self._limit_seconds:g} s and was rolled back",
            "Do less in it, call nothing over a network, or give it more time.",
        )


def _ended_by_itself() -> LendingError:
    return LendingError(
        "The transaction was ended by a statement of its own",
        "Leave COMMIT and ROLLBACK out: it is committed when it is left.",
    )
