"""Tallies of the instances that a search finds: counted here, or by several processes where there are many."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable
from typing import Final, TypeAlias

from msgspec import Struct

from mainspring.analysis.account import FIRST_US, LAST_US, Account
from mainspring.analysis.helpers import Sharing, shared
from mainspring.analysis.rows import INSTANCES_PER_PAGE, pages_of
from mainspring.analysis.tally import WorkflowTally
from mainspring.app import Mainspring
from mainspring.app.search import found
from mainspring.port.records import InstanceFilter, InstanceRow
from mainspring.port.store import Store

PAGES_ALONE: Final = 25
"""So many pages are counted sooner than other processes are started."""
STRETCHES_PER_PROCESS: Final = 32
"""Few enough that each is worth its way there and back, many enough that no process waits long for the others."""

Stretch: TypeAlias = tuple[int, int]
"""Instances by their keys: behind the first, up to the second."""


class Question(Struct, frozen=True):
    """What is to be counted: what happened from a moment to another, and what runs too long now.

    `bounds` are how long instances of a workflow may run, in microseconds.

    >>> Question(now_us=0).bounds
    {}
    """

    now_us: int
    since_us: int | None = None
    until_us: int | None = None
    bounds: dict[str, int] = {}

    def account(self) -> Account:
        """Return an account that counts it."""
        since_us = FIRST_US if self.since_us is None else self.since_us
        return Account(self.now_us, since_us, LAST_US if self.until_us is None else self.until_us, self.bounds)


class Counted(Struct):
    """The tallies by workflow, and how many instances were looked at.

    >>> Counted().instances
    0
    """

    tallies: dict[str, WorkflowTally] = {}
    instances: int = 0

    def add(self, other: Counted) -> None:
        """Take what was counted of other instances."""
        self.instances += other.instances
        for workflow, tally in other.tallies.items():
            if workflow in self.tallies:
                self.tallies[workflow].merge(tally)
            else:
                self.tallies[workflow] = tally


async def count(
    store: Store,
    where: InstanceFilter,
    question: Question,
    sharing: Sharing | None = None,
    progress: Callable[[int], None] | None = None,
) -> Counted:
    """Read the streams of the instances that are found, and return what was counted.

    `progress` is told how many instances were looked at since it was told last.
    """
    counted = Counted()
    account, alone = question.account(), 0
    async for page in pages_within(store, where):
        async for outlines in pages_of(store, page):
            account.take(outlines)
        _tell(progress, len(page))
        alone += 1
        if sharing is not None and sharing.processes > 1 and alone == PAGES_ALONE:
            parts = stretches(store, page[-1].key, sharing.processes * STRETCHES_PER_PROCESS)
            async for part in shared(parts, functools.partial(_count, where, question), sharing):
                counted.add(part)
                _tell(progress, part.instances)
            break
    counted.add(Counted(account.closed(), account.instances))
    return counted


async def _count(where: InstanceFilter, question: Question, app: Mainspring, stretch: Stretch) -> Counted:
    account = question.account()
    async for page in pages_within(app.engine.store, where, *stretch):
        async for outlines in pages_of(app.engine.store, page):
            account.take(outlines)
    return Counted(account.closed(), account.instances)


async def pages_within(
    store: Store, where: InstanceFilter, after: int = 0, last: int | None = None
) -> AsyncIterator[list[InstanceRow]]:
    """Return the instances that are found behind a key, up to another one or to the end."""
    while page := await found(store, where, INSTANCES_PER_PAGE, after):
        after = page[-1].key
        if last is not None and after >= last:
            yield [row for row in page if row.key <= last]
            return
        yield page


async def stretches(store: Store, after: int, most: int) -> AsyncIterator[Stretch]:
    """Divide the instances behind a key, without those that begin from now on."""
    last = await _last_key(store)
    length = max(INSTANCES_PER_PAGE, -(-(last - after) // most))
    for begin in range(after, last, length):
        yield begin, min(begin + length, last)


async def _last_key(store: Store) -> int:
    """Return the key of the last instance; 0 if there is none."""
    found = await store.search(InstanceFilter(), 1, newest=True)
    while not found.rows and found.next is not None:  # many at the end may be purged
        found = await store.search(InstanceFilter(), 1, found.next, newest=True)
    return found.rows[0].key if found.rows else 0


def _tell(progress: Callable[[int], None] | None, instances: int) -> None:
    if progress is not None:
        progress(instances)
