"""Which branches of the source were taken, from the places that were run: cases, the guards that refused, ifs."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from mainspring.analysis.tracing import Ran, Span

FILES_KEPT: Final = 100
TEXT_CHARACTERS: Final = 300

Kind: TypeAlias = Literal["case", "no case", "if", "if not"]


class Guard(Struct, frozen=True):
    """A case whose pattern fitted and whose guard said no.

    >>> Guard(12, "case Claim(amount) if amount > 100").line
    12
    """

    line: int
    text: str


class Branch(Struct, frozen=True):
    """A branch that was taken, as it is written, and where. `refused` are the guards before it that said no.

    >>> str(Branch("case", "case Claim()", "Refund.decide", "shop/refund.py", 14))
    'case Claim(), shop/refund.py:14'
    """

    kind: Kind
    text: str
    function: str
    file: str
    line: int
    refused: tuple[Guard, ...] = ()

    def __str__(self) -> str:
        return f"{self.text}, {self.file}:{self.line}"


def branches_taken(ran: Ran) -> list[Branch]:
    """Return the branches that were taken, in the order in which they were entered.

    Of a function that was called several times, those of all its calls. What has no source to read is left out.
    """
    found: list[tuple[int, Branch]] = []
    for file, spans in ran.items():
        source = _source(file)
        if source is None:
            continue
        for name, function in source.functions:
            reader = _Reader(file, source, name, spans)
            if reader.first(function) is not None:
                reader.generic_visit(function)
                found += reader.found
    return [branch for _, branch in sorted(found, key=lambda pair: pair[0])]


class _Source(NamedTuple):
    """A file: its lines, and the functions in it that lie in no other."""

    lines: list[bytes]
    functions: list[tuple[str, ast.AST]]

    def text(self, node: Any) -> str:
        """Return a piece of the source in one line."""
        lines = self.lines[node.lineno - 1 : node.end_lineno]
        lines[-1] = lines[-1][: node.end_col_offset]
        lines[0] = lines[0][node.col_offset :]
        text = " ".join(b" ".join(lines).decode(errors="replace").split())
        return text if len(text) <= TEXT_CHARACTERS else f"{text[:TEXT_CHARACTERS]}…"


@lru_cache(maxsize=FILES_KEPT)
def _source(file: str) -> _Source | None:
    lines = linecache.getlines(file)
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError):
        return None  # the file is not any more what was imported
    return _Source([line.encode() for line in lines], list(_functions(tree, ""))) if lines else None


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.AST]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            yield f"{prefix}{child.name}", child
        else:
            yield from _functions(child, f"{prefix}{child.name}." if isinstance(child, ast.ClassDef) else prefix)


class _Reader(ast.NodeVisitor):
    """Goes through a function, as far as something of it was run."""

    def __init__(self, file: str, source: _Source, name: str, spans: Mapping[Span, int]) -> None:
        self.found: list[tuple[int, Branch]] = []
        self._file = file
        self._source = source
        self._name = name
        self._spans = spans

    def visit_Match(self, node: ast.Match) -> None:
        entered = self.first(node.subject)
        refused: list[Guard] = []
        matched = False
        for case in node.cases:
            place = self.first(*case.body)
            if place is not None:
                matched = True
                self._take(place, "case", self._case(case), case.pattern, refused)
            elif case.guard is not None and self.first(case.guard) is not None:
                refused.append(Guard(case.pattern.lineno, self._case(case)))
        if entered is not None and not matched:
            self._take(entered, "no case", f"no case of match {self._source.text(node.subject)}", node.subject, refused)
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        self._choose(node.test, self.first(*node.body))
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._choose(node.test, self.first(node.body))
        self.generic_visit(node)

    def _choose(self, test: ast.expr, taken: int | None) -> None:
        asked = self.first(test)
        if taken is not None:
            self._take(taken, "if", f"if {self._source.text(test)}", test)
        elif asked is not None:
            self._take(asked, "if not", f"if not ({self._source.text(test)})", test)

    def _take(
        self, place: int, kind: Kind, text: str, at: ast.expr | ast.pattern, refused: Sequence[Guard] = ()
    ) -> None:
        branch = Branch(kind, text, self._name, self._file, at.lineno, tuple(refused))
        self.found.append((place, branch))

    def _case(self, case: ast.match_case) -> str:
        guard = "" if case.guard is None else f" if {self._source.text(case.guard)}"
        return f"case {self._source.text(case.pattern)}{guard}"

    def first(self, *nodes: Any) -> int | None:
        """Return the place in order at which anything from the first to the last of some nodes was run."""
        begins = (nodes[0].lineno, nodes[0].col_offset)
        ends = (nodes[-1].end_lineno, nodes[-1].end_col_offset)
        inside = (
            order
            for (line, column, end_line, end_column), order in self._spans.items()
            if begins <= (line, column) and (end_line, end_column) <= ends
        )
        return min(inside, default=None)
