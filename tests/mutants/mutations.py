"""The small mistakes that are planted: one place of a module's text, and what stands there instead."""

from __future__ import annotations

import ast
import difflib
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

OPPOSITES: Final[dict[type[ast.AST], type[Any]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
EXCHANGED: Final = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list", "reversed": ""}
UNCHANGED_CALLS: Final = {"TypeVar", "TypedDict", "NewType"}
"""What only a type checker reads."""
ORDERLESS_CALLS: Final = {"isinstance", "issubclass", "hasattr", "getattr", "setattr", "zip", "range", "min", "max"}
"""Their arguments exchanged is what nobody overlooks, or what nobody can tell."""
UNCHANGED_KEYWORDS: Final = {"gc"}
"""A hint to the garbage collector: nothing that a program does depends on it."""
UNCHANGED_NAMES: Final = {"__all__", "__slots__", "__match_args__"}


@dataclass(frozen=True)
class Module:
    """A module of the program, as it is written."""

    name: str
    path: Path

    @cached_property
    def source(self) -> bytes:
        return self.path.read_bytes()


@dataclass(frozen=True)
class Mutant:
    """One mistake. `function` is the outermost function around it, empty for what is run when the module is imported.

    `lines` are those of its statement, without the statements inside that one; `body` has those of the function.
    """

    module: Module
    function: str
    what: str
    lines: tuple[int, int]
    body: tuple[int, int]
    start: int
    end: int
    text: str

    @property
    def source(self) -> bytes:
        """The whole module, with the mistake in it."""
        return self.module.source[: self.start] + self.text.encode() + self.module.source[self.end :]

    @cached_property
    def change(self) -> tuple[str, str]:
        """The lines that differ, before and after, each as one line of text."""
        source = self.module.source
        first, last = source.rfind(b"\n", 0, self.start) + 1, source.find(b"\n", self.end)
        mutated = source[first : self.start] + self.text.encode() + source[self.end : last]
        before, after = source[first:last].decode().splitlines(), mutated.decode().splitlines()
        changed = [line for line in difflib.ndiff(before, after) if line[:2] in ("- ", "+ ")]
        one, other = (" ".join(line[2:].strip() for line in changed if line[0] == sign) for sign in "-+")
        return one, other

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What names the mutant for as long as its line stands as it is."""
        return (self.module.name, self.function, *self.change)

    def __str__(self) -> str:
        before, after = self.change
        return (
            f"{self.module.name}:{self.lines[0]} in {self.function or 'the module'}: {self.what}\n- {before}\n+ {after}"
        )


def module_at(path: Path) -> Module:
    """Return the module in a file, named as it is imported."""
    parts = [] if path.stem == "__init__" else [path.stem]
    folder = path.parent
    while (folder / "__init__.py").exists():
        parts.insert(0, folder.name)
        folder = folder.parent
    return Module(".".join(parts), path)


def mutants_of(module: Module) -> list[Mutant]:
    """Return every mistake that can be planted in a module, in the order of its text; each once."""
    found: dict[bytes, Mutant] = {}
    for mutant in _Visitor(module).mutants(ast.parse(module.source)):
        if mutant.source != module.source:
            found.setdefault(mutant.source, mutant)
    return sorted(found.values(), key=lambda mutant: (mutant.start, mutant.end))


class _Visitor:
    """Walks through a module, and knows in which function and in which statement it is."""

    def __init__(self, module: Module) -> None:
        self._module = module
        starts = [0]
        for line in module.source.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        self._starts = starts
        self._scope: list[str] = []
        self._function = ""
        self._lines = self._body = (1, 1)

    def mutants(self, node: ast.AST) -> Iterator[Mutant]:
        """Yield the mutants of a node and of all below it."""
        if self._is_left(node):
            return
        if isinstance(node, ast.stmt):
            self._lines = (node.lineno, _last_line(node))
        if isinstance(node, ast.match_case):
            self._lines = (node.pattern.lineno, node.body[0].lineno)
        lines = self._lines
        for text, what, start, end in self._changes(node):
            yield Mutant(self._module, self._function, what, lines, self._body, start, end, text)
        for child in _children(node):
            self._lines = lines
            inside = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and child in node.body
            yield from self._below(node, child) if inside or isinstance(node, ast.ClassDef) else self.mutants(child)

    def _below(self, node: Any, child: ast.AST) -> Iterator[Mutant]:
        function = self._function
        self._scope.append(node.name)
        if not function and not isinstance(node, ast.ClassDef):
            self._function = ".".join(self._scope)
            self._body = (node.body[0].lineno, node.end_lineno)
        yield from self.mutants(child)
        self._scope.pop()
        self._function = function

    def _is_left(self, node: ast.AST) -> bool:
        """Tell what is not mutated: what people or type checkers read, and nobody runs."""
        match node:
            case ast.Expr(ast.Constant()) | ast.Import() | ast.ImportFrom():
                return True
            case ast.FunctionDef(name="__repr__") | ast.If(ast.Name("TYPE_CHECKING")):
                return True
            case ast.FunctionDef(decorator_list=decorators):
                return any(isinstance(each, ast.Name) and each.id == "overload" for each in decorators)
            case ast.Assign(targets=[ast.Name(name)]) | ast.AnnAssign(target=ast.Name(name)) if name in UNCHANGED_NAMES:
                return True
            case ast.AnnAssign(annotation=ast.Name("TypeAlias")):
                return True
            case ast.Call(func=ast.Name(name)) if name in UNCHANGED_CALLS:
                return True
            case _:
                return False

    def _changes(self, node: ast.AST) -> Iterator[tuple[str, str, int, int]]:
        """Yield what may stand instead of a node, what mistake that is, and the place of what it replaces."""
        if isinstance(node, ast.match_case):
            end = self._at(node.pattern.end_lineno, node.pattern.end_col_offset)
            if node.guard is not None:
                start = self._at(node.guard.lineno, node.guard.col_offset)
                end = self._at(node.guard.end_lineno, node.guard.end_col_offset)
                yield "True", "the guard of a case removed", start, end
                yield "False", "a case removed", start, end
            elif not _does_nothing(node):
                yield " if False", "a case removed", end, end
            return
        if not hasattr(node, "lineno"):
            return
        place: Any = node
        start, end = self._at(place.lineno, place.col_offset), self._at(place.end_lineno, place.end_col_offset)
        if isinstance(node, ast.stmt):
            for text, what in _of_statement(node):
                yield text, what, start, end
            test = node.test if isinstance(node, (ast.If, ast.While)) else None
        else:
            for changed, what in _of_expression(node):
                text = changed if isinstance(changed, str) else f"({ast.unparse(changed)})"
                yield text, what, start, end
            test = node.test if isinstance(node, ast.IfExp) else None
        if test is not None:
            start, end = self._at(test.lineno, test.col_offset), self._at(test.end_lineno, test.end_col_offset)
            yield "False", "a condition never holds", start, end
            if not isinstance(node, ast.While):
                yield "True", "a condition always holds", start, end

    def _at(self, line: Any, column: Any) -> int:
        return self._starts[line - 1] + column


def _does_nothing(case: ast.match_case) -> bool:
    """Tell whether a case says only that there is nothing left to do."""
    return isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None and isinstance(case.body[0], ast.Pass)


def _last_line(node: ast.stmt) -> int:
    inner: list[Any] = getattr(node, "body", None) or getattr(node, "cases", None) or []
    if not inner:
        return node.end_lineno or node.lineno
    first = inner[0].pattern if isinstance(inner[0], ast.match_case) else inner[0]
    return max(node.lineno, first.lineno - 1)


def _children(node: ast.AST) -> Iterable[ast.AST]:
    """Return the parts of a node that are run: no annotations, no texts of errors."""
    match node:
        case ast.Raise() | ast.JoinedStr() | ast.Assert():
            return ()
        case ast.Call(func=ast.Name(name) | ast.Attribute(attr=name)) if _tells(name):
            return ()
        case ast.AnnAssign():
            return () if node.value is None else (node.value,)
        case ast.arg():
            return ()
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return (*node.decorator_list, node.args, *node.body)
        case ast.ClassDef():
            keywords = [each for each in node.keywords if each.arg not in UNCHANGED_KEYWORDS]
            return (*node.decorator_list, *keywords, *node.body)
        case ast.Call(func=ast.Name("cast")):
            return node.args[1:]
        case ast.Subscript(slice=ast.Tuple()):
            return (node.value,)  # the arguments of a generic type
        case _:
            return ast.iter_child_nodes(node)


def _tells(name: str) -> bool:
    """Tell whether what is called only says to people what went wrong."""
    return name.endswith("Error") or name.startswith("_refuse") or name == "add_note"


def _is_prose(text: str) -> bool:
    return " " in text.strip()


def _of_statement(node: ast.stmt) -> Iterator[tuple[str, str]]:
    match node:
        case ast.Expr(ast.Call() | ast.Await() | ast.Yield() | ast.YieldFrom()):
            yield "pass", "a statement removed"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript() | ast.Tuple([ast.Attribute(), *_])]):
            yield "pass", "an assignment removed"
        case ast.AugAssign() | ast.Delete():
            yield "pass", "a statement removed"
        case ast.Raise():
            yield "pass", "a raise removed"
        case ast.Return(ast.Constant(None | False)):
            return
        case ast.Return(value) if value is not None:
            yield "return None", "nothing returned"
        case ast.Break():
            yield "continue", "break to continue"
        case ast.Continue():
            yield "break", "continue to break"
        case _:
            return


def _of_expression(node: ast.AST) -> Iterator[tuple[ast.expr | str, str]]:
    match node:
        case ast.Compare(ops=ops):
            for place, op in enumerate(ops):
                changed = [*ops[:place], OPPOSITES[type(op)](), *ops[place + 1 :]]
                yield _with(node, ops=changed), "a comparison"
        case ast.BoolOp(op, values):
            yield _with(node, op=OPPOSITES[type(op)]()), "and/or"
            for place in range(len(values)):
                left = [*values[:place], *values[place + 1 :]]
                yield (left[0] if len(left) == 1 else _with(node, values=left)), "a part of a condition removed"
        case ast.UnaryOp(ast.Not(), operand):
            yield operand, "not removed"
        case ast.BinOp(op=op) if type(op) in OPPOSITES:
            yield _with(node, op=OPPOSITES[type(op)]()), "arithmetic"
        case ast.Constant(value):
            yield from _of_constant(value)
        case ast.JoinedStr(values):
            if not any(isinstance(part, ast.Constant) and _is_prose(str(part.value)) for part in values):
                yield "'mutated'", "a text"
        case ast.Call():
            yield from _of_call(node)
        case ast.Tuple(elts, ast.Load()) | ast.List(elts, ast.Load()) | ast.Set(elts) if len(elts) > 1 or (
            elts and not isinstance(node, ast.Set)
        ):
            for place in range(len(elts)):
                yield _with(node, elts=[*elts[:place], *elts[place + 1 :]]), "an element removed"
        case ast.Dict(keys, values):
            for place in range(len(keys)):
                keys_left, values_left = [*keys[:place], *keys[place + 1 :]], [*values[:place], *values[place + 1 :]]
                yield _with(node, keys=keys_left, values=values_left), "an element removed"
        case (
            ast.ListComp(generators=generators)
            | ast.SetComp(generators=generators)
            | ast.DictComp(generators=generators)
            | ast.GeneratorExp(generators=generators)
        ):
            for place, generator in enumerate(generators):
                if generator.ifs:
                    wider = ast.comprehension(generator.target, generator.iter, [], generator.is_async)
                    yield (
                        _with(node, generators=[*generators[:place], wider, *generators[place + 1 :]]),
                        "a filter removed",
                    )
        case _:
            return


def _of_constant(value: Any) -> Iterator[tuple[str, str]]:
    # A text in parentheses is no pattern of a `case`: constants are written bare.
    if isinstance(value, bool):
        yield str(not value), "a flag"
    elif isinstance(value, int):
        yield str(value + 1), "a number"
    elif isinstance(value, str) and not _is_prose(value):
        yield repr("mutated" if value != "mutated" else ""), "a text"


def _of_call(node: ast.Call) -> Iterator[tuple[ast.expr | str, str]]:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if _tells(node.func.attr if isinstance(node.func, ast.Attribute) else name):
        return
    if name in EXCHANGED:
        other = EXCHANGED[name]
        changed = _with(node, func=ast.Name(other, ast.Load()), keywords=[] if name == "sorted" else node.keywords)
        yield (changed if other else node.args[0]), f"{name} removed or exchanged"
    if name == "cast":
        return
    for place, keyword in enumerate(node.keywords):
        is_default = isinstance(keyword.value, ast.Constant) and keyword.value.value in (None, False)
        if keyword.arg is not None and keyword.arg not in UNCHANGED_KEYWORDS and not is_default:
            left = [*node.keywords[:place], *node.keywords[place + 1 :]]
            yield _with(node, keywords=left), "a keyword argument removed"
    if name in ORDERLESS_CALLS:
        return
    for place in range(len(node.args) - 1):
        one, other = node.args[place], node.args[place + 1]
        if isinstance(one, ast.Starred) or isinstance(other, ast.Starred):
            continue
        if ast.dump(one) != ast.dump(other):
            exchanged = [*node.args[:place], other, one, *node.args[place + 2 :]]
            yield _with(node, args=exchanged), "two arguments exchanged"


def _with(node: Any, **fields: Any) -> Any:
    return type(node)(**{name: getattr(node, name) for name in node._fields} | fields)


def sampled(mutants: list[Mutant], fraction: float, seed: int) -> list[Mutant]:
    """Return a fraction of the mutants, the same ones for the same seed."""
    count = max(1, round(len(mutants) * fraction)) if mutants else 0
    chosen = set(random.Random(seed).sample(range(len(mutants)), count))  # noqa: S311  no secret
    return [mutant for place, mutant in enumerate(mutants) if place in chosen]
