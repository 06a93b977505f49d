"""Group commit: a batch in one transaction, retried after losing a race, and unit by unit if one is faulty."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Final

import asyncpg  # pyright: ignore[reportMissingTypeStubs]  it has none

from mainspring.errors import FaultyUnitError, StoreError, StoreUnreachableError
from mainspring.port.records import Outcome, Unit
from mainspring.stores.commit.changes import Changes
from mainspring.stores.commit.facts import Name
from mainspring.stores.commit.judge import Judge
from mainspring.stores.commit.questions import Questions
from mainspring.stores.postgres.address import Address
from mainspring.stores.postgres.changes import Writing
from mainspring.stores.postgres.dialect import DIALECT
from mainspring.stores.postgres.facts import PostgresFacts, PostgresKnown, known_here
from mainspring.stores.postgres.faults import AGAIN, FAULTY, LOST, translated
from mainspring.stores.postgres.transaction import Transaction, Transactions
from mainspring.stores.sql.dialogue import run_async
from mainspring.stores.sql.tasks import write_tasks

TRIES: Final = 8
LONGEST_PAUSE_SECONDS: Final = 1.0
TRIES_TOGETHER: Final = 4


class Batches:
    """Commits batches. `now_us` overrides the database's clock, `on_news` is called when there is unclaimed work."""

    def __init__(
        self,
        address: Address,
        transactions: Transactions,
        now_us: Callable[[], int | None],
        on_news: Callable[[], None],
    ) -> None:
        self._address = address
        self._transactions = transactions
        self.now_us = now_us
        self._on_news = on_news

    async def commit(self, worker: int, units: Sequence[Unit]) -> list[Outcome]:
        """Apply units in order, and return an outcome each, when they are durable."""
        if not units:
            return []
        for left in reversed(range(TRIES)):
            try:
                return await self._once(worker, units)
            except FAULTY:
                return await self._unit_by_unit(worker, units)
            except (*AGAIN, *LOST, StoreUnreachableError) as error:
                # What was lost was not committed: that has been asked.
                if isinstance(error, asyncpg.UniqueViolationError) and left <= TRIES - TRIES_TOGETHER:
                    # Another process's row is a fact the next time. What is still in the way now is a row that does not
                    # fit the others, and the neighbours' units must not wait for it.
                    return await self._unit_by_unit(worker, units)
                if not left:
                    raise
                # The transaction in the way has just ended; a lost server takes longer to come back. With jitter, or
                # all would collide again.
                pause = 0.001 if isinstance(error, AGAIN) else 0.02
                most = min(LONGEST_PAUSE_SECONDS, pause * 2 ** (TRIES - left))
                await asyncio.sleep(random.uniform(most / 2, most))  # noqa: S311  no secret
        raise AssertionError

    async def apply(self, transaction: Transaction, worker: int, units: Sequence[Unit]) -> tuple[list[Outcome], bool]:
        """Apply units inside a transaction. Return their outcomes, and whether there is unclaimed work now."""
        outcomes, changes = await self._apply(transaction, worker, units, set(), 0)
        return outcomes, changes.news

    def tell(self) -> None:
        """There is unclaimed work."""
        self._on_news()

    async def _once(self, worker: int, units: Sequence[Unit]) -> list[Outcome]:
        async with self._transactions.transaction() as transaction:
            outcomes, changes = await self._apply(transaction, worker, units, set(), 0)
        if changes.news:
            self._on_news()
        return outcomes

    async def _apply(
        self, transaction: Transaction, worker: int, units: Sequence[Unit], void: set[Name], events: int
    ) -> tuple[list[Outcome], Changes[PostgresKnown]]:
        """Apply units inside a transaction that has appended so many events before."""
        questions = Questions([(worker, unit) for unit in units], known_here)
        facts = PostgresFacts(worker, questions)
        await facts.lock(transaction)
        await facts.ask(transaction)
        now_us = self.now_us()
        changes: Changes[PostgresKnown] = Changes(facts.database_us if now_us is None else now_us)
        outcomes = Judge(questions, facts, changes, void).decide()
        await Writing(transaction, changes, worker, facts.first_position + events).write()
        if questions.asked:
            await run_async(write_tasks(DIALECT, facts.tasks), transaction.rows)
        return outcomes, changes

    async def _unit_by_unit(self, worker: int, units: Sequence[Unit]) -> list[Outcome]:
        """Commit what can be committed of a batch in which a unit is faulty: each behind a savepoint."""
        void: set[Name] = set()
        outcomes: list[Outcome | StoreError] = []
        events, news = 0, False
        async with self._transactions.transaction() as transaction:
            for unit in units:
                await transaction.session.run("SAVEPOINT unit")
                try:
                    (outcome,), changes = await self._apply(transaction, worker, [unit], void, events)
                except (*FAULTY, asyncpg.UniqueViolationError) as fault:
                    await transaction.session.run("ROLLBACK TO SAVEPOINT unit")
                    if unit.expected_version is not None:
                        void.add((unit.workflow, unit.instance))
                    outcomes.append(translated(str(self._address), fault))
                    continue
                await transaction.session.run("RELEASE SAVEPOINT unit")
                events += len(changes.events)
                news |= changes.news
                outcomes.append(outcome)
        if news:
            self._on_news()
        if any(isinstance(outcome, StoreError) for outcome in outcomes):
            raise FaultyUnitError(str(self._address), outcomes)
        return [outcome for outcome in outcomes if not isinstance(outcome, StoreError)]
