"""A frame: one function while it is read, with what its names stand for. And the reader, as its parts know it."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import Any, Protocol

from msgspec import Struct

from mainspring.analysis.reading.model import Place
from mainspring.analysis.reading.values import Value
from mainspring.analysis.reading.ways import Way
from mainspring.purity.names import Names
from mainspring.sources import text_at


class Frame:
    """One function while it is read."""

    def __init__(self, function: Any, names: Names, env: dict[str, Value], offset: int, around: Frame | None) -> None:
        self.function = function
        self.names = names
        self.env = env
        self.offset = offset
        self.around = around
        self.depth: int = 0 if around is None else around.depth + 1
        self.quiet: bool = around is not None and around.quiet
        """Whether what is asked here is a detail: the author would not name it."""
        self.repeating = 0
        self.yields: list[Any] | None = None
        self.case: int | None = None
        """The line of the case that was entered last."""

    @property
    def file(self) -> str:
        """The file in which the function is written."""
        return self.function.__code__.co_filename

    def place(self, node: ast.AST) -> Place:
        """Return where something of the function is written."""
        return Place(self.file, getattr(node, "lineno", 1) + self.offset)

    def text(self, node: ast.expr | ast.pattern) -> str:
        """Return an expression or a pattern as the author wrote it, in one line."""
        return text_at(self.file, node, self.offset)

    def inside(self, bound: Mapping[str, Value]) -> Frame:
        """Return the frame of a comprehension or of a function in this one."""
        frame = Frame(self.function, self.names, {**self.env, **bound}, self.offset, self)
        frame.depth = self.depth
        return frame


class Returned(Struct, frozen=True):
    """The end of a function: what it returned, and where that stands."""

    value: Any
    node: Any = None


class RaisedError(Exception):
    """The code that is read raises."""


class Reading(Protocol):
    """The reader of one way, as its parts know it."""

    way: Way

    def evaluate(self, node: ast.expr, frame: Frame) -> Value:
        """Return what an expression stands for."""
        ...

    def test(self, node: ast.expr, frame: Frame) -> bool:
        """Return how a condition goes on this way."""
        ...

    def call(self, function: Value, args: Sequence[Any], keywords: Mapping[str, Value], node: Any, frame: Frame) -> Any:
        """Return what a call stands for."""
        ...

    def run_function(self, function: FunctionType, bound: dict[str, Value], frame: Frame | None) -> Returned:
        """Read a function to its end."""
        ...

    def run(self, body: Sequence[ast.stmt], frame: Frame) -> Any:
        """Read statements; return how they ended, None if they fell through."""
        ...

    def attribute(self, value: Value, name: str, frame: Frame) -> Value:
        """Return what an attribute stands for."""
        ...

    def copy(self, way: Way) -> Reading:
        """Return a reader of another way."""
        ...

    def enters(self, case: Place) -> None:
        """Record that a case is reached."""
        ...

    def is_plain(self, function: Any) -> bool:
        """Return True if a function returns neither decisions nor states nor messages: it is not looked into."""
        ...

    def is_own(self, function: Any) -> bool:
        """Return True if something is a function that is written in Python by the author."""
        ...

    def is_near(self, function: Any) -> bool:
        """Return True if a function is the author's own."""
        ...
