"""Instances that seem stuck: suspended ones, those that run longer than their workflow says or stay unusually long.

One that is suspended is stuck for certain, and comes first; then those of which something is wrong, then those that
wait as they should, only for long.

What is unusual, the finished stays in the same state say. Their durations spread over magnitudes, so logarithms are
compared: the median, and the median distance from it, which a few odd ones do not move. The fence lies so far above the
median that of all stays, finished and not, half a one would be expected behind it if they were alike (Chauvenet's
criterion): no threshold has to be set, and the more instances there are, the further it moves away. It is never nearer
than a minute: where others were answered in milliseconds, one may take seconds, and a person does.

Why an instance does not go on: what it waits for, the likeliest first.

The store is asked for all of these; what is found first is the cause:

    suspended      an input or a handler failed, or an operator stopped it
    dead letter    a message that it sent could not be carried out, and was neither retried nor discarded
    paused         an operator has paused its workflow, or the handler of a command, or a child waits for such a pause
    lost           a command or an input of it was lost with one worker after the other, and may be why they ended
    held back      a command is due, and workers hold back what goes to its destination: a breaker is open there
    unread         an input, a command, a timer or its own stream has waited for a minute, and no worker can read it
    failing        a handler is tried again and again, and fails
    inbox          inputs wait that no worker takes
    handler        a command is due, or in a handler's hands
    child          a child or a fan-out has not ended
    task           a person was asked
    timer          a timer is to fire
    dead letter    a message that came to it could not be taken
    nothing        nothing is under way: only a message from outside can wake it
    damaged        what it waits for cannot be read
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from statistics import NormalDist
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from mainspring.analysis.export.viewed_store import paused
from mainspring.analysis.figures.account import Question, count
from mainspring.analysis.figures.samples import RELATIVE_ERROR, Sample
from mainspring.analysis.figures.tally import Wait, WorkflowTally
from mainspring.analysis.processes import Sharing
from mainspring.analysis.stuck.awaited import awaited_of
from mainspring.analysis.stuck.held import held_back, paused_among, paused_below, span, suspected, told_of
from mainspring.engine.fleet.unread import Fleet, fleet_of
from mainspring.engine.operations.pauses import Pause
from mainspring.engine.recording.stored_values import moment, time_us_of
from mainspring.engine.registry import Registry
from mainspring.errors import DamagedRecordError
from mainspring.port.records import DeadLetter, InstanceFilter, OutputClaim, Ref
from mainspring.port.store import Store
from mainspring.port.tasks import TaskRow
from mainspring.views import OpenChild

Cause: TypeAlias = Literal[
    "suspended",
    "dead letter",
    "paused",
    "lost",
    "held back",
    "unread",
    "failing",
    "inbox",
    "handler",
    "child",
    "task",
    "timer",
    "nothing",
    "gone",
    "damaged",
]

OUTPUTS_LOOKED_AT: Final = 20
INPUTS_LOOKED_AT: Final = 100
LETTERS_LOOKED_AT: Final = 10_000
LETTERS_PER_PAGE: Final = 200
CAUSES_TOLD: Final = 3


class Reason(Struct, frozen=True):
    """The likeliest cause, and it and the next ones in words.

    >>> Reason("timer", ("the timer PaymentTimedOut is due in 4 min",)).text
    'the timer PaymentTimedOut is due in 4 min'
    """

    cause: Cause
    texts: tuple[str, ...]

    @property
    def text(self) -> str:
        """All in one line."""
        return "; ".join(self.texts)


_Told: TypeAlias = list[tuple[Cause, str]]


class _Workers(Struct, frozen=True):
    """What is paused for the workers that run, what they hold back, by destinations, and what they know."""

    paused: Sequence[Pause]
    held: Mapping[str, str]
    fleet: Fleet | None
    suspected: Mapping[Ref, Sequence[str]]


async def reasons_of(store: Store, refs: Sequence[Ref], registry: Registry | None = None) -> list[Reason]:
    """Return why each of these instances does not go on. Which instances their children are, a registry tells."""
    if not refs:
        return []
    letters = await letters_of(store, set(refs))
    workers = _Workers(await paused(store), await held_back(store), await fleet_of(store), await suspected(store))
    return [await _readable(store, ref, letters.get(ref, []), workers, registry) for ref in refs]


async def _readable(
    store: Store, ref: Ref, letters: Sequence[DeadLetter], workers: _Workers, registry: Registry | None
) -> Reason:
    """Return a reason also where reading it fails: that failure may be the reason."""
    try:
        return await _reason(store, ref, letters, workers, registry)
    except DamagedRecordError as error:
        return Reason("damaged", (str(error),))


async def letters_of(store: Store, refs: set[Ref]) -> dict[Ref, list[DeadLetter]]:
    """Return the dead letters of instances, as far as they are among the first of all."""
    found: dict[Ref, list[DeadLetter]] = {}
    after = looked_at = 0
    while looked_at < LETTERS_LOOKED_AT and (page := await store.dead_letters(LETTERS_PER_PAGE, after)):
        after, looked_at = page[-1].id, looked_at + len(page)
        for letter in page:
            ref = Ref(letter.workflow, letter.instance)
            if ref in refs:
                found.setdefault(ref, []).append(letter)
    return found


async def _reason(
    store: Store, ref: Ref, letters: Sequence[DeadLetter], workers: _Workers, registry: Registry | None
) -> Reason:
    (loaded,) = await store.load([ref], most=1)
    if loaded is None or loaded.row.purged_us is not None:
        return Reason("gone", ("it has been purged meanwhile",))
    row, now_us = loaded.row, store.now_us()
    told: _Told = []
    if row.status == "suspended":
        told.append(("suspended", f"suspended: {row.error or 'no reason was given'}"))
    told += _each("dead letter", (_letter(letter) for letter in letters if letter.output is not None))
    outputs = await store.outputs(ref, timers=False, limit=OUTPUTS_LOOKED_AT)
    timers = await store.outputs(ref, timers=True, limit=OUTPUTS_LOOKED_AT)
    waiting = await store.inbox(ref, INPUTS_LOOKED_AT)
    held, awaited = workers.held, await awaited_of(store, row, registry)
    told += _each("paused", paused_among(workers.paused, ref, waiting, [*outputs, *timers], now_us))
    told += _each("paused", await paused_below(store, workers.paused, awaited.children, registry))
    told += _each("lost", workers.suspected.get(ref, ()))
    told += _each("held back", dict.fromkeys(held[claim.type] for claim in outputs if claim.type in held))
    if row.status != "suspended":
        told += _each("unread", told_of(workers.fleet, ref, waiting, [*outputs, *timers]))
    told += _each("failing", (_failing(claim, now_us) for claim in outputs if claim.attempts))
    if waiting and row.status != "suspended":
        more = f", and {len(waiting) - 1:,} more after it" if len(waiting) > 1 else ""
        more = more.replace(" more", " or more") if len(waiting) == INPUTS_LOOKED_AT else more
        told.append(("inbox", f"{waiting[0].type} came {_ago(waiting[0].time_us, now_us)}{more}: no worker took it"))
    told += _each("handler", (_waiting(claim, now_us) for claim in outputs if not claim.attempts))
    told += _each("child", (_child(child, now_us) for child in awaited.children))
    told += _each("task", (_task(task, now_us) for task in awaited.tasks))
    told += _each("timer", (_timer(claim, now_us) for claim in timers))
    told += _each("dead letter", (_letter(letter) for letter in letters if letter.output is None))
    if not told:
        told.append(("nothing", "nothing is under way: only a message from outside can wake it"))
    return Reason(told[0][0], tuple(text for _, text in told[:CAUSES_TOLD]))


def _each(cause: Cause, texts: Iterable[str]) -> _Told:
    return [(cause, text) for text in texts]


def _letter(letter: DeadLetter) -> str:
    why = letter.error or letter.reason
    return f"{letter.type} is dead letter {letter.id} after {_counted(letter.attempts, 'attempt')}: {why}"


def _failing(claim: OutputClaim, now_us: int) -> str:
    next_try = "now" if claim.due_us <= now_us else f"in {span(claim.due_us - now_us)}"
    why = f": {claim.error}" if claim.error else ""
    return f"{claim.type} failed {_counted(claim.attempts, 'time')}, next try {next_try}{why}"


def _waiting(claim: OutputClaim, now_us: int) -> str:
    if claim.due_us > now_us:
        return f"{claim.type} is to be carried out in {span(claim.due_us - now_us)}"
    return f"{claim.type} was due {_ago(claim.due_us, now_us)}, and has no result yet"


def _timer(claim: OutputClaim, now_us: int) -> str:
    if claim.due_us > now_us:
        return f"the timer {claim.type} is due in {span(claim.due_us - now_us)}"
    return f"the timer {claim.type} was due {_ago(claim.due_us, now_us)}, and no worker took it"


def _child(child: OpenChild, now_us: int) -> str:
    if not child.is_fan_out:
        return f"its child, begun by {child.type} {_ago(time_us_of(child.began), now_us)}, has not ended"
    progress = f": {child.progress}" if child.progress else ""
    return f"its fan-out, begun {_ago(time_us_of(child.began), now_us)}, has not ended{progress}"


def _task(task: TaskRow, now_us: int) -> str:
    whom = task.person or task.role or "anybody"
    held = f", held by {task.claimed_by}" if task.claimed_by else ""
    return f"the task {task.title!r} was opened for {whom} {_ago(task.opened_us, now_us)}{held}"


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what if count == 1 else what + 's'}"


def _ago(time_us: int, now_us: int) -> str:
    return f"{span(now_us - time_us)} ago" if now_us - time_us >= 1_000_000 else "just now"


LEAST_STAYS: Final = 20
"""Fewer finished stays in a state say nothing about what is unusual there."""
LEAST_FENCE_SECONDS: Final = 60
"""A shorter stay is not called stuck, however quick the others were."""
SHOWN: Final = 50

# The median distance of normally distributed values is so much smaller than their standard deviation.
_SIGMAS: Final = 1.4826
_MICROSECOND: Final = timedelta(microseconds=1)

By: TypeAlias = Literal["suspended", "bound", "dwell"]
# What is waited for as it should be: nothing is wrong, as far as can be seen.
_AS_IT_SHOULD: Final = frozenset({"paused", "handler", "child", "task", "timer", "nothing", "gone"})


class Stuck(Struct, frozen=True):
    """An instance that seems stuck.

    `by` says why it is here: `suspended`, it goes on only when it is resumed; `bound`, it runs longer than its
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


class StuckLine(Struct, frozen=True):
    """A line of a flow's code, and those that seem stuck and wait there."""

    line: str
    text: str
    instances: tuple[str, ...]


class StuckFound(Struct, frozen=True):
    """Those that seem stuck, the worst first, and how many there are in all. `looked_at` had not ended."""

    at: datetime
    shown: tuple[Stuck, ...]
    found: int
    looked_at: int
    held_back: tuple[str, ...] = ()
    """What does not go on now, whosever it is, in words."""
    lines: tuple[StuckLine, ...] = ()
    """The lines at which the flows among those that are shown wait."""


class Fence(Struct, frozen=True):
    """Behind which time a stay in a state is unusual, by so many finished ones."""

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
    # Where all took equally long, the fence is not nearer than what a sample can distinguish.
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
    where there are many. `progress` is called with the number of instances read since its last call. With a
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
