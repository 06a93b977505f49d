"""Places: how far to the right each spot stands, so that lines are straight where they can be and nothing overlaps."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from mainspring.analysis.layout.layers import Spot

ROUNDS: Final = 16
STRAIGHTENINGS: Final = 3


def place_across(layers: Sequence[Sequence[Spot]], ways: Sequence[Sequence[Spot]], gap: float) -> None:
    """Set `x` of every spot. The order of each layer stays, and neighbours keep at least `gap` between them.

    `ways` are the spots that a line passes between its two boxes, for those that pass several.
    """
    for layer in layers:
        at = 0.0
        for spot in layer:
            spot.x = at + spot.left
            at = spot.x + spot.right + gap
    for turn in range(ROUNDS):
        # Down, then up, each by what was placed before; at the end by both sides.
        last = turn >= ROUNDS - 2
        for layer in layers if turn % 2 == 0 else reversed(layers):
            wanted = [_wanted(spot, above=turn % 2 == 0 or last, below=turn % 2 == 1 or last) for spot in layer]
            for spot, x in zip(layer, separated(layer, wanted, gap), strict=True):
                spot.x = x
    room = _Room(layers, gap)
    for _ in range(STRAIGHTENINGS):
        for way in ways:
            room.straighten(way)
    first = min((spot.x - spot.left for layer in layers for spot in layer), default=0.0)
    for layer in layers:
        for spot in layer:
            spot.x -= first


class _Room:
    """How far each spot could move without touching its neighbours."""

    def __init__(self, layers: Sequence[Sequence[Spot]], gap: float) -> None:
        self._gap = gap
        self._before: dict[int, Spot] = {}
        self._behind: dict[int, Spot] = {}
        for left, right in (pair for layer in layers for pair in pairwise(layer)):
            self._before[id(right)], self._behind[id(left)] = left, right

    def straighten(self, way: Sequence[Spot]) -> None:
        """Let a line pass as many layers as it can in one straight piece: greedily, from its first spot on."""
        piece: list[Spot] = []
        low, high = float("-inf"), float("inf")
        for spot in way:
            least, most = self._limits(spot)
            if piece and max(low, least) > min(high, most):
                _align(piece, low, high)
                piece, low, high = [], float("-inf"), float("inf")
            piece.append(spot)
            low, high = max(low, least), min(high, most)
        _align(piece, low, high)

    def _limits(self, spot: Spot) -> tuple[float, float]:
        before, behind = self._before.get(id(spot)), self._behind.get(id(spot))
        least = float("-inf") if before is None else before.x + before.right + self._gap + spot.left
        most = float("inf") if behind is None else behind.x - behind.left - self._gap - spot.right
        return least, most


def _align(piece: Sequence[Spot], low: float, high: float) -> None:
    """Put spots above each other: where the middle one of them is, or as near to that as there is room."""
    if low <= high:
        middle = sorted(spot.x for spot in piece)[len(piece) // 2]
        for spot in piece:
            spot.x = min(max(middle, low), high)


def _wanted(spot: Spot, *, above: bool, below: bool) -> float:
    near = [*(spot.above if above else ()), *(spot.below if below else ())]
    if not near:
        return spot.x
    places = sorted(other.x for other in near)
    middle = len(places) // 2
    return places[middle] if len(places) % 2 else (places[middle - 1] + places[middle]) / 2


def separated(layer: Sequence[Spot], wanted: Sequence[float], gap: float) -> list[float]:
    """Return the places nearest to the wanted ones, by least squares, at which neighbours do not overlap.

    With the widths taken off, that is a monotone regression: neighbours that want to stand in the wrong order, or too
    near, are pooled and stand round the mean of what they want.

    >>> separated([Spot(5, 5, 1), Spot(5, 5, 1)], [20, 20], gap=10)
    [10.0, 30.0]
    """
    offsets = [0.0]
    for left, right in pairwise(layer):
        offsets.append(offsets[-1] + left.right + gap + right.left)
    pools: list[tuple[float, int]] = []
    for place, offset in zip(wanted, offsets, strict=False):
        total, count = place - offset, 1
        while pools and pools[-1][0] / pools[-1][1] > total / count:
            before, size = pools.pop()
            total, count = total + before, count + size
        pools.append((total, count))
    means = [total / count for total, count in pools for _ in range(count)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=False)]
