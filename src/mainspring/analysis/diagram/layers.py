"""What is to be laid out, layer by layer: boxes and the lines between them.

Ranks: which box stands above which. Lines that lead back are turned round first, so that there is no circle.

Layers: boxes, labels, and a spot for each layer that a long line passes. Ordered so that few lines cross.

Places: how far to the right each spot stands, so that lines are straight where they can be and nothing overlaps.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct

SWEEPS: Final = 12
MOST_TO_SWAP: Final = 400
"""Spots up to which neighbours are tried in the other order too, which takes the square of a layer's length."""


class Box(Struct, frozen=True):
    """A box to be placed."""

    name: str
    width: float
    height: float


class Line(Struct, frozen=True):
    """A line from one box to another, or back to the same one, with room for its label."""

    source: str
    target: str
    width: float = 0
    height: float = 0


def leads_back(boxes: Sequence[Box], lines: Sequence[Line]) -> frozenset[int]:
    """Return the places of the lines that lead back to a box on the way to their own source.

    The way begins at the first box, so what is drawn upwards is what a reader would call a way back.

    >>> leads_back([Box("A", 1, 1), Box("B", 1, 1)], [Line("A", "B"), Line("B", "A")])
    frozenset({1})
    """
    leaving: dict[str, list[int]] = {box.name: [] for box in boxes}
    for place, line in enumerate(lines):
        if line.source != line.target:
            leaving[line.source].append(place)
    back: set[int] = set()
    done: set[str] = set()
    for root, first in leaving.items():
        way: dict[str, list[int]] = {} if root in done else {root: [*first]}
        while way:
            here, open_lines = next(reversed(way.items()))
            if not open_lines:
                done.add(here)
                del way[here]
                continue
            place = open_lines.pop(0)
            target = lines[place].target
            if target in way:
                back.add(place)
            elif target not in done:
                way[target] = [*leaving[target]]
    return frozenset(back)


def ranks_of(boxes: Sequence[Box], lines: Sequence[Line], back: frozenset[int]) -> dict[str, int]:
    """Return the rank of each box, from 0 at the top: each line goes down, and is as short as the longest way allows.

    >>> three = [Box("A", 1, 1), Box("B", 1, 1), Box("C", 1, 1)]
    >>> ranks_of(three, [Line("A", "B"), Line("B", "C"), Line("A", "C")], frozenset())
    {'A': 0, 'B': 1, 'C': 2}
    """
    below: dict[str, list[str]] = {box.name: [] for box in boxes}
    above: dict[str, list[str]] = {box.name: [] for box in boxes}
    for place, line in enumerate(lines):
        upper, lower = (line.target, line.source) if place in back else (line.source, line.target)
        if upper != lower:
            below[upper].append(lower)
            above[lower].append(upper)
    ranks = dict.fromkeys(below, 0)
    ordered = _downwards(below, above)
    for name in ordered:
        ranks[name] = max((ranks[upper] + 1 for upper in above[name]), default=0)
    for name in reversed(ordered):
        # What nothing leads to stands right above what it leads to, not at the top of the page.
        if not above[name] and below[name]:
            ranks[name] = min(ranks[lower] for lower in below[name]) - 1
    first = min(ranks.values(), default=0)
    return {name: rank - first for name, rank in ranks.items()}


def _downwards(below: dict[str, list[str]], above: dict[str, list[str]]) -> list[str]:
    """Return the boxes, each behind all that lie above it."""
    waiting = {name: len(uppers) for name, uppers in above.items()}
    ready = [name for name, count in waiting.items() if count == 0]
    ordered: list[str] = []
    while ready:
        name = ready.pop(0)
        ordered.append(name)
        for lower in below[name]:
            waiting[lower] -= 1
            if waiting[lower] == 0:
                ready.append(lower)
    return ordered


class Spot:
    """A place in a layer: of a box, of a label, or where a line passes. `left` and `right` are measured from `x`."""

    __slots__ = ("above", "below", "height", "left", "right", "x")

    def __init__(self, left: float, right: float, height: float) -> None:
        self.left = left
        self.right = right
        self.height = height
        self.above: list[Spot] = []
        self.below: list[Spot] = []
        self.x = 0.0


class Way:
    """The spots of a line from top to bottom, which of them has the label, and whether the line goes upwards."""

    __slots__ = ("label", "spots", "upwards")

    def __init__(self, spots: list[Spot], label: int, upwards: bool) -> None:
        self.spots = spots
        self.label = label
        self.upwards = upwards


