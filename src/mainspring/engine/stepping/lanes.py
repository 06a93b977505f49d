"""Lanes: what is known of an instance that is busy or was so lately, and one queue for its turns."""

from __future__ import annotations

from collections import OrderedDict, deque
from enum import Enum, auto
from typing import Any, Final, cast

from msgspec import Struct

from mainspring.core.saga import Ledger
from mainspring.engine.inputs.pending import Pending
from mainspring.engine.registry import WorkflowEntry
from mainspring.port.attributes import AttributeRow
from mainspring.port.records import ENDED, Ref, Status

CACHED_INSTANCES: Final = 10_000


class Elsewhere(Struct, frozen=True):
    """Why an instance can be stepped by other processes only, and the name of the state that it is in.

    >>> Elsewhere("version 2 of its definition", "Waiting").state
    'Waiting'
    """

    why: str
    state: str | None


class Unfolded(Struct, frozen=True):
    """Why an instance's stream could not be folded into its state, and that state's name as it is recorded.

    >>> Unfolded(ValueError("lost"), "Waiting").state
    'Waiting'
    """

    error: Exception
    state: str | None


class KnownInstance:
    """What is known of an instance. `version` and `state` are those of the last step, committed yet or not.

    `loaded` is True if they are known at all, `asked` whether it may have open tasks, `children` that it has ever
    started one. `abandoned` are the versions that do not count any more, because the instance was reset or began anew.
    `ledger` is that of a saga, valid at its own version only; where it `wants_ledger`, the whole stream is loaded.
    `elsewhere` says why only other processes can step the instance: newer code has written what this one does not know.
    `unfolded` says why its state is not known. `trims` says that its history is not kept. `era` is the store's when it
    was read, None if nothing was.
    """

    __slots__ = (
        "abandoned",
        "asked",
        "attributes",
        "children",
        "context",
        "elsewhere",
        "entry",
        "era",
        "error",
        "key",
        "ledger",
        "loaded",
        "purged_us",
        "ref",
        "result",
        "snapshot_version",
        "state",
        "status",
        "trims",
        "unfolded",
        "version",
        "wants_ledger",
    )

    def __init__(self, ref: Ref, entry: WorkflowEntry) -> None:
        self.ref = ref
        self.entry = entry
        self.forget()

    def forget(self) -> None:
        """Forget all of the instance, even under which version of its workflow it runs."""
        self.entry = self.entry.newest
        self.loaded = False
        self.wants_ledger = False
        self.ledger: Ledger | None = None
        self.key: int | None = None
        self.version = 0
        self.snapshot_version = 0
        self.state: Any = self.entry.workflow.initial_state
        self.status: Status = "running"
        self.error: str | None = None
        self.attributes: tuple[AttributeRow, ...] | None = None
        self.result: Any = None
        self.context: bytes | None = None
        self.unfolded: Unfolded | None = None
        self.purged_us: int | None = None
        self.abandoned: frozenset[int] | range = frozenset()
        self.asked = False
        self.children = False
        self.elsewhere: Elsewhere | None = None
        self.trims = False
        self.era: int | None = None

    def assume_new(self, era: int | None) -> None:
        """Assume that there is no such instance yet: the commit conflicts if that is wrong."""
        self.forget()
        self.era = era
        self.loaded = True

    def leave(self, why: str) -> None:
        """Leave the instance to other processes."""
        self.elsewhere = Elsewhere(why, self.entry.definition.states.get(cast("type[Any]", type(self.state))))

    @property
    def left(self) -> bool:
        """Whether what comes waits for another process, and not for an operator."""
        return self.elsewhere is not None and self.status != "suspended"

    @property
    def ended(self) -> bool:
        """Whether the instance has ended."""
        return self.status in ENDED


class Phase(Enum):
    """Whether a lane takes inputs now."""

    OPEN = auto()
    """It takes the next one, if what is needed is known."""
    LOADING = auto()
    """It waits for what the loader reads."""
    DRAINING = auto()
    """It waits until nothing is under way: what comes of the next input could not be called back."""
    BROKEN = auto()
    """A commit was refused: it waits for all that is under way, puts what failed in front, and is loaded anew."""


# For those who ask at every turn: a member of an Enum takes many times as long to find as a name.
OPEN: Final = Phase.OPEN
DRAINING: Final = Phase.DRAINING
BROKEN: Final = Phase.BROKEN


class Lane(KnownInstance):
    """An instance and its turns.

    `under_way` counts the inputs whose units are with the committer, `returned` are those that failed there.
    `steps_left` and `looks` are what it has left of its budget of steps (see `budget.look`).
    """

    __slots__ = ("looks", "phase", "queue", "returned", "steps_left", "under_way")

    def __init__(self, ref: Ref, entry: WorkflowEntry, time_us: int) -> None:
        super().__init__(ref, entry)
        self.steps_left = entry.budget.every
        self.looks: tuple[int, ...] = (time_us,)
        self.queue: deque[Pending] = deque()
        self.under_way = 0
        self.returned: list[Pending] = []
        self.phase = Phase.OPEN

    @property
    def idle(self) -> bool:
        """Whether nothing is under way here."""
        return not self.queue and not self.under_way and self.phase not in (Phase.LOADING, Phase.BROKEN)


class Lanes:
    """The lanes of this process, the least recently used idle ones forgotten when there are too many.

    >>> Lanes().count
    0
    """

    def __init__(self, limit: int = CACHED_INSTANCES) -> None:
        self._lanes: OrderedDict[Ref, Lane] = OrderedDict()
        # Those asked for since they were last seen idle: the frequent search for busy ones visits no others.
        self._touched: dict[Ref, Lane] = {}
        self._limit = limit

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._lanes)

    def get(self, ref: Ref) -> Lane | None:
        """Return the lane of an instance, if there is one."""
        return self._lanes.get(ref)

    def at(self, ref: Ref, entry: WorkflowEntry, time_us: int = 0) -> Lane:
        """Return the lane of an instance, made on first use for something of this time."""
        lane = self._lanes.get(ref)
        if lane is None:
            lane = self._lanes[ref] = Lane(ref, entry, time_us)
            if len(self._lanes) > self._limit:
                self._shrink()
        else:
            self._lanes.move_to_end(ref)
        self._touched[ref] = lane
        return lane

    def drop(self, lane: Lane) -> None:
        """Forget an idle lane."""
        if lane.idle:
            self._lanes.pop(lane.ref, None)
            self._touched.pop(lane.ref, None)

    def forget(self, ref: Ref) -> None:
        """Forget an instance, because another process moved it behind the lane's back."""
        lane = self._lanes.get(ref)
        if lane is not None:
            self.drop(lane)

    def busy(self) -> list[Lane]:
        """Return the lanes in which something is under way."""
        for ref in [ref for ref, lane in self._touched.items() if lane.idle]:
            del self._touched[ref]
        return list(self._touched.values())

    def _shrink(self) -> None:
        """Forget old idle lanes; busy ones are bounded by back-pressure, not by this."""
        for ref in [ref for ref, lane in self._oldest(len(self._lanes) // 10 + 1) if lane.idle]:
            del self._lanes[ref]
            self._touched.pop(ref, None)

    def _oldest(self, count: int) -> list[tuple[Ref, Lane]]:
        return [item for item, _ in zip(self._lanes.items(), range(count), strict=False)]
