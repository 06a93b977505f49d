"""Transactions of an app's own database: rows of a program's own and the messages beside them, all or nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any, Final, Self, Unpack

from mainspring.app.instance import Receipt
from mainspring.app.internals import Internals
from mainspring.app.workflow_handle import SendOptions
from mainspring.core.messages import Message
from mainspring.engine.handlers.handler import LONGEST_TRANSACTION
from mainspring.engine.inputs.pending import Answer, Pending
from mainspring.engine.inputs.refusals import unmet_error
from mainspring.engine.runtime import unbroken
from mainspring.errors import DuplicateIdError, LendingError, SettingError
from mainspring.port.loans import Connection, Loan
from mainspring.port.preconditions import Unmet
from mainspring.port.records import Duplicate, Outcome

TRANSACTION: Final = timedelta(seconds=5)
# How long a transaction waits for its turn, behind those that began before.
TURN_SECONDS: Final = 30.0
MESSAGES_PER_TRANSACTION: Final = 1_000


class Transaction:
    """A transaction of the app's own database: `async with app.transaction() as transaction`.

    It has the five verbs of a `Connection`, with `$1`, `$2` … for values, and `send` and `publish`. What was written
    and what was sent is committed together when the block is left, and an exception undoes both. All other
    writers may have to wait for it, so it ends by itself after its limit. Inside it, `app.send` is not a part of it.

    >>> import asyncio
    >>> from tempfile import TemporaryDirectory
    >>> from mainspring import Mainspring
    >>> from mainspring.testing.samples import Count, Counter
    >>> async def main(folder: str) -> None:
    ...     app = Mainspring(f"sqlite:///{folder}/shop.db")
    ...     app.add(Counter())
    ...     async with app:
    ...         async with app.transaction() as transaction:
    ...             await transaction.execute("CREATE TABLE visits (who TEXT)")
    ...             await transaction.execute("INSERT INTO visits VALUES ($1)", "ann")
    ...             receipt = transaction.send(Count("c-1"))
    ...         print(receipt.status)
    >>> with TemporaryDirectory() as folder:
    ...     asyncio.run(main(folder))
    accepted
    """

    def __init__(self, internals: Internals, limit: timedelta) -> None:
        self._internals = internals
        self._limit_seconds = checked_transaction(limit).total_seconds()
        self._loan: Loan | None = None
        self._sent: list[tuple[Pending, Receipt[Any]]] = []

    async def __aenter__(self) -> Self:
        if self._loan is not None:
            raise LendingError("This transaction was begun before", "Call app.transaction() for another one.")
        engine = self._internals.engine
        try:
            async with asyncio.timeout(TURN_SECONDS):
                self._loan = await engine.store.lend(engine.committer.worker, self._limit_seconds)
        except TimeoutError as late:
            raise LendingError(
                f"Others have been before this transaction for {TURN_SECONDS:g} s",
                "Do less in each; on PostgreSQL, give the app more `connections` in its URL.",
            ) from late
        return self

    async def __aexit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if self._loan is None:
            return
        if error is not None:
            await unbroken(self._loan.roll_back())
            return
        rows = [pending.input_row() for pending, _ in self._sent]
        requires = [pending.requires for pending, _ in self._sent]
        # A caller cancelled now must not leave it half open, and learns afterwards what became of it.
        try:
            outcomes = await unbroken(self._loan.accept(rows, requires))
        finally:
            await unbroken(self._loan.roll_back())  # unless it has ended: a message may not even have got there
        # All of them first: if one is refused, none of the others was taken in.
        for (pending, _), outcome in zip(self._sent, outcomes, strict=True):
            _check(pending, outcome)
        for (_, receipt), outcome in zip(self._sent, outcomes, strict=True):
            receipt.status = "duplicate" if isinstance(outcome, Duplicate) else "accepted"

    # ---- messages

    def send(self, message: Message, **options: Unpack[SendOptions]) -> Receipt[Any]:
        """Send a message to the one workflow that takes it, if the transaction commits. It is not awaited.

        What is wrong with the message is raised here; an id that was used for another message, and an instance that is
        not as `must_exist` or `expected_position` asks, when the block is left: then nothing was written.
        """
        pending = self._internals.engine.intake.sent(message, **options)
        return self._take([pending])[0]

    def publish(
        self, message: Message, *, id: str | None = None, actor: str | None = None, correlation_id: str | None = None
    ) -> list[Receipt[Any]]:
        """Publish a message to all who want it, if the transaction commits."""
        envelopes = self._internals.engine.intake
        return self._take(envelopes.published(message, id=id, actor=actor, correlation_id=correlation_id))

    def _take(self, pendings: list[Pending]) -> list[Receipt[Any]]:
        self._connection.check()
        if len(self._sent) + len(pendings) > MESSAGES_PER_TRANSACTION:
            raise LendingError(
                f"More than {MESSAGES_PER_TRANSACTION:,} messages were sent in one transaction",
                "Send fewer in each: others wait for it.",
            )
        self._internals.engine.intake.handed_over(pendings)
        taken: list[Receipt[Any]] = []
        for pending in pendings:
            pending.answer = Answer()
            receipt: Receipt[Any] = Receipt(self._internals, pending)
            self._sent.append((pending, receipt))
            taken.append(receipt)
        return taken

    # ---- statements

    async def execute(self, statement: str, *values: Any) -> None:
        """Run a statement."""
        await self._connection.execute(statement, *values)

    async def executemany(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement once for each row of values."""
        await self._connection.executemany(statement, rows)

    async def fetch(self, statement: str, *values: Any) -> list[Any]:
        """Return all rows of a query; each can be read by place and by name."""
        return await self._connection.fetch(statement, *values)

    async def fetchrow(self, statement: str, *values: Any) -> Any:
        """Return the first row of a query, or None."""
        return await self._connection.fetchrow(statement, *values)

    async def fetchval(self, statement: str, *values: Any) -> Any:
        """Return the first value of a query's first row, or None."""
        return await self._connection.fetchval(statement, *values)

    @property
    def _connection(self) -> Connection:
        if self._loan is None:
            raise LendingError("This transaction has not begun", "Use it inside `async with app.transaction() as …:`.")
        return self._loan.connection


def checked_transaction(limit: object) -> timedelta:
    """Return how long a transaction may take, if that is not too long for all who wait for it.

    >>> checked_transaction(timedelta(seconds=2))
    datetime.timedelta(seconds=2)
    """
    if not isinstance(limit, timedelta) or not timedelta(0) < limit <= LONGEST_TRANSACTION:
        fix = f"Use a timedelta of at most {LONGEST_TRANSACTION.seconds} s: others wait for a transaction."
        raise SettingError("limit", limit, fix)
    return limit


def _check(pending: Pending, outcome: Outcome) -> None:
    if isinstance(outcome, Unmet):
        raise unmet_error(pending, outcome)
    if isinstance(outcome, Duplicate) and not outcome.same:
        raise DuplicateIdError(str(pending.ref), pending.id)
