"""The whole layout, with the curves of the lines. Lengths are in pixels; the origin is at the top left."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, TypeAlias

from msgspec import Struct

from mainspring.analysis.diagram.layers import Box, Layers, Line, Spot, Way, place_across

Point: TypeAlias = tuple[float, float]


class PlacedBox(Struct, frozen=True):
    """A box in its place: `x` and `y` are its middle.

    >>> PlacedBox(Box("New", 60, 30), 30, 15).left
    0.0
    """

    box: Box
    x: float
    y: float

    @property
    def left(self) -> float:
        """Where it begins."""
        return self.x - self.box.width / 2

    @property
    def right(self) -> float:
        """Where it ends."""
        return self.x + self.box.width / 2

    @property
    def top(self) -> float:
        """Where it begins, seen from above."""
        return self.y - self.box.height / 2

    @property
    def bottom(self) -> float:
        """Where it ends, seen from above."""
        return self.y + self.box.height / 2


class Curve(Struct, frozen=True):
    """One piece of a path: a cubic Bézier curve from where the last one ended."""

    first: Point
    second: Point
    end: Point


class PlacedLine(Struct, frozen=True):
    """A line in its place: its path from source to target, and the middle of its label.

    >>> line = PlacedLine(Line("New", "Paid"), (0, 0), (Curve((0, 5), (0, 5), (0, 10)),), (0, 5))
    >>> line.end
    (0, 10)
    """

    line: Line
    start: Point
    curves: tuple[Curve, ...]
    label: Point

    @property
    def end(self) -> Point:
        """Where the arrow points."""
        return self.curves[-1].end


class Layout(Struct, frozen=True):
    """Boxes and lines in their places, in the order in which they were given."""

    boxes: tuple[PlacedBox, ...]
    lines: tuple[PlacedLine, ...]
    width: float
    height: float


def checked(boxes: Sequence[Box], lines: Sequence[Line]) -> None:
    """Refuse what cannot be laid out.

    >>> checked([Box("A", 1, 1)], [Line("A", "B")])
    Traceback (most recent call last):
    ValueError: A line goes from A to B, but there is no box B.
    """
    names = {box.name for box in boxes}
    if len(names) < len(boxes):
        raise ValueError("Two boxes have the same name.")
    for line in lines:
        for end in (line.source, line.target):
            if end not in names:
                raise ValueError(f"A line goes from {line.source} to {line.target}, but there is no box {end}.")


ACROSS_PX: Final = 18.0
"""Between neighbours in a layer."""
DOWN_PX: Final = 20.0
"""Between layers."""
PASS_PX: Final = 6.0
"""The width that a passing line takes."""
LOOP_PX: Final = 30.0
"""Between a box and the label of a line that leads back to it."""
CORNER_PX: Final = 12.0
"""What lines keep away from the corners of a box."""


def lay_out(boxes: Sequence[Box], lines: Sequence[Line]) -> Layout:
    """Return boxes and lines in their places. Lines between the same two boxes in the same direction are drawn apart.

    >>> layout = lay_out([Box("New", 60, 30), Box("Paid", 60, 30)], [Line("New", "Paid", 40, 16)])
    >>> [(placed.box.name, placed.x, placed.y) for placed in layout.boxes]
    [('New', 30.0, 15.0), ('Paid', 30.0, 101.0)]
    >>> layout.lines[0].label
    (30.0, 58.0)
    """
    checked(boxes, lines)
    layers = Layers(boxes, lines, PASS_PX, LOOP_PX)
    layers.order()
    place_across(layers.layers, [way.spots[1:-1] for way in layers.ways if way is not None], ACROSS_PX)
    return _Placing(boxes, lines, layers).layout()


class _Placing:
    """From spots to boxes and curves."""

    def __init__(self, boxes: Sequence[Box], lines: Sequence[Line], layers: Layers) -> None:
        self._boxes = boxes
        self._lines = lines
        self._layers = layers
        self._bands: dict[int, tuple[float, float]] = {}
        self._height = self._stack()
        self._placed = {box.name: self._box(box) for box in boxes}
        self._at = {id(spot): self._placed[name] for name, spot in layers.boxes.items()}

    def layout(self) -> Layout:
        """Return the whole."""
        lines = [
            self._loop(line) if way is None else self._line(line, way)
            for line, way in zip(self._lines, self._layers.ways, strict=True)
        ]
        width = max((spot.x + spot.right for layer in self._layers.layers for spot in layer), default=0.0)
        return Layout(tuple(self._placed[box.name] for box in self._boxes), tuple(lines), width, self._height)

    def _stack(self) -> float:
        """Give each layer its band from top to bottom, and return how high all are together."""
        at = 0.0
        for layer in self._layers.layers:
            height = max((spot.height for spot in layer), default=0.0)
            for spot in layer:
                self._bands[id(spot)] = (at, at + height)
            at += height + DOWN_PX
        return max(at - DOWN_PX, 0.0)

    def _box(self, box: Box) -> PlacedBox:
        spot = self._layers.boxes[box.name]
        top, bottom = self._bands[id(spot)]
        return PlacedBox(box, spot.x, (top + bottom) / 2)

    def _loop(self, line: Line) -> PlacedLine:
        """Lead a line out of the right side of its box and back; its label stands beside it."""
        placed = self._placed[line.source]
        reach, spread = LOOP_PX - 4, placed.box.height / 4
        start, end = (placed.right, placed.y - spread), (placed.right, placed.y + spread)
        curve = Curve((start[0] + reach, start[1] - spread), (end[0] + reach, end[1] + spread), end)
        return PlacedLine(line, start, (curve,), (placed.right + LOOP_PX + line.width / 2, placed.y))

    def _line(self, line: Line, way: Way) -> PlacedLine:
        """Lead a line straight through the layers that it passes, and in curves between them."""
        points = [self._port(way, 0)]
        for spot in way.spots[1:-1]:
            top, bottom = self._bands[id(spot)]
            points += [(spot.x, top), (spot.x, bottom)]
        points.append(self._port(way, -1))
        label = way.spots[way.label]
        top, bottom = self._bands[id(label)]
        if way.upwards:
            points.reverse()
        return PlacedLine(line, points[0], _curves(points), (label.x, (top + bottom) / 2))

    def _port(self, way: Way, end: int) -> Point:
        """Return where a line leaves or meets a box: in the order in which the lines lie, so that none cross there."""
        spot, next_spot = (way.spots[0], way.spots[1]) if end == 0 else (way.spots[-1], way.spots[-2])
        placed = self._at[id(spot)]
        others = sorted(spot.below if end == 0 else spot.above, key=_across)
        place = next(index for index, other in enumerate(others) if other is next_spot)
        room = max(placed.box.width - 2 * CORNER_PX, 0.0)
        x = placed.x - room / 2 + room * (place + 1) / (len(others) + 1)
        return (x, placed.bottom if end == 0 else placed.top)


def _across(spot: Spot) -> float:
    return spot.x


def _curves(points: Sequence[Point]) -> tuple[Curve, ...]:
    """Return curves through points, upright at each of them."""
    return tuple(_curve(start, end) for start, end in pairwise(points) if start != end)


def _curve(start: Point, end: Point) -> Curve:
    half = (start[1] + end[1]) / 2
    return Curve((start[0], half), (end[0], half), end)
