"""Reads one function: what in it is impure, and which functions it calls that must be read as well."""

from __future__ import annotations

import ast
import bisect
import heapq
from collections.abc import Callable, Iterable, MutableMapping, MutableSequence, MutableSet
from types import FunctionType
from typing import Any, Final

from mainspring.purity.names import MISSING, Names
from mainspring.purity.owners import Owners
from mainspring.purity.rules import Rule
from mainspring.purity.sets import is_set_annotation, orderless_parts

# These return nothing on Python's own containers; a result that is used shows a method that builds a new value.
_SILENT_CHANGES: Final = frozenset(
    {"append", "extend", "insert", "remove", "clear", "update", "add", "discard", "sort", "reverse"}
    | {"appendleft", "extendleft", "rotate", "subtract", "move_to_end", "intersection_update", "difference_update"}
    | {"symmetric_difference_update", "__setitem__", "__delitem__", "__setattr__", "__delattr__"}
)
_TELLING_CHANGES: Final = frozenset({"pop", "popitem", "popleft", "setdefault"})
_CHANGES_FIRST_ARGUMENT: Final[tuple[Any, ...]] = (
    *(setattr, delattr, object.__setattr__, object.__delattr__),
    *(heapq.heappush, heapq.heappop, heapq.heapify, heapq.heapreplace, heapq.heappushpop),
    *(bisect.insort, bisect.insort_left, bisect.insort_right),
)
_CONTAINERS: Final = (MutableSequence, MutableSet, MutableMapping)

Report = Callable[[Rule, ast.AST, str], None]


