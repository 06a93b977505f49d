"""Layers: boxes, labels, and a spot for each layer that a long line passes. Ordered so that few lines cross."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from mainspring.analysis.layout.graph import Box, Line
from mainspring.analysis.layout.ranks import leads_back, ranks_of

SWEEPS: Final = 12
MOST_TO_SWAP: Final = 400
"""Spots up to which neighbours are tried in the other order too, which takes the square of a layer's length."""


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
