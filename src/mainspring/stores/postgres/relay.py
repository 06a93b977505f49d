"""The relay: what programs have posted in transactions of their own becomes inputs, in the order of its positions.

One transaction takes messages out of `posted` and accepts them, so each is in one place or in the other. Positions are
drawn before they can be seen: of two transactions that overlapped, either may come first, as with all that is sent at
the same time; what was committed before the other was written comes first.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Final

import asyncpg  # pyright: ignore[reportMissingTypeStubs]  it has none

from mainspring.errors import DamagedRecordError
from mainspring.port.loans import accepting
from mainspring.port.records import Duplicate, InputRow, Outcome, Relayed, Unit
from mainspring.stores.commit.rows import posted_letter, read_posted
from mainspring.stores.postgres.commit import Batches
from mainspring.stores.postgres.faults import AGAIN, FAULTY
from mainspring.stores.postgres.session import Row
from mainspring.stores.postgres.transaction import Transaction, Transactions

# The second number of an advisory lock; those of workers are positive.
RELAYING: Final = -3
# No worker: what is moved is unclaimed.
NO_WORKER: Final = 0
BYTES_AT_ONCE: Final = 16 * 2**20
TRIES: Final = 5
LONGEST_PAUSE_SECONDS: Final = 0.1
USED_BEFORE: Final = "its message id was used before, for another message"


class Relay:
    """Moves posted messages. `tell` is called when there is unclaimed work."""

    def __init__(self, transactions: Transactions, batches: Batches, tell: Callable[[], None]) -> None:
        self._transactions = transactions
        self._batches = batches
        self._tell = tell

    async def relay(self, limit: int) -> Relayed:
        """Move the first messages, and return how many; none while another process is relaying."""
        for left in reversed(range(TRIES)):
            try:
                return await self._once(limit, together=True)
            except FAULTY:
                break
            except AGAIN as error:
                # Another process's row is a fact the next time. What is still in the way at last is a row that does not
                # fit the others, and messages posted behind it must not wait for it.
                if not left:
                    if isinstance(error, asyncpg.UniqueViolationError):
                        break
                    raise
                await asyncio.sleep(random.uniform(0, LONGEST_PAUSE_SECONDS))  # noqa: S311  no secret
        return await self._once(limit, together=False)

    async def _once(self, limit: int, *, together: bool) -> Relayed:
        async with self._transactions.transaction() as transaction:
            if not await transaction.value("relay_alone", transaction.lock_class, RELAYING):
                return Relayed(0)
            rows = await transaction.rows("posted", limit, BYTES_AT_ONCE)
            if not rows:
                return Relayed(0)
            relayed = await Batch(transaction, self._batches, rows).move(together=together)
            await transaction.rows("delete_posted", [row[0] for row in rows])
        self._tell()
        return relayed


class Batch:
    """Posted messages on their way, inside a transaction."""

    def __init__(self, transaction: Transaction, batches: Batches, rows: Sequence[Row]) -> None:
        self._transaction = transaction
        self._batches = batches
        self._count = len(rows)
        self._inputs: list[InputRow] = []
        # What cannot be an input, and why.
        self._refused: list[tuple[InputRow, str]] = []
        for row in rows:
            try:
                self._inputs.append(read_posted(row))
            except DamagedRecordError:
                self._refused.append((InputRow(*row[1:-1]), f"it was damaged after it was posted (position {row[0]})"))

    async def move(self, *, together: bool) -> Relayed:
        """Accept them in their order: at once, or one by one where one of them makes the database fail."""
        if self._inputs and together:
            outcomes, _ = await self._batches.apply(self._transaction, NO_WORKER, accepting(self._inputs))
            for row, outcome in zip(self._inputs, outcomes, strict=True):
                self._judge(row, outcome)
        else:
            for row in self._inputs:
                await self._accept_alone(row)
        letters = tuple(posted_letter(row, reason) for row, reason in self._refused)
        if letters:
            buried = [Unit(letter.workflow, letter.instance, dead_letters=(letter,)) for letter in letters]
            await self._batches.apply(self._transaction, NO_WORKER, buried)
        return Relayed(self._count, letters)

    async def _accept_alone(self, row: InputRow) -> None:
        session = self._transaction.session
        await session.run("SAVEPOINT message")
        try:
            (outcome,), _ = await self._batches.apply(self._transaction, NO_WORKER, accepting([row]))
        except (*FAULTY, asyncpg.UniqueViolationError) as fault:
            await session.run("ROLLBACK TO SAVEPOINT message")
            self._refused.append((row, f"the database refuses it: {fault}"))
        else:
            await session.run("RELEASE SAVEPOINT message")
            self._judge(row, outcome)

    def _judge(self, row: InputRow, outcome: Outcome) -> None:
        if isinstance(outcome, Duplicate) and not outcome.same:
            self._refused.append((row, USED_BEFORE))
