"""Which inputs answer a workflow's tasks, as its code says: without running it, and without a row to look at.

Every function that its methods, messages and states may call is looked through for an Ask, and what stands there as its
`answer` is read.
"""

from __future__ import annotations

import ast
import sys
from collections import ChainMap, deque
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, partial
from inspect import unwrap
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final, Union, cast

from mainspring.core.decisions import Ask
from mainspring.core.definition import definition_of
from mainspring.core.type_parameters import union_members
from mainspring.core.workflow import Workflow
from mainspring.purity.names import MISSING, Names
from mainspring.purity.sources import source_of

FUNCTIONS_LOOKED_AT: Final = 5_000

_FUNCTIONS: Final = (FunctionType, MethodType, staticmethod, classmethod, type(cache(lambda: None)))
_OTHERS: Final = frozenset({"mainspring", "msgspec", "pydantic", "pydantic_core", *sys.stdlib_module_names})


@cache
def answers_in(cls: type[Workflow[Any, Any, Any]]) -> frozenset[type[Any]] | None:
    """Return the inputs of a workflow class that answer its tasks; None where that cannot be read.

    >>> from mainspring.testing.samples import Counter, LeaveRequests
    >>> [sorted(answer.__name__ for answer in answers_in(cls)) for cls in (Counter, LeaveRequests)]
    [[], ['Leave']]
    """
    definition = definition_of(cls)
    found: set[Any] = set()
    for function in _reached(cls, (*definition.inputs, *definition.states)):
        answers = _answers(function, cls) if _names_ask(function) else set[Any]()
        if answers is None:
            return None
        found |= answers
    return frozenset(found & definition.inputs.keys())


# ---- which functions there are


def _reached(cls: type[Any], data: Iterable[type[Any]]) -> Iterator[FunctionType]:
    """Yield the functions that a workflow's own may call, the nearest first."""
    waiting: deque[FunctionType] = deque()
    for base in cls.__mro__[: cls.__mro__.index(Workflow)]:
        waiting += _functions_of(base)
    for each in data:
        waiting += _functions_of(each)
    seen = set(waiting)
    while waiting and len(seen) < FUNCTIONS_LOOKED_AT:
        function = waiting.popleft()
        yield function
        for other in _called(function):
            if other not in seen and not _is_of_others(other, cls):
                seen.add(other)
                waiting.append(other)


def _functions_of(cls: type[Any]) -> list[FunctionType]:
    """Return the functions that are written in a class."""
    found = [member.fget if isinstance(member, property) else member for member in vars(cls).values()]
    return [plain for each in found if (plain := _plain(each)) is not None]


def _called(function: FunctionType) -> Iterator[FunctionType]:
    """Yield what the names in a function lead to: functions, those of classes and of their instances, and in modules.

    Only the type of a value is looked at: one that stands for another may do anything when it is asked for more.
    """
    names = {name for code in _codes(function.__code__) for name in (*code.co_names, *code.co_freevars)}
    known = _known(function)
    values = [known[name] for name in names if name in known]
    for module in [value for value in values if type(value) is ModuleType]:
        values += [vars(module)[name] for name in names if name in vars(module)]
    for value in values:
        plain = _plain(value)
        if plain is not None:
            yield plain
        elif type(value) is partial:
            yield from filter(None, [_plain(value.func)])
        else:
            cls = cast("type[Any]", type(value))
            yield from _functions_of(value if issubclass(cls, type) else cls)


def _is_of_others(function: FunctionType, cls: type[Any]) -> bool:
    return function.__module__ != cls.__module__ and (function.__module__ or "").partition(".")[0] in _OTHERS


def _plain(value: Any) -> FunctionType | None:
    """Return the function that a value is, also behind a decorator; None if it is none."""
    if not issubclass(type(value), _FUNCTIONS):
        return None
    try:
        plain = unwrap(getattr(value, "__func__", value))
    except ValueError:  # it is wrapped in itself
        return None
    return plain if type(plain) is FunctionType else None


def _known(function: FunctionType) -> Mapping[str, Any]:
    """Return what the names of a function stand for outside of it."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return ChainMap({name: cell.cell_contents for name, cell in cells if _is_set(cell)}, function.__globals__)


def _is_set(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018  an empty one raises
    except ValueError:
        return False
    return True


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of a function, and of those inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


# ---- what is asked in one


def _names_ask(function: FunctionType) -> bool:
    """Tell whether a function has a name for Ask. No source is needed for that."""
    known = _known(function)
    names = (name for code in _codes(function.__code__) for name in (*code.co_names, *code.co_freevars))
    return any(name == Ask.__name__ or _is_ask(known.get(name)) for name in names)


def _is_ask(value: Any) -> bool:
    return value is Ask or (type(value) is partial and _is_ask(value.func))


def _answers(function: FunctionType, cls: type[Any]) -> set[Any] | None:
    """Return the types that answer what a function asks; None where that cannot be read."""
    source = source_of(function)
    if source is None or isinstance(source[0], ast.Lambda):  # which one on its line it is, nobody can tell
        return None
    tree = source[0]
    names = Names(function, tree, cls)
    reader = _Asks(names, tree)
    for node in tree.body:
        reader.visit(node)
    return reader.answers if reader.found else None


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
        for statement in node.body:
            self.visit(statement)

    def _value(self, node: ast.expr) -> Any:
        """Return what an expression stands for; what stands for another may raise anything when it is looked at."""
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
            self._add(None)  # whoever it is given to may ask anything

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
