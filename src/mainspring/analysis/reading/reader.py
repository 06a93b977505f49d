"""The reader of one way: its parts, put together."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import FunctionType
from typing import Any, Final, get_args

from msgspec import Struct

from mainspring.analysis.reading import calls, expressions, objects, statements
from mainspring.analysis.reading.frames import Frame, Returned
from mainspring.analysis.reading.model import Place
from mainspring.analysis.reading.records import Kind, class_of, kinds_of, members, return_hint
from mainspring.analysis.reading.values import Items, Known, Symbol, Value, text_of
from mainspring.analysis.reading.ways import Way
from mainspring.core.decisions import Decision
from mainspring.core.definition import definition_of
from mainspring.core.events import Recorded
from mainspring.core.type_parameters import union_members
from mainspring.core.workflow import Workflow
from mainspring.purity.guard import is_library
from mainspring.purity.names import Names
from mainspring.sources import source_of

SOURCES_KEPT: Final = 2_000
NESTED_HINTS: Final = 10

_DECISIONS: Final[tuple[type[Any], ...]] = tuple(
    cls for member in union_members(Decision) if (cls := class_of(member)) is not None
)


def _attribute(cls: type[Any], name: str) -> Any:
    """Return an attribute of a class, whatever its type."""
    return getattr(cls, name)


class Subject:
    """The workflow that is read, and which types matter to it."""

    def __init__(
        self, workflow: Workflow[Any, Any, Any] | type[Workflow[Any, Any, Any]], *, by_status: bool = False
    ) -> None:
        self.cls = workflow if isinstance(workflow, type) else type(workflow)
        # A class stands for its instances. This one is never run, so nothing has to be set up in it.
        self.value = object.__new__(workflow) if isinstance(workflow, type) else workflow
        self.definition = definition_of(self.cls)
        # A class has no value for a type variable: what is read of it is what the author wrote there.
        self.initial: Any = _attribute(self.cls, "initial_state")
        own = (*self.definition.inputs, *self.definition.states, *self.definition.outputs)
        self._matter = (*own, *_DECISIONS, Recorded)
        self.kinds = kinds_of(self.definition, by_status=by_status)
        self._plain: dict[Any, bool] = {}
        self.cases: set[Place] = set()
        """The cases that some message in some state comes to."""

    def initial_kind(self) -> Kind:
        """Return the kind of the initial state."""
        return next(
            kind
            for kind in self.kinds.values()
            if kind.cls is type(self.initial)
            and (kind.field is None or getattr(self.initial, kind.field) == kind.value)
        )

    def is_plain(self, function: Any) -> bool:
        """Tell whether a function returns neither decisions nor states nor messages."""
        if function not in self._plain:
            hint = return_hint(function)
            self._plain[function] = members(hint) is not None and not self._mentions(hint)
        return self._plain[function]

    def _mentions(self, hint: Any, depth: int = 0) -> bool:
        found = members(hint)
        if found is None or depth > NESTED_HINTS:
            return True
        for member in found:
            cls = class_of(member)
            if cls is not None and issubclass(cls, self._matter):
                return True
            if any(self._mentions(inner, depth + 1) for inner in get_args(member) if inner is not ...):
                return True
        return False


class Reader:
    """Reads functions along one way."""

    def __init__(self, subject: Subject, way: Way) -> None:
        self.subject = subject
        self.way = way

    def copy(self, way: Way) -> Reader:
        """Return a reader of another way."""
        return Reader(self.subject, way)

    def evaluate(self, node: ast.expr, frame: Frame) -> Value:
        """Return what an expression stands for."""
        return expressions.evaluate(self, node, frame)

    def test(self, node: ast.expr, frame: Frame) -> bool:
        """Return how a condition goes on this way."""
        return expressions.test(self, node, frame)

    def attribute(self, value: Value, name: str, frame: Frame) -> Value:
        """Return what an attribute stands for."""
        return objects.attribute(self, value, name, frame)

    def field(self, value: Value, name: str) -> Value:
        """Return what a field of a record stands for, outside of any function."""
        return objects.plain_field(self, value, name)

    def call(
        self, function: Value, args: Sequence[Any], keywords: Mapping[str, Value], node: Any, frame: Frame
    ) -> Value:
        """Return what a call stands for."""
        return calls.call(self, function, args, keywords, node, frame)

    def run(self, body: Sequence[ast.stmt], frame: Frame) -> Returned | None:
        """Read statements; return how they ended, None if they fell through."""
        return statements.run(self, body, frame)

    def run_function(self, function: FunctionType, bound: dict[str, Value], frame: Frame | None) -> Returned:
        """Read a function to its end."""
        return self.enter(function, bound, frame)[0]

    def enter(
        self, function: FunctionType, bound: dict[str, Value], around: Frame | None
    ) -> tuple[Returned, Frame | None]:
        """Read a function to its end; return with it the frame at its end, None if there is no source."""
        written = _written(function)
        if written is None:
            given = ", ".join(text_of(value) for value in bound.values())
            return Returned(Symbol(f"{function.__qualname__}({given})", objects.result_types(function))), None
        tree = written.tree
        frame = Frame(function, written.names, bound, written.offset, around)
        if isinstance(tree, ast.Lambda):
            return Returned(self.evaluate(tree.body, frame), tree.body), frame
        if written.yields:
            frame.yields = []
            self.run(tree.body, frame)
            return Returned(Items(list, frame.yields)), frame
        return self.run(tree.body, frame) or Returned(Known(None)), frame

    def enters(self, case: Place) -> None:
        """Know that a case is come to."""
        self.subject.cases.add(case)

    def is_plain(self, function: Any) -> bool:
        """Tell whether a function returns neither decisions nor states nor messages."""
        return self.subject.is_plain(function)

    def is_own(self, function: Any) -> bool:
        """Tell whether something is a function that is written in Python by the author."""
        return isinstance(function, FunctionType) and self.is_near(function)

    def is_near(self, function: Any) -> bool:
        """Tell whether a function is the author's own: neither Python's nor a library's."""
        return not is_library(function.__code__) and not str(function.__module__).startswith("mainspring.core.")


class _Written(Struct, frozen=True):
    """A function as it is written: its tree, what to add to its line numbers, and what its names stand for."""

    tree: Any
    offset: int
    names: Any
    yields: bool


@lru_cache(maxsize=SOURCES_KEPT)
def _written(function: FunctionType) -> _Written | None:
    source = source_of(function)
    if source is None:
        return None
    tree, offset = source
    yields = any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(tree))
    return _Written(tree, offset, Names(function, tree), yields)
