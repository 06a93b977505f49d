"""What instances did, counted: states, kinds of steps, notes; and a workflow of an app, ready to be drawn.

The miner reads one stream after the other, page by page: of all instances that are found, or of a sample.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Final, TypeAlias

from msgspec import Struct

from mainspring.analysis.figures.samples import Sample
from mainspring.analysis.reading.model import COMPENSATED, Machine, without_roots
from mainspring.analysis.streams import outline_pages, pages_of, sampled
from mainspring.engine.registry import WorkflowEntry
from mainspring.port.records import ENDED, InstanceFilter, InstanceRow, Outline, Status
from mainspring.port.store import Store

BEGIN: Final = "(begin)"
"""Stands for the initial state, where the code that knows it is not there."""


class MinedStep(Struct, frozen=True):
    """A kind of step: in which state, which message led to which state, and how often. `ends` as in a Transition."""

    source: str
    message: str
    target: str
    count: int
    ends: str | None = None
    outputs: tuple[str, ...] = ()


class MinedState(Struct, frozen=True):
    """A state that was seen: how many came, how many are in it now, and the median time of those who left."""

    name: str
    visits: int
    now: int = 0
    dwell_seconds: float | None = None


class Mined(Struct, frozen=True):
    """What the instances of a workflow did. The most frequent comes first."""

    workflow: str
    initial: str | None = None
    instances: int = 0
    states: tuple[MinedState, ...] = ()
    steps: tuple[MinedStep, ...] = ()
    notes: tuple[str, ...] = ()


Output: TypeAlias = tuple[str, str | None]
"""An event's class name, and the type of its message."""

OUTPUTS_KEPT: Final = 20
"""Of one kind of step: the kinds of outputs that are remembered."""

UNCOUNTED: Final = "uncounted"
# What notes report: the event, and the words for one and for many.
SELDOM: Final = {
    "Reset": (
        "reset to an earlier version: what was done before is counted too.",
        "resets to an earlier version: what was done before is counted too.",
    ),
    "Began": ("instance that began anew after its end.", "instances that began anew after their end."),
    "Migrated": ("migration to another version of the workflow.", "migrations to another version of the workflow."),
    "Skipped": ("input that an operator passed over.", "inputs that operators passed over."),
    UNCOUNTED: (
        "step is not counted: it is not recorded in which state it was taken.",
        "steps are not counted: it is not recorded in which state they were taken.",
    ),
}
# Events that record decisions, and the decisions.
DECISIONS: Final = {
    "Sent": "Send",
    "Published": "Publish",
    "Replied": "Reply",
    "Scheduled": "Schedule",
    "Asked": "Ask",
    "AnswerRefused": "RefuseAnswer",
    "ChildStarted": "StartChild",
    "FannedOut": "FanOut",
    "Compensating": "Compensate",
    "Completed": "Complete",
    "Failed": "Fail",
}


class _Kind:
    """One kind of step, while it is counted."""

    __slots__ = ("count", "outputs")

    def __init__(self) -> None:
        self.count = 0
        self.outputs: dict[Output, None] = {}

    def decisions(self) -> tuple[str, ...]:
        """Return what was decided, as decisions are written."""
        return tuple(
            # Of a fan-out the message is the engine's own.
            DECISIONS[event] if type is None or event == "FannedOut" else f"{DECISIONS[event]}({type})"
            for event, type in self.outputs
        )


class _Stay:
    """One state, while it is counted."""

    __slots__ = ("dwell", "now", "visits")

    def __init__(self) -> None:
        self.visits = 0
        self.now = 0
        self.dwell = Sample()

    def state(self, name: str) -> MinedState:
        """Return what is known of it."""
        spread = self.dwell.spread()
        return MinedState(name, self.visits, self.now, None if spread is None else spread.p50)


