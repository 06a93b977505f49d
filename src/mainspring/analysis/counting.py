"""Tallies of the instances that a search finds: counted here, or by several processes where there are many."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

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
    pages = _pages(store, where)
    account, alone = question.account(), 0
    async for page in pages:
        async for outlines in pages_of(store, page):
            account.take(outlines)
        _tell(progress, len(page))
        alone += 1
        if sharing is not None and sharing.processes > 1 and alone == PAGES_ALONE:
            async for part in shared(pages, functools.partial(_count, question), sharing):
                counted.add(part)
                _tell(progress, part.instances)
    counted.add(Counted(account.closed(), account.instances))
    return counted


async def _count(question: Question, app: Mainspring, page: Sequence[InstanceRow]) -> Counted:
    account = question.account()
    async for outlines in pages_of(app.engine.store, page):
        account.take(outlines)
    return Counted(account.closed(), account.instances)


async def _pages(store: Store, where: InstanceFilter) -> AsyncIterator[list[InstanceRow]]:
    after = 0
    while page := await found(store, where, INSTANCES_PER_PAGE, after):
        yield page
        after = page[-1].key


def _tell(progress: Callable[[int], None] | None, instances: int) -> None:
    if progress is not None:
        progress(instances)
