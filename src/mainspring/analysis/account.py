"""Outlines to tallies: one pass over all events of many instances, page by page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from mainspring.analysis.rows import OutlinePage
from mainspring.analysis.tally import NOT_KEPT, Run, Wait, WorkflowTally
from mainspring.port.records import ENDED, InstanceRow, OutlineSpot

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
        self,
        now_us: int,
        since_us: int = FIRST_US,
        until_us: int = LAST_US,
        bounds: Mapping[str, int] | None = None,
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
            elif event == "Compensated":
                run.undo(version, type, time_us, counted)
            elif event == "Compensating" and cause is None:
                run.lose_sight(time_us, counted)
            elif event in _BESIDE:
                self._beside(run, event, version, time_us, actor, counted, page.resets)
            if kind is not None and cause is not None:
                run.answer(cause, type, time_us, attempt, duration_us, counted)
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
        """Take one whose first input failed: it has no stream, and stands still all the same."""
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
