"""The report on workflows: throughput, durations, failures, states, commands, paths and costs. Made from tallies."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime
from typing import Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from mainspring.analysis.figures.account import Question, count
from mainspring.analysis.figures.samples import Bin, Spread
from mainspring.analysis.figures.tally import CommandTally, VariantsFound, WorkflowTally
from mainspring.analysis.figures.timeline import Throughput
from mainspring.analysis.processes import Sharing
from mainspring.engine.recording.stored_values import moment
from mainspring.port.records import InstanceFilter
from mainspring.port.store import Store

VARIANTS_SHOWN: Final = 10
# Rows of instances have the time of the commit, and events that of the step, by another clock perhaps: those that moved
# shortly before or began shortly after are read too, and what is counted is decided by their events.
SLACK_US: Final = 3_600_000_000


class StateFigures(Struct, frozen=True):
    """How long instances stayed in a state. `share` is this state's part of the time in all states of the workflow.

    `waiting` are in it now; their time so far is no part of the other figures. `again` counts how often it was entered
    by an instance that had left it before.
    """

    state: str
    dwell: Spread | None
    share: float
    waiting: int
    again: int


class CommandFigures(Struct, frozen=True):
    """What became of the commands of a type.

    `answered` have a result, a failure among them; `failed` had `SendFailed`, or suspended an instance that does not
    listen. `calls` were answered by handlers, with `attempts` tries in all: `retried` of them needed more than one.
    `retry_rate` is their part of the calls, `failure_rate` the part of failures in the answers. `handling` is how long
    the last try took, and `until_answer` the time from the decision to the answer. `again` were sent by an instance
    that had sent one before.
    """

    type: str
    sent: int
    answered: int
    failed: int
    failure_rate: float | None
    calls: int
    attempts: int
    retried: int
    retry_rate: float | None
    handling: Spread | None
    until_answer: Spread | None
    again: int


class TimerFigures(Struct, frozen=True):
    """How often a timer was set and fired. `over` are those that had not fired when their instance ended."""

    type: str
    set: int
    fired: int
    over: int


class StepFigures(Struct, frozen=True):
    """How often an input led from a state to another; from None where it was the first of its instance."""

    source: str | None
    message: str
    target: str
    count: int


class WorkflowFigures(Struct, frozen=True):
    """All figures of one workflow.

    `statuses` is what its instances are now, of those to which something happened in the time that is looked at;
    `begun`, `ended` and all that follows are what happened in that time. `failure_rate` is the part of failures among
    those that ended by their own decision, `completion_times` how the durations of the completed ones are spread.
    `faults` are inputs or handlers that failed and suspended an instance, `suspensions` what people did. `incomplete`
    instances have no whole history: they are in no dwell, no path and no loop. `handler_seconds` is how long handlers
    worked, as far as it is recorded: of each result, the last try.
    """

    workflow: str
    statuses: dict[str, int]
    begun: int
    ended: dict[str, int]
    failure_rate: float | None
    throughput: Throughput
    durations: dict[str, Spread]
    completion_times: tuple[Bin, ...]
    faults: int
    suspensions: int
    resets: int
    states: tuple[StateFigures, ...]
    commands: tuple[CommandFigures, ...]
    timers: tuple[TimerFigures, ...]
    steps: tuple[StepFigures, ...]
    variants: VariantsFound
    events: int
    bytes: int
    handler_seconds: float
    incomplete: int


AdviceKind: TypeAlias = Literal[
    "failures", "time in a state", "waiting for a worker", "retries", "timer never fires", "branch never taken"
]


class Advice(Struct, frozen=True):
    """Something that is worth a look. `link` is where the studio shows it, `command` what to type for more."""

    kind: AdviceKind
    workflow: str
    subject: str
    figure: str
    text: str
    link: str
    command: str


class Figures(Struct, frozen=True):
    """The figures of all workflows that were looked at, by name; of what happened since a moment and before another.

    `advice` is what of it is worth a look, if that was asked for: see `advice_of`.
    """

    at: datetime
    since: datetime | None
    until: datetime | None
    instances: int
    events: int
    workflows: tuple[WorkflowFigures, ...]
    advice: tuple[Advice, ...] = ()


def moved_within(where: InstanceFilter, since_us: int | None, until_us: int | None) -> InstanceFilter:
    """Return a filter without the instances to which nothing can have happened from a moment to another.

    >>> moved_within(InstanceFilter(), None, 0).created_to_us == SLACK_US
    True
    """
    return replace(
        where,
        created_to_us=None if until_us is None else until_us + SLACK_US,
        updated_from_us=None if since_us is None else since_us - SLACK_US,
    )


async def figures_of(
    store: Store,
    where: InstanceFilter,
    since_us: int | None = None,
    until_us: int | None = None,
    variants: int = VARIANTS_SHOWN,
    sharing: Sharing | None = None,
    progress: Callable[[int], None] | None = None,
) -> Figures:
    """Read the streams of the instances that are found, and return their figures.

    With `sharing`, other processes help where there are many. `progress` is called with the number of instances read
    since it was told last.
    """
    question = Question(store.now_us(), since_us, until_us)
    counted = await count(store, where, question, sharing, progress)
    told = [(name, tally) for name, tally in sorted(counted.tallies.items()) if tally.statuses]
    workflows = tuple(workflow_figures(name, tally, variants) for name, tally in told)
    return Figures(
        moment(question.now_us),
        _moment(since_us),
        _moment(until_us),
        sum(sum(workflow.statuses.values()) for workflow in workflows),
        sum(workflow.events for workflow in workflows),
        workflows,
    )


def workflow_figures(workflow: str, tally: WorkflowTally, variants: int = VARIANTS_SHOWN) -> WorkflowFigures:
    """Return the report on one workflow."""
    commands = tuple(
        _command(type, command) for type, command in sorted(tally.commands.items()) if command.sent or command.answered
    )
    ended = {status: len(sample) for status, sample in sorted(tally.durations.items()) if len(sample)}
    failed = ended.get("failed", 0)
    return WorkflowFigures(
        workflow=workflow,
        statuses=dict(sorted(tally.statuses.items())),
        begun=tally.begun,
        ended=ended,
        failure_rate=_rate(failed, failed + ended.get("completed", 0)),
        throughput=tally.timeline.told(),
        durations={status: spread for status, sample in sorted(tally.durations.items()) if (spread := sample.spread())},
        completion_times=tally.durations["completed"].bins() if "completed" in tally.durations else (),
        faults=tally.faults,
        suspensions=tally.suspensions,
        resets=tally.resets,
        states=_states(tally),
        commands=commands,
        timers=tuple(
            TimerFigures(type, count, tally.timers_fired[type], tally.timers_over[type])
            for type, count in sorted(tally.timers_set.items())
        ),
        steps=tuple(
            StepFigures(*step, count)
            for step, count in sorted(
                tally.steps.items(), key=lambda found: (-found[1], found[0][0] or "", found[0][1:])
            )
        ),
        variants=tally.variants.most(variants),
        events=tally.events,
        bytes=tally.bytes,
        handler_seconds=sum(command.handling.total for command in commands if command.handling),
        incomplete=tally.incomplete,
    )


def _states(tally: WorkflowTally) -> tuple[StateFigures, ...]:
    """Return the states, that in which most time is spent first."""
    spreads = {state: sample.spread() for state, sample in tally.dwell.items()}
    # Exactly, so that the order in which states were seen does not matter.
    total = math.fsum(spread.total for spread in spreads.values() if spread) or 1.0
    states = [
        StateFigures(
            state,
            spread := spreads.get(state),
            spread.total / total if spread else 0.0,
            len(tally.waiting[state]) if state in tally.waiting else 0,
            tally.entered_again[state],
        )
        for state in {*tally.dwell, *tally.waiting, *tally.entered_again}
    ]
    return tuple(sorted(states, key=lambda state: (-state.share, state.state)))


def _command(type: str, tally: CommandTally) -> CommandFigures:
    return CommandFigures(
        type,
        tally.sent,
        tally.answered,
        tally.failed,
        _rate(tally.failed, tally.answered),
        tally.calls,
        tally.attempts,
        tally.retried,
        _rate(tally.retried, tally.calls),
        tally.handling.spread(),
        tally.until_answer.spread(),
        tally.again,
    )


def _rate(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _moment(time_us: int | None) -> datetime | None:
    return None if time_us is None else moment(time_us)
