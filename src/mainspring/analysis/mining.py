"""What instances did, mined from their streams: the states that they were in, the steps between them, and the times.

Only names and times are read, never a message. An input's row names the state after its step, so no state is folded.
What rows do not tell is said in the notes, and never guessed:

- **Resets, beginnings anew, migrations** are no steps of the workflow. The instance goes on in the state in which it
  was at that version; what it did before did happen, and is counted.
- **A compensation** that was carried out names no state. The instance is taken to have stayed where it was, unless it
  ended by it: then its row says where.
- **A stream with gaps** (history that is not kept) tells no step whose beginning is gone.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappush, heappushpop
from typing import Final
from zlib import crc32

from msgspec import Struct

from mainspring.analysis.model import COMPENSATED
from mainspring.analysis.rows import INSTANCES_PER_PAGE, outline_pages, pages_of
from mainspring.analysis.samples import Sample
from mainspring.app.search import found
from mainspring.port.outlines import Outline
from mainspring.port.records import ENDED, InstanceFilter, InstanceRow, Status
from mainspring.port.store import Store

BEGIN: Final = "(begin)"
"""Stands for the initial state, where the code that knows it is not there."""
OUTPUTS_KEPT: Final = 20
"""Of one kind of step: the kinds of outputs that are remembered."""
MOVES_KEPT: Final = 10_000
"""Of one instance: how many of its latest changes of state are remembered at least, for a reset to find back."""

_INPUTS: Final = frozenset({"InitiatedBy", "Received"})
_ENDS: Final = {"Completed": "completed", "Failed": "failed"}
_FROM_OUTSIDE: Final = frozenset({"cancelled", "terminated"})
UNCOUNTED: Final = "uncounted"
# What is told in notes: the event, and the words for one and for many.
_SELDOM: Final = {
    "Reset": ("reset to an earlier version; what was done before is counted too.",) * 2,
    "Began": ("instance that began anew after its end.", "instances that began anew after their end."),
    "Migrated": ("migration to another version of the workflow.", "migrations to another version of the workflow."),
    "Skipped": ("input that an operator passed over.", "inputs that operators passed over."),
    UNCOUNTED: ("step is not counted: its history is not kept.", "steps are not counted: their history is not kept."),
}
_OUTPUTS: Final = {
    "Sent": "Send",
    "Published": "Publish",
    "Replied": "Reply",
    "Scheduled": "Schedule",
    "Asked": "Ask",
    "ChildStarted": "StartChild",
    "FannedOut": "FanOut",
    "Compensating": "Compensate",
    "Completed": "Complete",
    "Failed": "Fail",
}


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


class _Kind:
    """One kind of step, while it is counted."""

    __slots__ = ("count", "outputs")

    def __init__(self) -> None:
        self.count = 0
        self.outputs: dict[str, None] = {}


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
    """Takes streams one by one, and remembers what all of them have in common.

    `states` are those that the code has, where there is code: after a migration only they are trusted.

    >>> miner = Miner("Orders", initial="New")
    >>> row = InstanceRow(7, "Orders", "o-1", 2, "running", "Waiting", None, 1, b"{}", 0, 0)
    >>> began = (7, 1, "Began", 0, None, None, None, None, None, None, None, 0)
    >>> placed = (7, 2, "InitiatedBy", 0, "PlaceOrder", "command", None, "Waiting", None, None, None, 0)
    >>> miner.take(row, [began, placed])
    >>> miner.mined().steps
    (MinedStep(source='New', message='PlaceOrder', target='Waiting', count=1, ends=None, outputs=()),)
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

    def take(self, instance: InstanceRow, outlines: Iterable[Outline]) -> None:
        """Take the whole stream of an instance, in the order of its versions, if nobody reset it."""
        walk = self.walk(instance)
        for outline in outlines:
            walk.take(outline)
        walk.end()

    def walk(self, instance: InstanceRow) -> Walk:
        """Begin with an instance. Its events are for the walk, which is told when there are no more."""
        self._instances += 1
        return Walk(self, self.initial, instance)

    # ---- what a walk tells

    def step(self, source: str, message: str, target: str, ends: str | None, outputs: Iterable[str]) -> None:
        """Count a step."""
        kind = self._kinds.setdefault((source, message, target, ends), _Kind())
        kind.count += 1
        for output in outputs:
            if len(kind.outputs) < OUTPUTS_KEPT:
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
        """Tell whether a state may still be what an instance is in after a migration."""
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
            tuple(MinedStep(*key[:3], kind.count, key[3], (*kind.outputs,)) for key, kind in kinds),
            (*self._notes(),),
        )

    def _notes(self) -> Iterable[str]:
        if not self._instances:
            yield "No instance was found: nothing of this has happened."
        for (state, status), count in sorted(self._outside.items(), key=lambda item: (-item[1], item[0])):
            yield f"{count:,} {status} from outside in {state}."
        for what, (one, many) in _SELDOM.items():
            if count := self._seldom.get(what, 0):
                yield f"{count:,} {one if count == 1 else many}"


