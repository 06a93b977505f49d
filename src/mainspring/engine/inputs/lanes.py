"""Lanes: one queue and one cached state per instance that is busy or was so lately."""

from __future__ import annotations

from collections import OrderedDict, deque
from enum import Enum, auto
from typing import Final

from mainspring.engine.inputs.budget import Spending
from mainspring.engine.inputs.known_instance import KnownInstance
from mainspring.engine.inputs.pending import Pending
from mainspring.engine.registry import WorkflowEntry
from mainspring.port.records import Ref

CACHED_INSTANCES: Final = 10_000


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


class Lane(KnownInstance):
    """An instance and its turns.

    `under_way` counts the inputs whose units are with the committer, `returned` are those that failed there. `spending`
    is what it has taken of its budget of steps.
    """

    __slots__ = ("phase", "queue", "returned", "spending", "under_way")

    def __init__(self, ref: Ref, entry: WorkflowEntry, time_us: int) -> None:
        super().__init__(ref, entry)
        self.spending = Spending(entry.budget, time_us)
        self.queue: deque[Pending] = deque()
        self.under_way = 0
        self.returned: list[Pending] = []
        self.phase = Phase.OPEN

    @property
    def idle(self) -> bool:
        """Whether nothing is going on here."""
        return not self.queue and not self.under_way and self.phase not in (Phase.LOADING, Phase.BROKEN)


class Lanes:
    """The lanes of this process, the least recently used idle ones forgotten when there are too many.

    >>> Lanes().count
    0
    """

    def __init__(self, limit: int = CACHED_INSTANCES) -> None:
        self._lanes: OrderedDict[Ref, Lane] = OrderedDict()
        # Those asked for since they were last seen idle: whoever looks for the busy ones, often, walks over no others.
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
        """Know an instance no longer, because somebody moved it behind the lane's back."""
        lane = self._lanes.get(ref)
        if lane is not None:
            self.drop(lane)

    def busy(self) -> list[Lane]:
        """Return the lanes in which something goes on."""
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
