"""Where the order of a set decides: it differs from process to process, so a replay may decide otherwise.

Asking a set what is in it, counting it, sorting it and combining it with others is all right. To loop over it is not.
"""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Iterable, Iterator, MutableSet
from collections.abc import Set as AbstractSet
from contextlib import suppress
from functools import cache
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

from mainspring.purity.names import Names

CLASSES_LOOKED_AT: Final = 1_000

_SETS: Final[tuple[Any, ...]] = (set, frozenset, AbstractSet, MutableSet)
_SET_NAMES: Final = frozenset({"set", "frozenset", "Set", "FrozenSet", "AbstractSet", "MutableSet"})
_ALGEBRA: Final = frozenset({"union", "intersection", "difference", "symmetric_difference"})
_RELATIONS: Final = _ALGEBRA | {"update", "issubset", "issuperset", "isdisjoint", "difference_update"}
_SET_OPERATORS: Final = (ast.BitOr, ast.BitAnd, ast.BitXor, ast.Sub)
# What these return runs through their arguments in the arguments' order.
_RUNS_THROUGH: Final[tuple[Any, ...]] = (enumerate, zip, map, filter, iter)
_FORGETS: Final[tuple[Any, ...]] = (sorted, sum, min, max, any, all, len, set, frozenset)


class Sets:
    """What of a function is a set: some of its names, and the fields of the workflow's messages and states.

    >>> tree = ast.parse("def decide(message, state): return state.tags | message.tags").body[0]
    >>> def decide(message, state): ...
    >>> Sets(frozenset({"tags"})).has(tree.body[0].value, Names(decide, tree))
    True
    """

    def __init__(self, fields: frozenset[str] = frozenset(), held: Iterable[str] = ()) -> None:
        self._fields = fields
        self._held = set(held)

    def copy(self) -> Sets:
        """Return a copy, for a branch."""
        return Sets(self._fields, self._held)

    def merge(self, other: Sets) -> None:
        """Take over what another branch knows."""
        self._held |= other._held

    def hold(self, name: str) -> None:
        """Mark a name as a set from here on."""
        self._held.add(name)

    def drop(self, name: str) -> None:
        """Mark a name as no set from here on."""
        self._held.discard(name)

    def hold_parameters(self, arguments: ast.arguments) -> None:
        """Let those parameters stand for sets that are annotated as such."""
        for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
            if argument.annotation is not None and is_set_annotation(argument.annotation):
                self.hold(argument.arg)

    def hold_matched(self, pattern: ast.pattern, names: Names) -> None:
        """Let those names in a case's pattern stand for sets that capture a field annotated as such."""
        for node in ast.walk(pattern):
            if isinstance(node, ast.MatchClass):
                cls = names.value(node.cls)
                fields = set_fields(cls) if isinstance(cls, type) else frozenset[str]()
                positional = zip(getattr(cls, "__match_args__", ()), node.patterns, strict=False)
                for field, part in [*positional, *zip(node.kwd_attrs, node.kwd_patterns, strict=True)]:
                    if field in fields and isinstance(part, ast.MatchAs) and part.name is not None:
                        self.hold(part.name)

    def has(self, node: ast.expr, names: Names) -> bool:
        """Return True if an expression is a set whose order is not known."""
        match node:
            case ast.Set(elts=elements):
                return len(elements) > 1 and not all(_is_number(element) for element in elements)
            case ast.SetComp():
                return True
            case ast.Name(id=name) if name in self._held:
                return True
            case ast.Attribute(attr=name) if name in self._fields:
                return True
            case ast.Name() | ast.Attribute():
                return _is_unordered(names.value(node))
            case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in _ALGEBRA or name == "copy":
                return self.has(inner, names)
            case ast.Call(func=function):
                return any(names.value(function) is known for known in (set, frozenset))
            case ast.BinOp(left=left, op=operator, right=right) if isinstance(operator, _SET_OPERATORS):
                return self.has(left, names) or self.has(right, names)
            case ast.IfExp(body=left, orelse=right):
                return self.has(left, names) or self.has(right, names)
            case ast.BoolOp(values=values):
                return any(self.has(value, names) for value in values)
            case ast.NamedExpr(value=value):
                return self.has(value, names)
            case _:
                return False

    def order_used(self, node: ast.AST, names: Names) -> str | None:
        """Return what a statement or expression does that depends on the order of a set, if it does."""
        match node:
            case ast.For(iter=iterated) if self._runs(iterated, names):
                return f"loops over {ast.unparse(iterated)}"
            case ast.ListComp(generators=generators):
                looped = next((g.iter for g in generators if self._runs(g.iter, names)), None)
                return None if looped is None else f"loops over {ast.unparse(looped)}"
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                parts = (e.value for e in elements if isinstance(e, ast.Starred))
                unpacked = next((part for part in parts if self._runs(part, names)), None)
                return None if unpacked is None else f"lists {ast.unparse(unpacked)}"
            case ast.Call(func=ast.Attribute(value=taken, attr="pop"), args=[]) if self.has(taken, names):
                return f"takes any one of {ast.unparse(taken)}"
            case ast.Call(func=function, args=[argument, *_]) if self._runs(argument, names):
                return _order_used_by_call(names.value(function), function, argument)
            case _:
                return None

    def _runs(self, node: ast.expr, names: Names) -> bool:
        """Return True if an expression is a set, or an iterator that runs through one."""
        match node:
            case ast.GeneratorExp(generators=generators):
                return any(self._runs(generator.iter, names) for generator in generators)
            case ast.Call(func=function, args=args) if any(names.value(function) is known for known in _RUNS_THROUGH):
                return any(self._runs(argument, names) for argument in args)
            case _:
                return self.has(node, names)