class Miner:
    """Counts what instances have in common, given one by one.

    `states` are those that the code has, where there is code: after a migration only they are trusted.

    >>> miner = Miner("Orders", initial="New")
    >>> miner.step("New", "PlaceOrder", "Waiting", None, [("Sent", "ChargeCard")])
    >>> miner.mined().steps[0].outputs
    ('Send(ChargeCard)',)
    """

    def __init__(self, workflow: str, initial: str | None = None, states: Iterable[str] = ()) -> None:
        self.initial = initial or BEGIN
        self._workflow = workflow
        self._known_initial = initial
        self._states = frozenset(states)
        self._instances = 0
        self._kinds: dict[tuple[str, str, str, str | None], _Kind] = {}
        self._stays: dict[str, _Stay] = {}
        self._outside: dict[tuple[str, str], int] = {}
        self._seldom: dict[str, int] = {}

    # ---- what a walk tells

    def begin(self) -> None:
        """Count an instance."""
        self._instances += 1

    def step(self, source: str, message: str, target: str, ends: str | None, outputs: Iterable[Output]) -> None:
        """Count a step."""
        key = (source, message, target, ends)
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = _Kind()
        kind.count += 1
        for output in outputs:
            if output not in kind.outputs and len(kind.outputs) < OUTPUTS_KEPT:
                kind.outputs[output] = None

    def entered(self, state: str) -> None:
        """Count a visit."""
        self._stay(state).visits += 1

    def left(self, state: str, microseconds: int) -> None:
        """Count the time that a visit took."""
        self._stay(state).dwell.values.append(microseconds)

    def stays(self, state: str) -> None:
        """Count an instance that is in a state now."""
        self._stay(state).now += 1

    def outside(self, state: str, status: Status) -> None:
        """Count an instance that was ended from outside."""
        self._outside[state, status] = self._outside.get((state, status), 0) + 1

    def seldom(self, what: str | None) -> None:
        """Count what a note reports."""
        if what is not None:
            self._seldom[what] = self._seldom.get(what, 0) + 1

    def trusts(self, state: str | None) -> bool:
        """Return True if a state may still be what an instance is in after a migration."""
        return state is not None and (not self._states or state in self._states)

    def _stay(self, state: str) -> _Stay:
        return self._stays.setdefault(state, _Stay())

    def settle(self) -> None:
        """Let the durations take no more memory than they need, however many there are."""
        for stay in self._stays.values():
            stay.dwell.settle()

    # ---- what came of it

    def mined(self) -> Mined:
        """Return what is known so far."""
        kinds = sorted(self._kinds.items(), key=lambda item: (-item[1].count, item[0][:3], item[0][3] or ""))
        stays = sorted(self._stays.items(), key=lambda item: (-item[1].visits, item[0]))
        return Mined(
            self._workflow,
            self._known_initial,
            self._instances,
            tuple(stay.state(name) for name, stay in stays),
            tuple(MinedStep(*key[:3], kind.count, key[3], kind.decisions()) for key, kind in kinds),
            (*self._notes(),),
        )

    def _notes(self) -> Iterable[str]:
        if not self._instances:
            yield "No instance was found: nothing of this has happened."
        for (state, status), count in sorted(self._outside.items(), key=lambda item: (-item[1], item[0])):
            yield f"{count:,} {status} from outside in {state}."
        for what, (one, many) in SELDOM.items():
            if count := self._seldom.get(what, 0):
                yield f"{count:,} {one if count == 1 else many}"


MOVES_KEPT: Final = 10_000
"""Of one instance: how many of its latest changes of state are remembered at least, for a reset to find back."""

_INPUTS: Final = frozenset({"InitiatedBy", "Received"})
_ENDS: Final = {"Completed": "completed", "Failed": "failed"}
_FROM_OUTSIDE: Final = {"Cancelled": "cancelled", "Terminated": "terminated"}


