"""The reader of one way: statements (what is assigned, which branch is taken, how it ends), and all parts together."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import FunctionType
from typing import Any, Final, get_args

from msgspec import Struct

from mainspring.analysis.reading import calls, expressions, objects
from mainspring.analysis.reading.expressions import as_often, spread
from mainspring.analysis.reading.frames import Frame, RaisedError, Reading, Returned
from mainspring.analysis.reading.model import Place
from mainspring.analysis.reading.patterns import Patterns, bind_target
from mainspring.analysis.reading.records import Kind, class_of, kinds_of, members, return_hint
from mainspring.analysis.reading.values import Closure, Items, Known, Repeated, Symbol, Value, text_of
from mainspring.analysis.reading.ways import Way
from mainspring.core.decisions import Decision
from mainspring.core.definition import definition_of
from mainspring.core.events import Recorded
from mainspring.core.type_parameters import union_members
from mainspring.core.workflow import Workflow
from mainspring.purity.guard import is_library
from mainspring.purity.names import Names
from mainspring.sources import source_of

ROUNDS: Final = 2
"""A loop whose number of turns is unknown is read this often at most: enough for one part to follow another."""
EXACT_ROUNDS: Final = 100

_LEFT: Final = Returned(Known(None))
"""How `break` and `continue` end a body; the loop knows it by identity."""
_NEXT: Final = Returned(Known(None), "continue")


def run(reader: Reading, body: Sequence[ast.stmt], frame: Frame) -> Returned | None:
    """Read statements; return how they ended, None if they fell through."""
    for node in body:
        ended = _run_one(reader, node, frame)
        if ended is not None:
            return ended
    return None


def _run_one(reader: Reading, node: ast.stmt, frame: Frame) -> Returned | None:
    match node:
        case ast.Return(value=value):
            return Returned(Known(None) if value is None else reader.evaluate(value, frame), node)
        case ast.If(test=test, body=body, orelse=orelse):
            return run(reader, body if reader.test(test, frame) else orelse, frame)
        case ast.Match():
            return _matched(reader, node, frame)
        case ast.Assign(targets=targets, value=value):
            found = reader.evaluate(value, frame)
            for target in targets:
                bind_target(target, found, reader, frame)
        case ast.AnnAssign(target=target, value=value) if value is not None:
            bind_target(target, reader.evaluate(value, frame), reader, frame)
        case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
            _augment(reader, name, op, value, frame)
        case ast.Expr(value=value):
            reader.evaluate(value, frame)
        case ast.For():
            return _looped(reader, node, frame)
        case ast.While():
            return _while(reader, node, frame)
        case ast.With(body=body):
            return run(reader, body, frame)
        case ast.Try():
            return _tried(reader, node, frame)
        case ast.Raise():
            raise RaisedError
        case ast.Assert(test=test):
            if not reader.test(test, frame):
                raise RaisedError
        case ast.FunctionDef(name=name):
            frame.env[name] = Closure(node, frame)
        case ast.Break():
            return _LEFT
        case ast.Continue():
            return _NEXT
        case _:
            pass  # imports, pass, global: what they bind is looked up where it is used
    return None


def _matched(reader: Reading, node: ast.Match, frame: Frame) -> Returned | None:
    quiet = frame.quiet
    frame.quiet = quiet or isinstance(node.subject, ast.Call)
    value = reader.evaluate(node.subject, frame)
    frame.quiet = quiet
    patterns = Patterns(reader, frame)
    for case in node.cases:
        before = dict(frame.env)
        if patterns.case(case.pattern, node.subject, value) and (case.guard is None or reader.test(case.guard, frame)):
            place = frame.place(case.pattern)
            frame.case = place.line
            reader.enters(place)
            return run(reader, case.body, frame)
        frame.env = before
    return None


def _augment(reader: Reading, name: str, op: ast.operator, value: ast.expr, frame: Frame) -> None:
    added = reader.evaluate(value, frame)
    before = frame.env.get(name, Symbol(name))
    if isinstance(before, Items) and isinstance(op, ast.Add):
        parts = as_often(spread(reader, added), frame)
        if before.cls is list:
            before.parts += parts
        else:
            frame.env[name] = Items(before.cls, [*before.parts, *parts])
    else:
        types = reader.way.types(before) if isinstance(before, Symbol) else None
        frame.env[name] = Symbol(text_of(Symbol(f"({text_of(before)} {type(op).__name__} {text_of(added)})")), types)


def _looped(reader: Reading, node: ast.For, frame: Frame) -> Returned | None:
    over = spread(reader, reader.evaluate(node.iter, frame))
    exact = len(over) <= EXACT_ROUNDS and not any(isinstance(part, Repeated) for part in over)
    # Another loop over the same may stop at another element: each has its own.
    rounds = over if exact else _rounds(over, str(frame.place(node)))
    frame.repeating += not exact
    try:
        for place, part in enumerate(rounds):
            if not exact and not reader.way.ask(f"round {place} over {text_of(part)} at {frame.place(node)}"):
                continue
            value: Value = part.alternatives[0] if isinstance(part, Repeated) else part
            bind_target(node.target, value, reader, frame)
            ended = run(reader, node.body, frame)
            if ended is _LEFT:
                return None
            if ended is not None and ended is not _NEXT:
                return ended
    finally:
        frame.repeating -= not exact
    return run(reader, node.orelse, frame)


def _rounds(over: Sequence[Any], loop: str) -> list[Any]:
    """Return what a loop of unknown length is read with: each alternative may follow each other one."""
    alternatives = [
        alternative for part in over for alternative in (part.alternatives if isinstance(part, Repeated) else (part,))
    ]
    found: list[Any] = []
    for place in range(ROUNDS):
        for value in alternatives:
            renamed = Symbol(f"{value.path}[{place} at {loop}]", value.types) if isinstance(value, Symbol) else value
            found.append(renamed)
    return found


def _while(reader: Reading, node: ast.While, frame: Frame) -> Returned | None:
    frame.repeating += 1
    try:
        for _ in range(ROUNDS):
            if not reader.test(node.test, frame):
                break
            ended = run(reader, node.body, frame)
            if ended is _LEFT:
                return None
            if ended is not None and ended is not _NEXT:
                return ended
    finally:
        frame.repeating -= 1
    return run(reader, node.orelse, frame)


def _tried(reader: Reading, node: ast.Try, frame: Frame) -> Returned | None:
    """Read a try statement: all goes well, or a handler takes over at its beginning."""
    for handler in node.handlers:
        raised = reader.way.ask(f"raises into {frame.place(handler)}")
        what = "an error" if handler.type is None else frame.text(handler.type)
        reader.way.note(f"{what} is raised", f"{what} is not raised", holds=raised, shown=not frame.quiet)
        if raised:
            return run(reader, [*handler.body, *node.finalbody], frame)
    ended = run(reader, [*node.body, *node.orelse], frame)
    return ended if ended is not None else run(reader, node.finalbody, frame)


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
        """Return True if a function returns neither decisions nor states nor messages."""
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
        return run(self, body, frame)

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
        """Return True if a function returns neither decisions nor states nor messages."""
        return self.subject.is_plain(function)

    def is_own(self, function: Any) -> bool:
        """Return True if something is a function that is written in Python by the author."""
        return isinstance(function, FunctionType) and self.is_near(function)

    def is_near(self, function: Any) -> bool:
        """Return True if a function is the author's own: neither Python's nor a library's."""
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