class Reader(ast.NodeVisitor):
    """Walks through a function in the order of its source, and reports what is impure.

    >>> found = []
    >>> tree = ast.parse("def decide(message, state): state.items.append(message)").body[0]
    >>> def decide(message, state): ...
    >>> names, owners = Names(decide, tree), Owners({"message": "foreign", "state": "foreign"})
    >>> Reader(names, owners, lambda rule, node, what: found.append((rule, what)), lambda *_: None).read(tree)
    >>> found
    [('mutation', 'calls state.items.append')]
    """

    def __init__(
        self,
        names: Names,
        owners: Owners,
        report: Report,
        follow: Callable[[ast.expr, ast.Call | None, Reader], None],
        free_names: Iterable[str] = (),
    ) -> None:
        self.names = names
        self.owners = owners
        self.report = report
        self._follow = follow
        self._free_names = frozenset(free_names)
        self._discarded: ast.expr | None = None
        self._orderless: set[ast.AST] = set()

    def read(self, tree: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        """Read the body of a function; its decorators and defaults ran before it."""
        self.owners.sets.hold_parameters(tree.args)
        for node in tree.body if isinstance(tree.body, list) else [tree.body]:
            self.visit(node)

    def owner_of(self, node: ast.expr) -> str:
        """Return whose value an expression is; see Owners."""
        return self.owners.of(node, self.names)

    # Statements that bind names or change values.

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self._store(target, node)
            self.owners.bind(target, node.value, self.names)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)
            self._store(node.target, node)
            self.owners.bind(node.target, node.value, self.names)
            if isinstance(node.target, ast.Name) and is_set_annotation(node.annotation):
                self.owners.sets.hold(node.target.id)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        self.owners.bind(node.target, node.value, self.names)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.visit(node.value)
        if not isinstance(node.target, ast.Name):
            self._store(node.target, node)
        elif isinstance(node.value, ast.List | ast.ListComp):
            # `+=` with a list works in place; with anything else it may as well make a new number or tuple.
            self._change(node.target, node, f"changes {node.target.id} in place")
        else:
            is_set = self.owners.sets.has(node.target, self.names)
            self.owners.forget(node.target)
            if is_set:
                self.owners.sets.hold(node.target.id)

    def visit_Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            self._store(target, node)

    def visit_Global(self, node: ast.Global) -> None:
        self.report("global", node, f"declares `global {', '.join(node.names)}`")

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        outer = [name for name in node.names if name in self._free_names]
        if outer:
            self.report("global", node, f"declares `nonlocal {', '.join(outer)}`")

    def visit_For(self, node: ast.For) -> None:
        self._check_order(node)
        self.visit(node.iter)
        self._store(node.target, node)
        self.owners.bind_elements(node.target, node.iter, self.names)
        self._visit_all([*node.body, *node.orelse])

    def visit_With(self, node: ast.With) -> None:
        for item in node.items:
            self.visit(item.context_expr)
            if item.optional_vars is not None:
                self.owners.bind(item.optional_vars, item.context_expr, self.names)
        self._visit_all(node.body)

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        self._branches([node.body, node.orelse])

    def visit_Match(self, node: ast.Match) -> None:
        self.visit(node.subject)
        before = self.owners.copy()
        after = self.owners.copy()
        for case in node.cases:
            self.owners = before.copy()
            self.owners.bind_pattern(case.pattern, node.subject, self.names)
            if case.guard is not None:
                self.visit(case.guard)
            self._visit_all(case.body)
            after.merge(self.owners)
        self.owners = after

    # Functions and comprehensions inside: names of their own.

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._inner(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._inner(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._inner(node)

    def visit_ListComp(self, node: ast.ListComp) -> None:
        self._check_order(node)
        self._comprehension(node.generators, [node.elt])

    def visit_SetComp(self, node: ast.SetComp) -> None:
        self._check_order(node)
        self._comprehension(node.generators, [node.elt])

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> None:
        self._comprehension(node.generators, [node.elt])

    def visit_DictComp(self, node: ast.DictComp) -> None:
        self._comprehension(node.generators, [node.key, node.value])

    # Expressions: what is called, and what is only named.

    def visit_Expr(self, node: ast.Expr) -> None:
        self._discarded = node.value
        self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        discarded, self._discarded = self._discarded is node, None
        self._check_order(node)
        impure = self.names.impure(node.func, node)
        if impure is not None:
            self.report(impure[0], node, f"calls {impure[1]}")
        else:
            self._check_change_by_call(node, discarded)
            self._follow(node.func, node, self)
        if isinstance(node.func, ast.Attribute):
            self.visit(node.func.value)
        elif not isinstance(node.func, ast.Name):
            self.visit(node.func)
        self._visit_all([*node.args, *node.keywords])

    def visit_List(self, node: ast.List) -> None:
        self._check_order(node)
        self._visit_all(node.elts)

    def visit_Tuple(self, node: ast.Tuple) -> None:
        self._check_order(node)
        self._visit_all(node.elts)

    def visit_Compare(self, node: ast.Compare) -> None:
        self._check_order(node)
        self._visit_all([node.left, *node.comparators])

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if not self._check_reference(node):
            self._follow(node, None, self)
            self.visit(node.value)

    def visit_Name(self, node: ast.Name) -> None:
        self._check_reference(node)

    def _check_order(self, node: ast.AST) -> None:
        """Report what depends on the order of a set, unless all around it forgets that order again."""
        used = None if node in self._orderless else self.owners.sets.order_used(node, self.names)
        if used is not None:
            self.report("order", node, used)
        self._orderless.update(orderless_parts(node, self.names))

    def _check_reference(self, node: ast.Name | ast.Attribute) -> bool:
        impure = self.names.impure(node, None) if isinstance(node.ctx, ast.Load) else None
        if impure is not None:
            self.report(impure[0], node, f"uses {impure[1]}")
        return impure is not None

    def _check_change_by_call(self, node: ast.Call, discarded: bool) -> None:
        function = self.names.value(node.func)
        if node.args and any(function is change for change in _CHANGES_FIRST_ARGUMENT):
            self._change(node.args[0], node, f"calls {ast.unparse(node.func)} on {ast.unparse(node.args[0])}")
        elif function is next and node.args and self.owner_of(node.args[0]) in ("global", "self"):
            self._change(node.args[0], node, f"takes the next of {ast.unparse(node.args[0])}")
        elif isinstance(node.func, ast.Attribute) and self._changes(node.func, discarded):
            self._change(node.func.value, node, f"calls {ast.unparse(node.func)}")

    def _changes(self, method: ast.Attribute, discarded: bool) -> bool:
        if not (method.attr in _TELLING_CHANGES or (discarded and method.attr in _SILENT_CHANGES)):
            return False
        receiver = self.names.value(method.value)
        return receiver is MISSING or isinstance(receiver, _CONTAINERS) or method.attr.startswith("__")

    def _store(self, target: ast.expr, node: ast.AST) -> None:
        match target:
            case ast.Attribute() | ast.Subscript():
                self._change(target.value, node, f"changes {ast.unparse(target)}")
                self.visit(target.value)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for part in parts:
                    self._store(part, node)
            case ast.Starred(value=inner):
                self._store(inner, node)
            case _:
                pass

    def _change(self, changed: ast.expr, node: ast.AST, what: str) -> None:
        match self.owner_of(changed):
            case "foreign":
                self.report("mutation", node, what)
            case "global" | "self":
                self.report("global", node, what)
            case _:
                pass

    def _visit_all(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            self.visit(node)

    def _branches(self, branches: list[list[ast.stmt]]) -> None:
        before, ends = self.owners, list[Owners]()
        for branch in branches:
            self.owners = before.copy()
            self._visit_all(branch)
            ends.append(self.owners)
        self.owners = ends[0]
        for end in ends[1:]:
            self.owners.merge(end)

    def _inner(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        outside = self.owners.copy()
        for argument in ast.walk(node.args):
            if isinstance(argument, ast.arg):
                self.owners.forget(ast.Name(argument.arg))
        self.read(node)
        self.owners = outside

    def _comprehension(self, generators: list[ast.comprehension], parts: list[ast.expr]) -> None:
        outside = self.owners.copy()
        for generator in generators:
            self.visit(generator.iter)
            self.owners.bind_elements(generator.target, generator.iter, self.names)
            self._visit_all(generator.ifs)
        self._visit_all(parts)
        self.owners = outside


def free_names(function: FunctionType) -> tuple[str, ...]:
    """Return the names that a function shares with the functions around it.

    >>> free_names(free_names)
    ()
    """
    return function.__code__.co_freevars
