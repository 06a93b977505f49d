"""Which inputs answer a workflow's tasks, as its code says: without running it, and without a row to look at.

All that its methods, messages and states lead to is searched: an Ask that is there already says what answers it,
and where a function makes one, what stands there as its `answer` is read.
"""

from __future__ import annotations

import ast
import dis
import gc
import sys
from collections import ChainMap, deque
from collections.abc import Iterable, Iterator, Mapping
from importlib.util import resolve_name
from types import CodeType, FunctionType, GenericAlias, ModuleType, NoneType, UnionType
from typing import Any, Final, Union, cast

from msgspec import Struct

from mainspring.core.decisions import Ask
from mainspring.core.definition import definition_of
from mainspring.core.type_parameters import union_members
from mainspring.core.workflow import Workflow
from mainspring.purity.names import MISSING, Names, closure_of
from mainspring.sources import source_of

VALUES_LOOKED_AT: Final = 20_000

_KEPT_AS: Final = "__mainspring_answers__"
_OTHERS: Final = frozenset({"mainspring", "msgspec", "pydantic", "pydantic_core", *sys.stdlib_module_names})
_HOLDERS: Final = frozenset({"builtins", "collections", "dataclasses", "functools", "types"})
"""Where the types are from that hold what is an object's own: lists and mappings, methods, partials, fields."""
_PLAIN: Final = frozenset({str, int, float, complex, bool, bytes, NoneType, CodeType, UnionType, GenericAlias})


class _UnreadError(Exception):
    """Something leads to code that cannot be read."""


def answers_in(cls: type[Workflow[Any, Any, Any]]) -> frozenset[type[Any]] | None:
    """Return the inputs of a workflow class that answer its tasks; None where that cannot be read.

    >>> from mainspring.testing.samples import Counter, LeaveRequests
    >>> [sorted(answer.__name__ for answer in answers_in(cls)) for cls in (Counter, LeaveRequests)]
    [[], ['Leave']]
    """
    try:
        return vars(cls)[_KEPT_AS]
    except KeyError:
        # With the class, as its definition is: a cache would never let a class go.
        setattr(cls, _KEPT_AS, answers := _read(cls))
        return answers


def _read(cls: type[Workflow[Any, Any, Any]]) -> frozenset[type[Any]] | None:
    definition = definition_of(cls)
    found: set[Any] = set()
    try:
        for value in _Reached(cls, (*definition.inputs, *definition.states)):
            if issubclass(type(value), Ask):
                found.update(cast("Ask[Any]", value).answers)
            elif type(value) is FunctionType and _names_ask(value):
                found |= _answers(value, cls)
            elif issubclass(type(value), type) and Ask in cast("type[Any]", value).__mro__:
                return None  # where it is called, no Ask is named
    except _UnreadError:
        return None
    return frozenset(found & definition.inputs.keys())


# ---- what the code leads to


