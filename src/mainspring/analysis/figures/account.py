"""Outlines to tallies: one pass over all events of many instances, page by page.

Tallies of the instances that a search finds: counted here, or by several processes where there are many.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from mainspring.analysis.figures.tally import NOT_KEPT, SEND_FAILED, Run, Wait, WorkflowTally
from mainspring.analysis.processes import Sharing, shared
from mainspring.analysis.streams import OUTLINED_INSTANCES_PER_PAGE, OutlinePage, pages_of
from mainspring.app import Mainspring
from mainspring.app.internals import internals_of
from mainspring.app.search import found
from mainspring.port.records import ENDED, InstanceFilter, InstanceRow, OutlineSpot
from mainspring.port.store import Store

FIRST_US: Final = 0
LAST_US: Final = 253_402_300_800_000_000
"""Times that a calendar knows: 1970 to 9999. What a damaged row places elsewhere moves an instance along only."""

_ENDS: Final = {"Completed": "completed", "Failed": "failed", "Cancelled": "cancelled", "Terminated": "terminated"}
_SENDS: Final = frozenset({"Sent", "Resent", "ChildStarted"})
_BESIDE: Final = frozenset({*_ENDS, "Suspended", "Reset"})


class Account:
    """Takes pages, and keeps a tally for each workflow.

    What happened before `since_us`, or at `until_us` and later, moves an instance along and is not counted; nor is an
    instance to which nothing happened in between. `bounds` are the workflows' own, in microseconds: what runs longer
    at `now_us` is overdue.

    >>> account = Account(now_us=0)
    >>> account.take(OutlinePage([], []))
    >>> account.closed()
    {}
    """

    def __init__(
        self, now_us: int, since_us: int = FIRST_US, until_us: int = LAST_US, bounds: Mapping[str, int] | None = None
    ) -> None:
        self.instances = 0
        self._windowed = (since_us, until_us) != (FIRST_US, LAST_US)
        self._touched = False
        self._now_us, self._since_us, self._until_us = now_us, since_us, until_us
        self._bounds = bounds or {}
        self._tallies: defaultdict[str, WorkflowTally] = defaultdict(WorkflowTally)
        self._rows: dict[int, InstanceRow] = {}
        self._run = self._nobody = Run(WorkflowTally(), 0, 0)

    def take(self, page: OutlinePage) -> None:
        """Take a page. They must come in their order."""
        if page.instances:
            self._open(page.instances)
        run, since_us, until_us = self._run, self._since_us, self._until_us
        for key, version, event, time_us, type, kind, cause, state, attempt, duration_us, actor, size in page.rows:
            if key != run.instance or event == "Began":
                run = self._next(run, key, version, time_us)
            elif version != run.version + 1 and run.whole:
                run.whole = False
                run.tally.incomplete += 1
            run.version = version
            counted = since_us <= time_us < until_us
            if counted:
                run.events += 1
                run.size += size
            if state is not None:
                run.take(version, type, state, time_us, counted)
            elif event in _SENDS:
                run.send(version, type, time_us, counted)
            elif event == "Scheduled":
                run.schedule(version, type, counted)
            elif event == "Compensated":
                run.undo(version, type, time_us, counted)
            elif event == "Compensating" and cause is None:
                run.lose_sight(time_us, counted)
            elif event in _BESIDE:
                self._beside(run, event, version, time_us, actor, counted, page.resets)
            if kind is not None and cause is not None:
                run.answer(cause, type, time_us, attempt, duration_us, counted)
            elif event == "Suspended" and cause is not None:
                run.answer(cause, SEND_FAILED, time_us, None, None, counted)  # its workflow does not listen for that
        self._run = run
        for tally in self._tallies.values():
            tally.settle()

    def closed(self) -> dict[str, WorkflowTally]:
        """Return the tallies, after the last page."""
        self._leave(self._run)
        self._run = self._nobody
        return dict(self._tallies)

    def _open(self, instances: Sequence[InstanceRow]) -> None:
        self._leave(self._run)
        self._run = self._nobody
        self._rows = {row.key: row for row in instances}
        self.instances += len(instances)
        for row in instances:
            if not self._windowed:
                self._tallies[row.workflow].statuses[row.status] += 1
            if row.version == 0 and row.status == "suspended":
                self._take_unbegun(row)

    def _take_unbegun(self, row: InstanceRow) -> None:
        """Count one whose first input failed: it has no stream, and is suspended."""
        counted, tally = self._since_us <= row.updated_us < self._until_us, self._tallies[row.workflow]
        if counted:
            tally.faults += 1
        if self._windowed and counted:
            tally.statuses[row.status] += 1
        if counted or not self._windowed:
            state, since_us = row.state or NOT_KEPT, row.created_us
            tally.wait(Wait(self._now_us - since_us, row.key, row.id, state, since_us, since_us, row.status), None)

    def _next(self, run: Run, key: int, version: int, time_us: int) -> Run:
        """Leave a run for the next: of another instance, or of one that begins anew."""
        anew = key == run.instance
        self._leave(run, is_last=not anew)
        row = self._rows[key]
        whole = version == 1 or anew
        run = Run(self._tallies[row.workflow], key, time_us if whole else row.created_us)
        run.whole = whole
        run.tally.incomplete += not whole
        if self._since_us <= run.began_us < self._until_us:
            run.tally.begun += 1
            run.tally.timeline.add(run.began_us, "begun")
        return run

    def _beside(
        self,
        run: Run,
        event: str,
        version: int,
        time_us: int,
        actor: str | None,
        counted: bool,
        resets: Mapping[OutlineSpot, int | None],
    ) -> None:
        if event == "Reset":
            run.go_back(resets.get((run.instance, version)), version, time_us, counted)
        elif event != "Suspended":
            run.end(_ENDS[event], time_us, counted)
        elif counted and actor is None:
            run.tally.faults += 1
        elif counted:
            run.tally.suspensions += 1

    def _leave(self, run: Run, *, is_last: bool = True) -> None:
        tally = run.tally
        tally.events += run.events
        tally.bytes += run.size
        self._touched = self._touched or run.events > 0
        if not is_last or not run.instance:
            run.tell_path(None)
            return
        row = self._rows[run.instance]
        run.tell_path(row.state)
        touched, self._touched = self._touched, False
        if self._windowed and touched:
            tally.statuses[row.status] += 1
        if run.ended or (self._windowed and not touched):
            return
        state, now_us = run.state or row.state, self._now_us
        # Where the history is not kept, its end may be gone from the stream.
        if state is None or row.status in ENDED:
            return
        # Where the history is not kept, all that is known is when it last moved.
        entered_us = run.entered_us if run.whole else row.updated_us
        wait = Wait(now_us - entered_us, row.key, row.id, state, entered_us, run.began_us, row.status)
        bound_us = self._bounds.get(row.workflow)
        running_us = now_us - run.began_us
        tally.wait(wait, running_us if bound_us is not None and running_us > bound_us else None)


PAGES_ALONE: Final = 25
"""So many pages are counted sooner than other processes are started."""
STRETCHES_PER_PROCESS: Final = 32
"""Few enough that each is worth its way there and back, many enough that no process waits long for the others."""

Stretch: TypeAlias = tuple[int, int]
"""Instances by their keys: behind the first, up to the second."""


class Question(Struct, frozen=True):
    """What is to be counted: what happened from a moment to another, and what runs too long now.

    `bounds` are how long instances of a workflow may run, in microseconds.
    """

    now_us: int
    since_us: int | None = None
    until_us: int | None = None
    bounds: dict[str, int] = {}

    def account(self) -> Account:
        """Return an empty account for this question."""
        since_us = FIRST_US if self.since_us is None else self.since_us
        return Account(self.now_us, since_us, LAST_US if self.until_us is None else self.until_us, self.bounds)


class Counted(Struct):
    """The tallies by workflow, and how many instances were read."""

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

    `progress` is called with the number of instances read since its last call.
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
    async for page in pages_within(internals_of(app).engine.store, where, *stretch):
        async for outlines in pages_of(internals_of(app).engine.store, page):
            account.take(outlines)
    return Counted(account.closed(), account.instances)


async def pages_within(
    store: Store, where: InstanceFilter, after: int = 0, last: int | None = None
) -> AsyncIterator[list[InstanceRow]]:
    """Return the instances that are found behind a key, up to another one or to the end."""
    while page := await found(store, where, OUTLINED_INSTANCES_PER_PAGE, after):
        after = page[-1].key
        if last is not None and after >= last:
            yield [row for row in page if row.key <= last]
            return
        yield page


async def stretches(store: Store, after: int, most: int) -> AsyncIterator[Stretch]:
    """Divide the instances behind a key, without those that begin from now on."""
    last = await _last_key(store)
    length = max(OUTLINED_INSTANCES_PER_PAGE, -(-(last - after) // most))
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