class Trail:
    """One instance's way through its stream, counted by a miner."""

    __slots__ = (
        "_ended_us",
        "_ends",
        "_entered_us",
        "_first",
        "_instance",
        "_message",
        "_miner",
        "_moves",
        "_outputs",
        "_source",
        "_state",
        "_version",
        "_waited",
    )

    def __init__(self, miner: Miner, instance: InstanceRow) -> None:
        miner.begin()
        self._miner = miner
        self._instance = instance
        self._state: str | None = miner.initial
        self._entered_us: int | None = None
        # Where it was from which version on. What is too long ago to be kept is not known any more.
        self._first: str | None = miner.initial
        self._moves: list[tuple[int, str | None]] = []
        self._version = 0
        # The step that is being read. It is over at the next input, or where the stream branches or ends.
        self._message: str | None = None
        self._source: str | None = None
        self._waited = False
        self._outputs: list[Output] = []
        self._ends: str | None = None
        self._ended_us = 0

    def take(self, outline: Outline, back_to: int | None = None) -> None:
        """Take the next event. `back_to` is the version to which a Reset went back, which its outline does not say."""
        _, version, event, time_us, type, _, cause, state, _, _, _, _ = outline
        if version != self._version + 1:
            self._settle()
            self._state = self._first = self._entered_us = None
            self._moves.clear()
        self._version = version
        if event in _INPUTS:
            self._input(type, state, time_us)
        elif event == "AnswerRefused":
            self._input(type, state, time_us)
            self._outputs.append((event, None))
        elif event in DECISIONS:
            self._output(event, type, cause, time_us)
        elif event == "Compensated":
            self._settle()
            self._message, self._source = COMPENSATED, self._state
            self._waited = True
        elif event in _FROM_OUTSIDE:
            self._settle()
            self._leave(time_us)
        elif event in SELDOM:
            self._settle()
            self._miner.seldom(event if event != "Began" or version > 1 else None)
            self._branch(event, version, time_us, back_to)

    def end(self) -> None:
        """The stream is over: the row of the instance says where it stands now."""
        instance = self._instance
        if self._ends is not None and self._message == COMPENSATED:
            # What failed behind its compensations took no input that could name the state.
            self._move(instance.state, instance.updated_us)
        self._settle()
        if instance.status in _FROM_OUTSIDE.values():
            self._miner.outside(instance.state or "an unknown state", instance.status)
        elif instance.status not in ENDED and instance.state is not None:
            self._miner.stays(instance.state)

    def _input(self, message: str | None, state: str | None, time_us: int) -> None:
        self._settle()
        self._source, self._message = self._state, message
        self._waited = self._entered_us is not None
        if self._source is None or message is None:
            self._miner.seldom(UNCOUNTED)
        self._move(state, time_us)

    def _output(self, event: str, type: str | None, cause: int | None, time_us: int) -> None:
        if event == "Compensating" and cause is None:
            # An operator cancelled the instance: no step decided that, and no row names the state that it led to.
            self._settle()
            self._leave(time_us)
            self._state = None
            return
        self._outputs.append((event, type))
        self._ends = _ENDS.get(event)
        self._ended_us = time_us

    def _branch(self, event: str, version: int, time_us: int, back_to: int | None) -> None:
        """Continue from another state than the last step led to."""
        if event == "Began":
            self._state = self._first = self._miner.initial
            self._entered_us = None
            self._moves.clear()
        elif event == "Reset":
            while self._moves and self._moves[-1][0] > (back_to or 0):
                self._moves.pop()
            self._leave(time_us)
            self._state = self._moves[-1][1] if self._moves else self._first
            self._entered_us = time_us
        elif event == "Migrated" and not self._miner.trusts(self._state):
            self._state = self._entered_us = None

    def _move(self, state: str | None, time_us: int) -> None:
        """Enter a state."""
        if state == self._state and (self._entered_us is not None or state is None):
            return
        self._leave(time_us)
        if state is not None:
            self._miner.entered(state)
        self._state, self._entered_us = state, time_us
        self._moves.append((self._version, state))
        if len(self._moves) > 2 * MOVES_KEPT:
            del self._moves[:MOVES_KEPT]
            self._first = None

    def _leave(self, time_us: int) -> None:
        """Count a stay that is over. In its initial state an instance is from its first input on, if it stays there."""
        if self._state is not None and self._entered_us is not None:
            self._miner.left(self._state, time_us - self._entered_us)
        self._entered_us = None

    def _settle(self) -> None:
        """Count the step that is over now, if all of it is known."""
        message, source, target = self._message, self._source, self._state
        if self._ends is not None and source == target and self._waited:
            # A state that the last step led to was not waited in.
            self._leave(self._ended_us)
        elif self._ends is not None:
            self._entered_us = None
        if message is not None and source is not None:
            if target is None:
                self._miner.seldom(UNCOUNTED)
            else:
                self._miner.step(source, message, target, self._ends, self._outputs)
        self._message = self._source = self._ends = None
        self._outputs.clear()


async def mine(store: Store, where: InstanceFilter, miner: Miner, sample: int | None = None) -> Mined:
    """Read the streams of the instances that are found, page by page, and return what they did.

    With `sample`, of that many at most: those whose ids have the lowest checksums, as good as random, and the same
    ones every time.
    """
    chosen = None if sample is None else await sampled(store, [where], sample)
    pages = outline_pages(store, where) if chosen is None else pages_of(store, chosen)
    trail: Trail | None = None
    of = 0
    instances: dict[int, InstanceRow] = {}
    async for page in pages:
        if page.instances:
            instances = {row.key: row for row in page.instances}
        resets = page.resets
        for outline in page.rows:
            if outline[0] != of or trail is None:
                if trail is not None:
                    trail.end()
                of = outline[0]
                trail = Trail(miner, instances[of])
            trail.take(outline, resets.get((of, outline[1])) if resets else None)
        miner.settle()
    if trail is not None:
        trail.end()
    return miner.mined()


def machine_of(entry: WorkflowEntry) -> Machine:
    """Return a workflow as its code says it is."""
    from mainspring.analysis.reading.machine import read_machine  # noqa: PLC0415  history is drawn without it

    return without_roots(read_machine(entry.workflow), sys.path)


async def mined_of(
    store: Store,
    workflow: str,
    entry: WorkflowEntry | None,
    where: InstanceFilter | None = None,
    sample: int | None = None,
) -> Mined:
    """Return what the instances of a workflow did; of those that `where` finds, all or a sample."""
    miner = Miner(workflow)
    if entry is not None:
        states = entry.definition.states
        miner = Miner(workflow, states[type(entry.workflow.initial_state)], states.values())
    return await mine(store, where or InstanceFilter(workflow=workflow), miner, sample)
