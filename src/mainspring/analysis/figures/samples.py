"""Many durations in little memory: exact while they are few, in buckets of growing width when they are many.

A bucket's upper end is a constant factor above its lower one, so that a quantile read from buckets lies within
RELATIVE_ERROR of the exact one, whatever the durations are; there are some 1,700 of them between a microsecond and 30
years. (The idea is DDSketch's: Masson, Rim and Lee, VLDB 2019.)
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

EXACT_VALUES: Final = 10_000
RELATIVE_ERROR: Final = 0.01
BINS: Final = 30

_GAMMA: Final = (1 + RELATIVE_ERROR) / (1 - RELATIVE_ERROR)
_PER_LOG: Final = 1 / math.log(_GAMMA)
_MIDDLE: Final = 2 / (_GAMMA + 1)
# What does not lie above it has a bucket of its own: clocks of several machines may even let a duration be negative.
_LEAST_US: Final = 1
_NONE: Final = -1


class Spread(Struct, frozen=True):
    """How long something took: how often, the percentiles, the longest, all together; in seconds.

    `exact` is False where the percentiles lie within RELATIVE_ERROR of the exact ones only.
    """

    count: int
    p50: float
    p90: float
    p99: float
    longest: float
    total: float
    exact: bool = True


class Bin(Struct, frozen=True):
    """How many durations lie between two, in seconds."""

    low: float
    high: float
    count: int


class Sample:
    """Durations in microseconds. `values` takes new ones; `settle` is to be called now and then.

    >>> sample = Sample()
    >>> sample.values.extend([1_000_000, 3_000_000, 2_000_000])
    >>> sample.spread().p50
    2.0
    """

    __slots__ = ("_buckets", "_longest", "_total", "values")

    def __init__(self) -> None:
        self.values = array("q")
        self._buckets: Counter[int] | None = None
        self._longest = 0
        self._total = 0

    def __len__(self) -> int:
        return len(self.values) + (self._buckets.total() if self._buckets else 0)

    def settle(self) -> None:
        """Put the values into buckets, if they are too many to be kept."""
        if self._buckets is None and len(self.values) <= EXACT_VALUES:
            return
        if self._buckets is None:
            self._buckets = Counter()
        if self.values:
            longest = max(self.values)
            self._longest = max(self._longest, longest)
            self._total += sum(self.values)
            log, ceil = math.log, math.ceil
            self._buckets.update([ceil(log(v) * _PER_LOG) if v > _LEAST_US else _NONE for v in self.values])
            self.values = array("q")

    def merge(self, other: Sample) -> None:
        """Take the values of another."""
        if other._buckets is not None:
            if self._buckets is None:
                self._buckets = Counter()
            self._buckets.update(other._buckets)
            self._longest = max(self._longest, other._longest)
            self._total += other._total
        self.values.extend(other.values)
        self.settle()

    def spread(self) -> Spread | None:
        """Return what is to be said of them; None of none."""
        count = len(self)
        if not count:
            return None
        self.settle()
        ranked = list(self._ranked())
        p50, p90, p99 = (_at(ranked, -(-count * q // 100)) / 1e6 for q in (50, 90, 99))
        exact = self._buckets is None
        longest = max(self.values) if exact else self._longest
        total = sum(self.values) if exact else self._total
        return Spread(count, p50, p90, p99, max(longest, 0) / 1e6, total / 1e6, exact)

    def log_middle(self) -> tuple[float, float]:
        """Return the median of the logarithms, and the median distance from it: both unmoved by a few odd ones."""
        self.settle()
        logs = [(math.log(max(value, _LEAST_US)), count) for value, count in self._ranked()]
        half = math.ceil(len(self) / 2)
        middle = _at(logs, half)
        distances = sorted((abs(log - middle), count) for log, count in logs)
        return middle, _at(distances, half)

    def above(self, limit_us: float) -> int:
        """Return how many are longer."""
        self.settle()
        return sum(count for value, count in self._ranked() if value > limit_us)

    def bins(self, most: int = BINS) -> tuple[Bin, ...]:
        """Return how often durations of each magnitude are there, in at most so many bins of equal width as logarithms.

        >>> sample = Sample()
        >>> sample.values.extend([1_000_000, 1_000_000, 8_000_000])
        >>> [bin.count for bin in sample.bins(3)]
        [2, 0, 1]
        """
        self.settle()
        ranked = [(math.log(max(value, _LEAST_US)), count) for value, count in self._ranked()]
        if not ranked:
            return ()
        low = ranked[0][0]
        width = max((ranked[-1][0] - low) / most, math.log(_GAMMA))
        counts = Counter[int]()
        for log, count in ranked:
            counts[min(int((log - low) / width), most - 1)] += count
        edges = [math.exp(low + place * width) / 1e6 for place in range(max(counts) + 2)]
        return tuple(Bin(edges[place], edges[place + 1], counts[place]) for place in range(max(counts) + 1))

    def _ranked(self) -> Iterator[tuple[float, int]]:
        """Return the values in their order, each with how often it is there."""
        if self._buckets is None:
            for value in sorted(self.values):
                yield max(value, 0), 1
            return
        for bucket, count in sorted(self._buckets.items()):
            yield (0 if bucket == _NONE else _MIDDLE * _GAMMA**bucket), count


def _at(ranked: list[tuple[float, int]], rank: int) -> float:
    """Return the value of a rank, counted from 1."""
    for value, count in ranked:
        rank -= count
        if rank <= 0:
            return value
    raise IndexError(rank)