async def mine(store: Store, where: InstanceFilter, miner: Miner, sample: int | None = None) -> Mined:
    """Read the streams of the instances that are found, page by page, and return what they did.

    With `sample`, of so many at most: those whose ids have the lowest checksums, which is as good as by lot, and the
    same ones every time.
    """
    chosen = None if sample is None else await _sampled(store, where, sample)
    pages = outline_pages(store, where) if chosen is None else pages_of(store, chosen)
    walk: Walk | None = None
    of = 0
    instances: dict[int, InstanceRow] = {}
    async for page in pages:
        if page.instances:
            instances = {row.key: row for row in page.instances}
        for outline in page.rows:
            if outline[0] != of or walk is None:
                if walk is not None:
                    walk.end()
                of = outline[0]
                walk = miner.walk(instances[of])
            walk.take(outline, page.resets.get((of, outline[1])))
        miner.settle()
    if walk is not None:
        walk.end()
    return miner.mined()


async def _sampled(store: Store, where: InstanceFilter, most: int) -> list[InstanceRow]:
    """Return the instances of a sample, in the order of their keys."""
    kept: list[tuple[int, int, InstanceRow]] = []
    after = 0
    while rows := await found(store, where, INSTANCES_PER_PAGE, after):
        after = rows[-1].key
        for row in rows:
            # The heap gives away its smallest, and the lowest checksums are to stay.
            entry = (-crc32(row.id.encode()), -row.key, row)
            if len(kept) < most:
                heappush(kept, entry)
            else:
                heappushpop(kept, entry)
    return sorted((row for _, _, row in kept), key=lambda row: row.key)


class Walk:
    """One instance's way through its stream, told to a miner."""

    __slots__ = (
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
    )

    def __init__(self, miner: Miner, initial: str, instance: InstanceRow) -> None:
        self._miner = miner
        self._instance = instance
        self._state: str | None = initial
        self._entered_us: int | None = None
        # Where it was from which version on. What is too long ago to be kept is not known any more.
        self._first: str | None = initial
        self._moves: list[tuple[int, str | None]] = []
        self._version = 0
        # The step that is being read. It is over at the next input, or where the stream branches or ends.
        self._message: str | None = None
        self._source: str | None = None
        self._outputs: list[str] = []
        self._ends: str | None = None

    def take(self, outline: Outline, back_to: int | None = None) -> None:
        """Take the next event. `back_to` is the version to which a Reset went back, which its outline does not say."""
        _, version, event, time_us, type, _, cause, state, *_ = outline
        if version != self._version + 1:
            self._settle()
            self._state = self._first = self._entered_us = None
            self._moves.clear()
        self._version = version
        if event in _INPUTS:
            self._input(type, state, time_us)
        elif event in _OUTPUTS:
            self._output(event, type, cause)
        elif event == "Compensated":
            self._settle()
            self._message, self._source = COMPENSATED, self._state
        elif event in _SELDOM:
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
        if instance.status in _FROM_OUTSIDE:
            self._miner.outside(instance.state or "an unknown state", instance.status)
        elif instance.status not in ENDED and instance.state is not None:
            self._miner.stays(instance.state)

    def _input(self, message: str | None, state: str | None, time_us: int) -> None:
        self._settle()
        self._source, self._message = self._state, message
        if self._source is None or message is None:
            self._miner.seldom(UNCOUNTED)
        self._move(state, time_us)

    def _output(self, event: str, type: str | None, cause: int | None) -> None:
        if event == "Compensating" and cause is None:
            self._settle()  # an operator cancelled the instance: no step decided that
            return
        decision = _OUTPUTS[event]
        named = type is not None and decision != "FanOut"  # whose message is the engine's own
        self._outputs.append(f"{decision}({type})" if named else decision)
        self._ends = _ENDS.get(event)

    def _branch(self, event: str, version: int, time_us: int, back_to: int | None) -> None:
        """Go on elsewhere than where the last step led to."""
        if event == "Began":
            self._state = self._first = self._miner.initial
            self._entered_us = None
            self._moves.clear()
        elif event == "Reset":
            while self._moves and self._moves[-1][0] > (back_to or 0):
                self._moves.pop()
            self._state = self._moves[-1][1] if self._moves else self._first
            self._entered_us = time_us
        elif event == "Migrated" and not self._miner.trusts(self._state):
            self._state = self._entered_us = None

    def _move(self, state: str | None, time_us: int) -> None:
        """Be in a state from now on."""
        if state == self._state and (self._entered_us is not None or state is None):
            return
        # In its initial state an instance is from its first input on, if it stays there.
        if self._state is not None and self._entered_us is not None:
            self._miner.left(self._state, time_us - self._entered_us)
        if state is not None:
            self._miner.entered(state)
        self._state, self._entered_us = state, time_us
        self._moves.append((self._version, state))
        if len(self._moves) > 2 * MOVES_KEPT:
            del self._moves[:MOVES_KEPT]
            self._first = None

    def _settle(self) -> None:
        """Count the step that is over now, if all of it is known."""
        message, source, target = self._message, self._source, self._state
        if message is not None and source is not None:
            if target is None:
                self._miner.seldom(UNCOUNTED)
            else:
                self._miner.step(source, message, target, self._ends, self._outputs)
        self._message = self._source = self._ends = None
        self._outputs.clear()
