"""Which branches of the source were taken, from the places that were run: cases, the guards that refused, ifs."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias

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
        parsed = _parsed(file)
        if parsed is not None:
            tree, source = parsed
            reader = _Reader(file, source, spans)
            reader.visit(tree)
            found += reader.found
    return [branch for _, branch in sorted(found, key=lambda pair: pair[0])]


@lru_cache(maxsize=FILES_KEPT)
def _parsed(file: str) -> tuple[ast.Module, str] | None:
    source = "".join(linecache.getlines(file))
    try:
        return (ast.parse(source), source) if source else None
    except (SyntaxError, ValueError):
        # The file is not any more what was imported.
        return None


class _Reader(ast.NodeVisitor):
    """Goes through a file, as far as something of it was run."""

    def __init__(self, file: str, source: str, spans: Mapping[Span, int]) -> None:
        self.found: list[tuple[int, Branch]] = []
        self._file = file
        self._source = source
        self._spans = spans
        self._names: list[str] = []

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._within(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if self._first(node) is not None:
            self._within(node)

    def visit_Match(self, node: ast.Match) -> None:
        entered = self._first(node.subject)
        refused: list[Guard] = []
        matched = False
        for case in node.cases:
            place = self._first(*case.body)
            if place is not None:
                matched = True
                self._take(place, "case", self._case(case), case.pattern, refused)
            elif case.guard is not None and self._first(case.guard) is not None:
                refused.append(Guard(case.pattern.lineno, self._case(case)))
        if entered is not None and not matched:
            self._take(entered, "no case", f"no case of match {self._text(node.subject)}", node.subject, refused)
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        self._choose(node.test, self._first(*node.body))
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._choose(node.test, self._first(node.body))
        self.generic_visit(node)

    def _within(self, node: ast.ClassDef | ast.FunctionDef) -> None:
        self._names.append(node.name)
        self.generic_visit(node)
        self._names.pop()

    def _choose(self, test: ast.expr, taken: int | None) -> None:
        asked = self._first(test)
        if taken is not None:
            self._take(taken, "if", f"if {self._text(test)}", test)
        elif asked is not None:
            self._take(asked, "if not", f"if not ({self._text(test)})", test)

    def _take(
        self, place: int, kind: Kind, text: str, at: ast.expr | ast.pattern, refused: Sequence[Guard] = ()
    ) -> None:
        branch = Branch(kind, text, ".".join(self._names), self._file, at.lineno, tuple(refused))
        self.found.append((place, branch))

    def _case(self, case: ast.match_case) -> str:
        guard = "" if case.guard is None else f" if {self._text(case.guard)}"
        return f"case {self._text(case.pattern)}{guard}"

    def _text(self, node: ast.AST) -> str:
        """Return a piece of the source in one line."""
        text = " ".join((ast.get_source_segment(self._source, node) or "").split())
        return text if len(text) <= TEXT_CHARACTERS else f"{text[:TEXT_CHARACTERS]}…"

    def _first(self, *nodes: Any) -> int | None:
        """Return the place in order at which anything from the first to the last of some nodes was run."""
        begins = (nodes[0].lineno, nodes[0].col_offset)
        ends = (nodes[-1].end_lineno, nodes[-1].end_col_offset)
        inside = (
            order
            for (line, column, end_line, end_column), order in self._spans.items()
            if begins <= (line, column) and (end_line, end_column) <= ends
        )
        return min(inside, default=None)