class _Reached:
    """Everything of their own that the functions of a workflow, its messages and its states lead to, the nearest first.

    None of it is asked for anything: what stands for another may do whatever it likes then.
    """

    def __init__(self, cls: type[Any], data: Iterable[type[Any]]) -> None:
        own = cls.__mro__[: cls.__mro__.index(Workflow)]
        self._modules = {base.__module__ for base in own}
        self._roots = {_root(name) for name in self._modules}
        self._seen: dict[int, Any] = {}
        self._waiting: deque[Any] = deque()
        self._add((*own, *data))

    def __iter__(self) -> Iterator[Any]:
        while self._waiting:
            value = self._waiting.popleft()
            yield value
            self._add(self._next(value))

    def _add(self, values: Iterable[Any]) -> None:
        for value in values:
            if id(value) not in self._seen and self._is_own(value):
                self._seen[id(value)] = value
                self._waiting.append(value)
        if len(self._seen) > VALUES_LOOKED_AT:
            raise _UnreadError

    def _is_own(self, value: Any) -> bool:
        """Return True if a value may lead to an Ask; what is in libraries knows of none."""
        kind = cast("type[Any]", type(value))
        if kind in _PLAIN:
            return False
        if value is Ask or issubclass(kind, Ask):
            return True
        if kind is ModuleType:
            return not self._is_of_others(value.__name__)
        if kind is FunctionType or issubclass(kind, type):
            return not self._is_of_others(str(value.__module__))
        return _root(kind.__module__) in _HOLDERS or not self._is_of_others(kind.__module__)

    def _is_of_others(self, module: str) -> bool:
        return module not in self._modules and _root(module) in _OTHERS

    def _next(self, value: Any) -> Iterable[Any]:
        kind = cast("type[Any]", type(value))
        if kind is FunctionType:
            return self._named(value)
        if kind is ModuleType:
            return list(cast("ModuleType", value).__dict__.values())
        if issubclass(kind, type):
            cls = cast("type[Any]", value)
            written = [each for name, each in vars(cls).items() if not name.startswith("__annot")]
            return [*written, *cls.__bases__, *(cls.__struct_defaults__ if issubclass(cls, Struct) else ())]
        if issubclass(kind, Ask):
            return ()
        if issubclass(kind, Struct):  # which may be unknown to gc
            return [kind, *(getattr(value, name) for name in kind.__struct_fields__)]
        return gc.get_referents(value)

    def _named(self, function: FunctionType) -> Iterator[Any]:
        """Yield what a function holds, and what its names lead to, through modules too; its use of Ask is read."""
        yield from (function.__defaults__, function.__kwdefaults__, vars(function))
        names = set(_names(function))
        known = _known(function)
        waiting = [*(known[name] for name in names if name in known), *self._imported(function)]
        modules: set[str] = set()
        while waiting:
            value = waiting.pop()
            if type(value) is not ModuleType:
                if value is not Ask:
                    yield value
            elif value.__name__ not in modules and self._is_own(value):
                modules.add(value.__name__)
                waiting += [vars(value)[name] for name in names if name in vars(value)]

    def _imported(self, function: FunctionType) -> Iterator[ModuleType]:
        """Yield the modules that a function imports. None is loaded: reading a workflow runs no author's code."""
        for name, parts in _imports(function):
            module = sys.modules.get(name)
            if module is not None:
                yield module
            is_there = module is not None and all(part in vars(module) for part in parts)
            # What others wrote, and is loaded late for its weight, knows of no Ask.
            if not is_there and {_root(function.__module__), _root(name)} <= self._roots:
                raise _UnreadError