def _order_used_by_call(function: Any, name: ast.expr, argument: ast.expr) -> str | None:
    text = ast.unparse(argument)
    if function is list or function is tuple:
        return f"makes a {function.__name__} of {text}"
    # The first that meets a condition is mostly the only one that does.
    if function is next and not (isinstance(argument, ast.GeneratorExp) and any(g.ifs for g in argument.generators)):
        return f"takes the first of {text}"
    return f"joins {text}" if isinstance(name, ast.Attribute) and name.attr == "join" else None


def orderless_parts(node: ast.AST, names: Names) -> list[ast.expr]:
    """Return the parts of an expression whose order is lost in it, as that of what is sorted or counted.

    >>> tree = ast.parse("def decide(message, state): return sorted(list(state.tags))").body[0]
    >>> def decide(message, state): ...
    >>> [ast.unparse(part) for part in orderless_parts(tree.body[0].value, Names(decide, tree))]
    ['list(state.tags)']
    """
    match node:
        case ast.Call(func=ast.Attribute(attr=name), args=args) if name in _RELATIONS:
            return args
        case ast.Call(func=function, args=args) if any(names.value(function) is known for known in _FORGETS):
            return args
        case ast.Compare(ops=operators, comparators=compared):
            pairs = zip(operators, compared, strict=True)
            return [part for operator, part in pairs if isinstance(operator, ast.In | ast.NotIn)]
        case ast.SetComp(generators=generators):
            return [generator.iter for generator in generators]
        case _:
            return []


def set_fields_among(classes: Iterable[type[Any]]) -> frozenset[str]:
    """Return the names under which the fields of some classes, and of the classes in these, are always sets.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Order:
    ...     tags: frozenset[str]
    ...     items: list[str]
    >>> set_fields_among([Order])
    frozenset({'tags'})
    """
    always: set[str] = set()
    not_always: set[str] = set()
    for cls in _with_parts(classes):
        fields = set_fields(cls)
        always |= fields
        not_always |= _hints(cls).keys() - fields
    return frozenset(always - not_always)


@cache
def set_fields(cls: type[Any]) -> frozenset[str]:
    """Return the fields of a class that are annotated as sets.

    >>> set_fields(int)
    frozenset()
    """
    return frozenset(name for name, hint in _hints(cls).items() if _is_set_hint(hint))


def is_set_annotation(annotation: ast.expr) -> bool:
    """Return True if an annotation in the source is that of a set.

    >>> is_set_annotation(ast.parse("frozenset[str] | None", mode="eval").body)
    True
    """
    match annotation:
        case ast.Subscript(value=inner):
            return is_set_annotation(inner)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in _SET_NAMES
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return is_set_annotation(left) or is_set_annotation(right)
        case _:
            return False


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def _is_unordered(value: Any) -> bool:
    """Return True if an object is a set with something in it whose hash differs from process to process."""
    if not isinstance(value, set | frozenset):
        return False
    elements: list[object] = list(value)  # pyright: ignore[reportUnknownArgumentType]
    return len(elements) > 1 and not all(isinstance(element, int) for element in elements)


def _hints(cls: type[Any]) -> dict[str, Any]:
    with suppress(Exception):
        return get_type_hints(cls, include_extras=True)
    # A name is there for type checkers only. What is written without it can still be read.
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        with suppress(Exception):
            found |= inspect.get_annotations(base)
    return found


def _is_set_hint(hint: Any) -> bool:
    if isinstance(hint, str):
        return hint.strip().partition("[")[0].rpartition(".")[2] in _SET_NAMES
    if hasattr(hint, "__value__"):
        return _is_set_hint(hint.__value__)
    origin = get_origin(hint)
    if origin is Annotated:
        return _is_set_hint(get_args(hint)[0])
    if origin in (Union, types.UnionType):
        return any(_is_set_hint(argument) for argument in get_args(hint))
    return any((origin or hint) is known for known in _SETS)


def _with_parts(classes: Iterable[type[Any]]) -> Iterator[type[Any]]:
    """Yield classes and, once each, the classes with fields that their fields are made of."""
    waiting = list(classes)
    seen: set[type[Any]] = set()
    while waiting and len(seen) < CLASSES_LOOKED_AT:
        cls = waiting.pop()
        if cls in seen:
            continue
        seen.add(cls)
        yield cls
        for hint in _hints(cls).values():
            waiting += _classes_in(hint)


def _classes_in(hint: Any) -> list[type[Any]]:
    if isinstance(hint, type) and get_origin(hint) is None:
        return [hint]
    return [cls for argument in get_args(hint) for cls in _classes_in(argument)]
