"""What comes of mining: states, kinds of steps, and notes.

The miner: counts what all instances have in common.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

from msgspec import Struct

from mainspring.analysis.figures.samples import Sample
from mainspring.port.records import Status

BEGIN: Final = "(begin)"
"""Stands for the initial state, where the code that knows it is not there."""


class MinedStep(Struct, frozen=True):
    """A kind of step: in which state, which message led to which state, and how often. `ends` as in a Transition.

    >>> MinedStep("New", "PlaceOrder", "Waiting", 3).ends is None
    True
    """

    source: str
    message: str
    target: str
    count: int
    ends: str | None = None
    outputs: tuple[str, ...] = ()


class MinedState(Struct, frozen=True):
    """A state that was seen: how many came, how many are in it now, and the median time of those who left.

    >>> MinedState("Waiting", visits=3).dwell_seconds is None
    True
    """

    name: str
    visits: int
    now: int = 0
    dwell_seconds: float | None = None


class Mined(Struct, frozen=True):
    """What the instances of a workflow did. The most frequent comes first.

    >>> Mined("Orders").instances
    0
    """

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
# What is told in notes: the event, and the words for one and for many.
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
    """Hears of instances one by one, and remembers what all of them have in common.

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
        """Count what is told in a note."""
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
