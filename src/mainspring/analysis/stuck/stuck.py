"""Instances that seem stuck: suspended ones, those that run longer than their workflow says or stay unusually long.

One that is suspended is stuck for certain, and comes first; then those of which something is wrong, then those that
wait as they should, only for long.

What is unusual, the finished stays in the same state say. Their durations spread over magnitudes, so logarithms are
compared: the median, and the median distance from it, which a few odd ones do not move. The fence lies so far above the
median that of all stays, finished and not, half a one would be expected behind it if they were alike (Chauvenet's
criterion): nobody sets a threshold, and the more instances there are, the further it moves away. It is never nearer
than a minute: where others were answered in milliseconds, one may take seconds, and a person does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from statistics import NormalDist
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from mainspring.analysis.figures.account import Question, count
from mainspring.analysis.figures.samples import RELATIVE_ERROR, Sample
from mainspring.analysis.figures.tally import Wait, WorkflowTally
from mainspring.analysis.processes import Sharing
from mainspring.analysis.stuck.reasons import Reason, reasons_of
from mainspring.engine.recording.stored_values import moment
from mainspring.engine.registry import Registry
from mainspring.port.records import InstanceFilter, Ref
from mainspring.port.store import Store

LEAST_STAYS: Final = 20
"""Fewer finished stays in a state say nothing about what is unusual there."""
LEAST_FENCE_SECONDS: Final = 60
"""Nobody is called stuck for a shorter stay, however quick the others were."""
SHOWN: Final = 50

# The median distance of normally distributed values is so much smaller than their standard deviation.
_SIGMAS: Final = 1.4826
_MICROSECOND: Final = timedelta(microseconds=1)

By: TypeAlias = Literal["suspended", "bound", "dwell"]
# What is waited for as it should be: nothing is wrong, as far as can be seen.
_AS_IT_SHOULD: Final = frozenset({"paused", "handler", "child", "task", "timer", "nothing", "gone"})


class Stuck(Struct, frozen=True):
    """An instance that seems stuck.

    `by` says why it is here: `suspended`, it goes on only when somebody lets it; `bound`, it runs longer than its
    workflow's `expected_within`; `dwell`, it is unusually long in its state. `limit_seconds` is that bound, or the
    fence; `usual_seconds` the median of the finished stays in this state, and `stays` how many there were.
    """

    instance: str
    workflow: str
    id: str
    status: str
    state: str
    by: By
    running_seconds: float
    state_seconds: float
    limit_seconds: float | None
    usual_seconds: float | None
    stays: int
    reason: Reason


class StuckFound(Struct, frozen=True):
    """Those that seem stuck, the worst first, and how many there are in all. `looked_at` had not ended.

    >>> StuckFound(moment(0), (), 0, 0).found
    0
    """

    at: datetime
    shown: tuple[Stuck, ...]
    found: int
    looked_at: int
    held_back: tuple[str, ...] = ()
    """What does not go on now, whosever it is, in words."""


class Fence(Struct, frozen=True):
    """Behind which time a stay in a state is unusual, by so many finished ones.

    >>> Fence(60_000_000.0, 5_000_000.0, 40).limit_us
    60000000.0
    """

    limit_us: float
    usual_us: float
    stays: int


def fence_of(finished: Sample, waiting: int) -> Fence | None:
    """Return the fence for a state, or None where too few stays have finished.

    >>> sample = Sample()
    >>> sample.values.extend(range(90_000_000, 110_000_000, 500_000))
    >>> fence = fence_of(sample, waiting=1)
    >>> 110 < fence.limit_us / 1e6 < 140
    True
    """
    stays = len(finished)
    if stays < LEAST_STAYS:
        return None
    middle, distance = finished.log_middle()
    # Where all took equally long, the fence is not nearer than what a sample can tell apart.
    sigma = max(distance, RELATIVE_ERROR) * _SIGMAS
    sigmas = NormalDist().inv_cdf(1 - 1 / (2 * (stays + waiting)))
    return Fence(max(math.exp(middle + sigmas * sigma), LEAST_FENCE_SECONDS * 1e6), math.exp(middle), stays)


async def stuck_of(
    store: Store,
    where: InstanceFilter,
    bounds: Mapping[str, timedelta],
    limit: int = SHOWN,
    sharing: Sharing | None = None,
    progress: Callable[[int], None] | None = None,
    registry: Registry | None = None,
) -> StuckFound:
    """Read the streams of the instances that are found, and return those that seem stuck, with the likely reason.

    `bounds` are how long instances of a workflow are expected to run. With `sharing`, other processes help
    where there are many. `progress` is told how many instances were looked at since it was told last. With a
    `registry`, it is known which instances the children are that they wait for, and whether those wait for a pause.
    """
    now_us = store.now_us()
    question = Question(now_us, bounds={name: bound // _MICROSECOND for name, bound in bounds.items()})
    counted = await count(store, where, question, sharing, progress)
    suspects: list[_Suspect] = []
    found = looked_at = 0
    for workflow, tally in sorted(counted.tallies.items()):
        looked_at += sum(len(sample) for sample in tally.waiting.values())
        more, how_many = _suspects(workflow, tally, bounds.get(workflow))
        suspects += more
        found += how_many
    suspects.sort(key=lambda suspect: (suspect.by != "suspended", -suspect.excess, suspect.workflow, suspect.wait.id))
    chosen = suspects[:limit]
    reasons = await reasons_of(store, [Ref(s.workflow, s.wait.id) for s in chosen], registry)
    shown = [_told(suspect, reason, now_us) for suspect, reason in zip(chosen, reasons, strict=True)]
    shown.sort(key=lambda one: (one.by != "suspended", one.reason.cause in _AS_IT_SHOULD))
    return StuckFound(moment(now_us), tuple(shown), found, looked_at)


def bounds_of(registry: Registry) -> dict[str, timedelta]:
    """Return how long instances of each workflow are expected to run, of those that say so."""
    bounds = {name: entry.definition.expected_within for name, entry in registry.workflows.items()}
    return {name: bound for name, bound in bounds.items() if bound is not None}


class _Suspect(Struct, frozen=True):
    workflow: str
    wait: Wait
    by: By
    limit_us: float | None
    fence: Fence | None

    @property
    def excess(self) -> float:
        """How many times over the limit it is; of a suspended one, how old."""
        if self.limit_us is None:
            return self.wait.age_us
        return self.wait.age_us / self.limit_us if self.limit_us else math.inf


def _suspects(workflow: str, tally: WorkflowTally, bound: timedelta | None) -> tuple[list[_Suspect], int]:
    """Return those of a workflow that wait longest, and how many there are."""
    fences = {
        state: fence_of(tally.dwell[state], len(waiting)) if state in tally.dwell else None
        for state, waiting in tally.waiting.items()
    }
    bound_us = (bound or timedelta(0)) // _MICROSECOND
    found = [_Suspect(workflow, wait, "suspended", None, fences[wait.state]) for wait in tally.suspended.longest()]
    found += [_Suspect(workflow, wait, "bound", bound_us, fences[wait.state]) for wait in tally.overdue.longest()]
    how_many = tally.suspended_count + tally.overdue_count
    for state, fence in fences.items():
        if fence is not None and state in tally.waits:
            longest = [wait for wait in tally.waits[state].longest() if wait.age_us > fence.limit_us]
            found += [_Suspect(workflow, wait, "dwell", fence.limit_us, fence) for wait in longest]
            # What is read from buckets may be less than what was seen.
            how_many += max(tally.in_time[state].above(fence.limit_us), len(longest))
    return found, how_many


def _told(suspect: _Suspect, reason: Reason, now_us: int) -> Stuck:
    wait, fence = suspect.wait, suspect.fence
    return Stuck(
        instance=f"{suspect.workflow}/{wait.id}",
        workflow=suspect.workflow,
        id=wait.id,
        status=wait.status,
        state=wait.state,
        by=suspect.by,
        running_seconds=(now_us - wait.began_us) / 1e6,
        state_seconds=(now_us - wait.entered_us) / 1e6,
        limit_seconds=None if suspect.limit_us is None else suspect.limit_us / 1e6,
        usual_seconds=None if fence is None else fence.usual_us / 1e6,
        stays=0 if fence is None else fence.stays,
        reason=reason,
    )