def _imports(function: FunctionType) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the names of the modules that a function imports, and of what it takes from them."""
    for code in _codes(function.__code__):
        steps = [each for each in dis.get_instructions(code) if each.opcode != dis.EXTENDED_ARG]
        for level, parts, step in zip(steps, steps[1:], steps[2:], strict=False):
            if step.opname == "IMPORT_NAME":
                try:
                    name = resolve_name("." * level.argval + step.argval, function.__globals__.get("__package__") or "")
                except ImportError as error:  # it is in no package
                    raise _UnreadError from error
                yield name, parts.argval or ()


def _root(module: str) -> str:
    return module.partition(".")[0]


def _known(function: FunctionType) -> Mapping[str, Any]:
    """Return what the names of a function stand for outside of it."""
    return ChainMap(closure_of(function), function.__globals__)


def _names(function: FunctionType) -> Iterator[str]:
    for code in _codes(function.__code__):
        yield from (*code.co_names, *code.co_freevars)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of a function, and of those inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


# ---- what is asked in one


def _names_ask(function: FunctionType) -> bool:
    """Return True if a function has a name for Ask. No source is needed for that."""
    known = _known(function)
    return any(name == Ask.__name__ or known.get(name) is Ask for name in _names(function))


def _answers(function: FunctionType, cls: type[Any]) -> set[Any]:
    """Return the types that answer what a function asks."""
    source = source_of(function)
    if source is None or isinstance(source[0], ast.Lambda):  # which one on its line it is cannot be known
        raise _UnreadError
    tree = source[0]
    reader = _Asks(Names(function, tree, cls), tree)
    for node in tree.body:
        reader.visit(node)
    if reader.answers is None or not reader.found:
        raise _UnreadError
    return reader.answers


class _Asks(ast.NodeVisitor):
    """Finds what is asked, and what else becomes of the name Ask."""

    def __init__(self, names: Names, tree: ast.AST) -> None:
        self._names = names
        self._tree = tree
        self.answers: set[Any] | None = set()
        self.found = False
        """Whether there is an Ask at all: where only the code knows of one, the source is another's."""

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func.value if isinstance(node.func, ast.Subscript) else node.func
        if self._value(called) is Ask:
            self._add(self._answer(node))
        elif self._value(called) is isinstance and len(node.args) == 2:
            self._look_for(node.args[1])
            self.visit(node.args[0])
            return
        else:
            self.visit(node.func)
        for part in (*node.args, *node.keywords):
            self.visit(part)

    def visit_Name(self, node: ast.Name) -> None:
        self._passed_on(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._passed_on(node)
        self.visit(node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_MatchClass(self, node: ast.MatchClass) -> None:
        self._look_for(node.cls)
        for pattern in (*node.patterns, *node.kwd_patterns):
            self.visit(pattern)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        given = (*node.args.defaults, *filter(None, node.args.kw_defaults))
        for part in (*node.decorator_list, *given, *node.body):
            self.visit(part)

    def _value(self, node: ast.expr) -> Any:
        """Return what an expression stands for; a proxy may raise anything when it is touched."""
        try:
            return self._names.value(node)
        except Exception:  # noqa: BLE001  as above: it is no type, and so no answer
            return MISSING

    def _look_for(self, types: ast.expr) -> None:
        """See Ask where it is only compared with: nothing is asked there."""
        each = (part for part in ast.walk(types) if isinstance(part, ast.Name | ast.Attribute))
        self.found = self.found or any(self._value(part) is Ask for part in each)

    def _passed_on(self, node: ast.expr) -> None:
        if self._value(node) is Ask:
            self._add(None)  # what it is given to may ask anything

    def _add(self, answers: set[Any] | None) -> None:
        self.found = True
        self.answers = None if answers is None or self.answers is None else self.answers | answers

    def _answer(self, node: ast.Call) -> set[Any] | None:
        if len(node.args) > 1 and not any(isinstance(each, ast.Starred) for each in node.args[:2]):
            return self._types(node.args[1])
        given = next((keyword.value for keyword in node.keywords if keyword.arg == "answer"), None)
        return None if given is None else self._types(given)

    def _types(self, node: ast.expr, depth: int = 0) -> set[Any] | None:
        """Return the types that an expression stands for."""
        match node:
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                return self._all([left, right], depth)
            case ast.IfExp(body=body, orelse=orelse):
                return self._all([body, orelse], depth)
            case ast.Tuple(elts=parts):
                return self._all(parts, depth)
            case ast.Subscript(value=generic, slice=ast.Tuple(elts=parts)) if self._value(generic) is Union:
                return self._all(parts, depth)
            case ast.Name(id=name) if name in self._names.local:
                return self._all(self._assigned(name), depth)
            case _:
                value = self._value(node)
                given = cast("tuple[Any, ...]", value) if isinstance(value, tuple) else (value,)
                members = {member for each in given if each is not MISSING for member in union_members(each)}
                return members if members and all(isinstance(each, type) for each in members) else None

    def _all(self, nodes: list[ast.expr], depth: int) -> set[Any] | None:
        found = [self._types(each, depth + 1) for each in nodes] if depth < 20 else []
        known = [each for each in found if each is not None]
        return set[Any]().union(*known) if found and len(known) == len(found) else None

    def _assigned(self, name: str) -> list[ast.expr]:
        """Return what a name of the function is assigned; nothing where it comes in otherwise too."""
        stores = [n for n in ast.walk(self._tree) if isinstance(n, ast.Name) and n.id == name and _is_store(n)]
        values = [
            node.value
            for node in ast.walk(self._tree)
            if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets)
        ]
        comes_in = any(isinstance(node, ast.arg) and node.arg == name for node in ast.walk(self._tree))
        return values if len(stores) == len(values) and not comes_in else []


def _is_store(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)