class Layers:
    """All spots, layer by layer. Boxes stand in even layers, labels in odd ones."""

    def __init__(self, boxes: Sequence[Box], lines: Sequence[Line], pass_width: float, loop_width: float) -> None:
        back = leads_back(boxes, lines)
        ranks = ranks_of(boxes, lines, back)
        self.layers: list[list[Spot]] = [[] for _ in range(2 * max(ranks.values(), default=-1) + 1)]
        self.boxes: dict[str, Spot] = {}
        self.ways: list[Way | None] = []
        self._pass_width = pass_width
        loops = _loops(lines, loop_width)
        for box in boxes:
            room, height = loops.get(box.name, (0, 0))
            spot = Spot(box.width / 2, box.width / 2 + room, max(box.height, height))
            self.boxes[box.name] = spot
            self.layers[2 * ranks[box.name]].append(spot)
        for place, line in enumerate(lines):
            if line.source == line.target:
                self.ways.append(None)
                continue
            upper, lower = (line.target, line.source) if place in back else (line.source, line.target)
            self.ways.append(self._way(line, upper, lower, (2 * ranks[upper], 2 * ranks[lower]), place in back))

    def _way(self, line: Line, upper: str, lower: str, ranks: tuple[int, int], upwards: bool) -> Way:
        """Lead a line down through the layers; its label stands next to where it comes from."""
        first, last = ranks
        labelled = last - 1 if upwards else first + 1
        spots = [self.boxes[upper]]
        for rank in range(first + 1, last):
            half = (line.width if rank == labelled else self._pass_width) / 2
            spot = Spot(half, half, line.height if rank == labelled else 0)
            self.layers[rank].append(spot)
            spots.append(spot)
        spots.append(self.boxes[lower])
        for above, below in pairwise(spots):
            above.below.append(below)
            below.above.append(above)
        return Way(spots, labelled - first, upwards)

    def order(self) -> None:
        """Put the spots of each layer in an order in which few lines cross: the best of some sweeps."""
        best, fewest = [[*layer] for layer in self.layers], self.crossings()
        swaps = sum(map(len, self.layers)) <= MOST_TO_SWAP
        for sweep in range(SWEEPS):
            if fewest == 0:
                break
            self._sweep(downwards=sweep % 2 == 0)
            if swaps:
                self._swap()
            crossings = self.crossings()
            if crossings < fewest:
                best, fewest = [[*layer] for layer in self.layers], crossings
        self.layers = best

    def crossings(self) -> int:
        """Return how often lines cross."""
        return sum(_crossings(upper, _places(lower)) for upper, lower in pairwise(self.layers))

    def _sweep(self, *, downwards: bool) -> None:
        """Sort each layer by where its neighbours in the layer before stand, on average."""
        layers = self.layers if downwards else self.layers[::-1]
        for before, layer in pairwise(layers):
            places = _places(before)

            def middle(spot: Spot, own: float, places: dict[int, int] = places) -> float:
                near = spot.above if downwards else spot.below
                return sum(places[id(other)] for other in near) / len(near) if near else own

            wanted = {id(spot): middle(spot, place) for place, spot in enumerate(layer)}
            layer.sort(key=lambda spot: wanted[id(spot)])

    def _swap(self) -> None:
        """Exchange neighbours wherever that saves a crossing."""
        for rank, layer in enumerate(self.layers):
            above = _places(self.layers[rank - 1]) if rank else {}
            below = _places(self.layers[rank + 1]) if rank + 1 < len(self.layers) else {}
            for place in range(len(layer) - 1):
                left, right = layer[place], layer[place + 1]
                if _crossed(right, left, above, below) < _crossed(left, right, above, below):
                    layer[place], layer[place + 1] = right, left


def _loops(lines: Sequence[Line], loop_width: float) -> dict[str, tuple[float, float]]:
    """Return the room that lines from a box to itself take at its right side: width and height."""
    return {line.source: (loop_width + line.width, line.height) for line in lines if line.source == line.target}


def _places(layer: Sequence[Spot]) -> dict[int, int]:
    return {id(spot): place for place, spot in enumerate(layer)}


def _crossings(upper: Sequence[Spot], places: dict[int, int]) -> int:
    """Return how often lines between two layers cross: pairs that are in another order below than above."""
    seen: list[int] = []
    count = 0
    for spot in upper:
        ends = [places[id(other)] for other in spot.below]
        count += sum(len(seen) - bisect_left(seen, end + 1) for end in ends)
        for end in ends:
            insort(seen, end)
    return count


def _crossed(left: Spot, right: Spot, above: dict[int, int], below: dict[int, int]) -> int:
    """Return how often the lines of two neighbours cross each other, in this order."""
    return sum(
        places[id(one)] > places[id(other)]
        for places, ones, others in ((above, left.above, right.above), (below, left.below, right.below))
        for one in ones
        for other in others
    )


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
