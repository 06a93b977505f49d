"""Whose value a name holds: what came in from outside is not the function's own to change.

foreign    an argument, or a part of one
self       the workflow itself
global     something of the module, or of a function around
own        made here: a list may be appended to
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Final, Literal, TypeAlias

from mainspring.purity.names import Names
from mainspring.purity.sets import Sets

Owner: TypeAlias = Literal["foreign", "self", "global", "own"]

# A part of what these return is a part of what they were called on.
_READING_METHODS: Final = frozenset({"get", "values", "items", "keys", "__getitem__", "copy"})
_SHARING_METHODS: Final = _READING_METHODS - {"copy"}
_SHARING_FUNCTIONS: Final = frozenset(
    {"enumerate", "zip", "reversed", "sorted", "iter", "list", "tuple", "filter", "next"}
)


_STRONGEST_FIRST: Final[tuple[Owner, ...]] = ("foreign", "self", "global")


class Owners:
    """The owners of a function's names at one place in its source.

    >>> Owners({"state": "foreign"}).copy().names
    {'state': 'foreign'}
    """

    def __init__(self, names: dict[str, Owner], sets: Sets | None = None) -> None:
        self.names = names
        self.sets = sets or Sets()
        """Which of the names hold sets, of any owner."""

    def copy(self) -> Owners:
        """Return a copy, for a branch."""
        return Owners(dict(self.names), self.sets.copy())

    def merge(self, other: Owners) -> None:
        """Take over what another branch knows: what is foreign in one of them must not be changed after both."""
        self.names.update(other.names)
        self.sets.merge(other.sets)

    def of(self, node: ast.expr, names: Names) -> Owner:
        """Return whose value an expression is."""
        match node:
            case ast.Name(id=name):
                return self._of_name(name, names)
            case ast.Attribute(value=inner) | ast.Subscript(value=inner) | ast.Starred(value=inner):
                return self.of(inner, names)
            case ast.NamedExpr(value=inner):
                return self.of(inner, names)
            case ast.IfExp(body=left, orelse=right):
                return self._strongest([left, right], names)
            case ast.BoolOp(values=values):
                return self._strongest(values, names)
            case ast.Call(func=ast.Name(id="type" | "vars" | "super"), args=args):
                return self.of(args[0], names) if args else "self"
            case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in _SHARING_METHODS:
                return self.of(inner, names)
            case _:
                return "own"

    def bind(self, target: ast.expr, value: ast.expr, names: Names) -> None:
        """Bind a target to a value."""
        match target, value:
            case ((ast.Tuple(elts=targets) | ast.List(elts=targets)), ast.Tuple(elts=values)) if len(targets) == len(
                values
            ):
                for part, part_value in zip(targets, values, strict=True):
                    self.bind(part, part_value, names)
            case _:
                is_set = self.sets.has(value, names)
                self._bind_to(target, self.of(value, names))
                if is_set and isinstance(target, ast.Name):
                    self.sets.hold(target.id)

    def bind_elements(self, target: ast.expr, iterated: ast.expr, names: Names) -> None:
        """Let a loop's target stand for the elements of what is iterated."""
        match iterated:
            case ast.Call(func=ast.Name(id=name), args=args) if name in _SHARING_FUNCTIONS:
                self._bind_to(target, self._strongest_element(args, names))
            case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in _READING_METHODS:
                self._bind_to(target, self.of(inner, names))
            case _:
                self._bind_to(target, self.of(iterated, names))

    def bind_pattern(self, pattern: ast.pattern, subject: ast.expr, names: Names) -> None:
        """Let the names in a case's pattern stand for parts of the subject."""
        match pattern, subject:
            case ast.MatchSequence(patterns=parts), ast.Tuple(elts=values) if len(parts) == len(values):
                for part, value in zip(parts, values, strict=True):
                    self.bind_pattern(part, value, names)
            case ast.MatchOr(patterns=patterns), _:
                for part in patterns:
                    self.bind_pattern(part, subject, names)
            case ast.MatchAs(pattern=inner, name=name), ast.Tuple() if inner is not None:
                self.bind_pattern(inner, subject, names)
                if name is not None:
                    self._bind_to(ast.Name(name), "own")
            case _:
                owner = self._strongest(subject.elts if isinstance(subject, ast.Tuple) else [subject], names)
                for node in ast.walk(pattern):
                    name = getattr(node, "rest", None) or getattr(node, "name", None)
                    if isinstance(name, str):
                        self._bind_to(ast.Name(name), owner)
                self.sets.hold_matched(pattern, names)

    def forget(self, target: ast.Name) -> None:
        """Let a name hold a value of the function's own from here on."""
        self.names.pop(target.id, None)
        self.sets.drop(target.id)

    def _bind_to(self, target: ast.expr, owner: Owner) -> None:
        for node in ast.walk(target):
            if isinstance(node, ast.Name) and (node is target or not isinstance(node.ctx, ast.Load)):
                self.forget(node)
                if owner != "own":
                    self.names[node.id] = owner

    def _of_name(self, name: str, names: Names) -> Owner:
        known = self.names.get(name)
        if known is not None:
            return known
        if name == names.self_name:
            return "self"
        return "global" if names.is_global(name) else "own"

    def _strongest(self, nodes: list[ast.expr], names: Names) -> Owner:
        return _strongest(self.of(node, names) for node in nodes)

    def _strongest_element(self, nodes: list[ast.expr], names: Names) -> Owner:
        probe = ast.Name("element", ast.Store())
        found: list[Owner] = []
        for node in nodes:
            inner = self.copy()
            inner.names.pop("element", None)
            inner.bind_elements(probe, node, names)
            found.append(inner.names.get("element", "own"))
        return _strongest(found)


def _strongest(found: Iterable[Owner]) -> Owner:
    owners = set(found)
    for owner in _STRONGEST_FIRST:
        if owner in owners:
            return owner
    return "own"
