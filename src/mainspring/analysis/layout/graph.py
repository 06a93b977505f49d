"""What is to be laid out, and what comes of it. Lengths are in pixels; the origin is at the top left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from msgspec import Struct

Point: TypeAlias = tuple[float, float]


class Box(Struct, frozen=True):
    """A box to be placed.

    >>> Box("New", 60, 30).name
    'New'
    """

    name: str
    width: float
    height: float


class Line(Struct, frozen=True):
    """A line from one box to another, or back to the same one, with room for its label.

    >>> Line("New", "Paid", 80, 16).target
    'Paid'
    """

    source: str
    target: str
    width: float = 0
    height: float = 0


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
    """One piece of a path: a cubic Bézier curve from where the last one ended.

    >>> Curve((0, 5), (0, 5), (0, 10)).end
    (0, 10)
    """

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
    """Boxes and lines in their places, in the order in which they were given.

    >>> Layout((), (), 0, 0).width
    0
    """

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
