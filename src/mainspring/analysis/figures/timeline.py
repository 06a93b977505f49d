"""What began and what ended, by the minute, hour, day or week: the finest that does not need too many."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from mainspring.engine.recording.stored_values import moment

Counts: TypeAlias = defaultdict[tuple[int, str], int]
"""By the second in which an interval begins, and what happened in it."""
Width: TypeAlias = Literal["minute", "hour", "day", "week"]

WIDTHS_SECONDS: Final[dict[Width, int]] = {"minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}
# 1970 began on a Thursday, and weeks begin on Mondays.
_MONDAY_SECONDS: Final[dict[Width, int]] = {"week": 4 * 86_400}
ENDS: Final = ("completed", "failed", "cancelled", "terminated")
INTERVALS_KEPT: Final = 5_000  # weeks are not coarsened any more: that many pass in a century only
INTERVALS_SHOWN: Final = 60


class Interval(Struct, frozen=True):
    """What began and what ended from a moment on, by how it ended."""

    begin: datetime
    begun: int
    ended: dict[str, int]


class Throughput(Struct, frozen=True):
    """The intervals in which something began or ended, in their order; those between them are empty."""

    width: Width
    intervals: tuple[Interval, ...]

    @property
    def seconds(self) -> int:
        """How long an interval is."""
        return WIDTHS_SECONDS[self.width]


class Timeline:
    """Counts beginnings and ends. It coarsens where that would take too many intervals.

    >>> timeline = Timeline()
    >>> timeline.add(90_000_000, "begun")
    >>> timeline.add(100_000_000, "completed")
    >>> [(interval.begin.minute, interval.begun, interval.ended) for interval in timeline.told().intervals]
    [(1, 1, {'completed': 1})]
    """

    __slots__ = ("_counts", "_width")

    def __init__(self) -> None:
        self._width: Width = "minute"
        self._counts: Counts = defaultdict(int)

    def add(self, time_us: int, what: str) -> None:
        """Count what happened at a moment: `begun`, or how an instance ended."""
        self._counts[_begin(time_us // 1_000_000, self._width), what] += 1
        if len(self._counts) > INTERVALS_KEPT:
            self._coarsen(INTERVALS_KEPT // 2)

    def merge(self, other: Timeline) -> None:
        """Take the counts of another, in the coarser width of both."""
        widths = list(WIDTHS_SECONDS)
        self._width = max(self._width, other._width, key=widths.index)
        self._counts = _coarsened(self._counts, self._width)
        for spot, count in _coarsened(other._counts, self._width).items():
            self._counts[spot] += count
        self._coarsen(INTERVALS_KEPT)

    def told(self, most: int = INTERVALS_SHOWN) -> Throughput:
        """Return the intervals, in the finest width in which the time from the first to the last has so many."""
        width, counts = self._width, self._counts
        while width != "week" and _span(counts, width) > most:
            width = _next(width)
            counts = _coarsened(counts, width)
        begins = sorted({begin for begin, _ in counts})
        return Throughput(width, tuple(_interval(begin, counts) for begin in begins))

    def _coarsen(self, most: int) -> None:
        while self._width != "week" and len(self._counts) > most:
            self._width = _next(self._width)
            self._counts = _coarsened(self._counts, self._width)


def _interval(begin: int, counts: Counts) -> Interval:
    ended = {status: count for status in ENDS if (count := counts.get((begin, status)))}
    return Interval(moment(begin * 1_000_000), counts.get((begin, "begun"), 0), ended)


def _span(counts: Counts, width: Width) -> int:
    """Return how many intervals lie between the first and the last."""
    begins = [begin for begin, _ in counts]
    return (max(begins) - min(begins)) // WIDTHS_SECONDS[width] + 1 if begins else 0


def _coarsened(counts: Counts, width: Width) -> Counts:
    coarse: Counts = defaultdict(int)
    for (begin, what), count in counts.items():
        coarse[_begin(begin, width), what] += count
    return coarse


def _begin(seconds: int, width: Width) -> int:
    shift = _MONDAY_SECONDS.get(width, 0)
    return (seconds - shift) // WIDTHS_SECONDS[width] * WIDTHS_SECONDS[width] + shift


def _next(width: Width) -> Width:
    widths = list(WIDTHS_SECONDS)
    return widths[widths.index(width) + 1]
