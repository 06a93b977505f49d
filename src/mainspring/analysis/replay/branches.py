"""Which instructions of authors' code a call runs. Found by Python's own monitoring, or tracing before Python 3.12.

The unit is the instruction and not the line: a `case` and its body may share one. Of a loop, each instruction counts
once, with the order in which it was first run.

Which branches of the source were taken, from the places that were run: cases, the guards that refused, ifs.
"""

from __future__ import annotations

import ast
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import CodeType, FrameType
from typing import Any, Final, Literal, TypeAlias, TypeVar

from msgspec import Struct

import mainspring
from mainspring.purity.guard import is_generated, is_library
from mainspring.sources import File, file_source

T = TypeVar("T")

# With Python 3.12 a frame that asks for its instructions while it is traced gets them only the next time.
_MONITORING: Final[Any] = getattr(sys, "monitoring", None)
_TOOLS: Final = (4, 3)
"""The free numbers: debuggers, coverage, profilers and optimizers have their own."""
_OURS: Final = mainspring.__path__[0]

INSTRUCTIONS_TRACED: Final = 200_000
"""Of one call. A loop that runs longer goes on untraced."""

Span: TypeAlias = tuple[int, int, int, int]
"""The line and column of a beginning, and of an end. Columns count bytes, as in Python's own syntax trees."""


Ran: TypeAlias = dict[str, dict[Span, int]]
"""By file, what was run, each with its place in the order in which all of it was first run."""


class Trace:
    """What a call ran, of authors' code alone: neither libraries nor mainspring, unless a file is among the `own`.

    >>> from mainspring.testing import samples
    >>> trace = Trace(own={samples.__file__})
    >>> trace.call(samples.Counter().decide, samples.Count("c-1"), samples.Counted(2))
    [Complete(result=CountedThrice(counter='c-1'))]
    >>> [file.rpartition("/")[2] for file in trace.ran()]
    ['samples.py']
    """

    def __init__(self, own: Collection[str] = ()) -> None:
        self._own = own
        self._ran: dict[tuple[CodeType, int], None] = {}
        self._left = INSTRUCTIONS_TRACED
        self._thread = 0
        self.blind = False
        """Whether nothing could be seen, because others use all that Python has for it."""

    @property
    def cut(self) -> bool:
        """Whether more was run than was traced."""
        return self._left <= 0

    def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function, and record what it runs. A debugger that was tracing continues afterwards."""
        self._thread = threading.get_ident()
        return (self._traced if _MONITORING is None else self._monitored)(function, *arguments)

    def ran(self) -> Ran:
        """Return what was run. An instruction without a place in the source is left out."""
        positions: dict[CodeType, list[tuple[int | None, ...]]] = {}
        found: Ran = {}
        for order, (code, offset) in enumerate(self._ran):
            if code not in positions:
                positions[code] = list(code.co_positions())
            line, end_line, column, end_column = positions[code][offset // 2]
            if line is not None and end_line is not None and column is not None and end_column is not None:
                found.setdefault(code.co_filename, {}).setdefault((line, column, end_line, end_column), order)
        return found

    def _monitored(self, function: Callable[..., T], *arguments: Any) -> T:
        tool = next((number for number in _TOOLS if _MONITORING.get_tool(number) is None), None)
        if tool is None:
            self.blind = True
            return function(*arguments)
        instruction = _MONITORING.events.INSTRUCTION
        _MONITORING.use_tool_id(tool, "mainspring")
        _MONITORING.register_callback(tool, instruction, self._seen)
        _MONITORING.set_events(tool, instruction)
        try:
            return function(*arguments)
        finally:
            _MONITORING.set_events(tool, 0)
            _MONITORING.register_callback(tool, instruction, None)
            _MONITORING.free_tool_id(tool)
            _MONITORING.restart_events()  # what was passed over this time may count the next time

    def _seen(self, code: CodeType, offset: int) -> Any:
        if threading.get_ident() != self._thread:
            return None
        if self.cut or not self._is_authors(code):
            return _MONITORING.DISABLE
        self._take(code, offset)
        return None

    def _traced(self, function: Callable[..., T], *arguments: Any) -> T:
        previous = sys.gettrace()
        sys.settrace(self._entered)
        try:
            return function(*arguments)
        finally:
            sys.settrace(previous)

    def _entered(self, frame: FrameType, event: str, _: Any) -> Any:
        if self.cut or not self._is_authors(frame.f_code):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._within

    def _within(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "opcode":
            self._take(frame.f_code, frame.f_lasti)
            frame.f_trace_opcodes = not self.cut
        return self._within

    def _take(self, code: CodeType, offset: int) -> None:
        self._ran.setdefault((code, offset))
        self._left -= 1

    def _is_authors(self, code: CodeType) -> bool:
        if is_generated(code):
            return False
        return code.co_filename in self._own or not (is_library(code) or code.co_filename.startswith(_OURS))


TEXT_CHARACTERS: Final = 300

Kind: TypeAlias = Literal["case", "no case", "if", "if not"]


class Guard(Struct, frozen=True):
    """A case whose pattern fitted and whose guard said no."""

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
        source = file_source(file)
        if source is None:
            continue
        for name, function in _functions(source.tree, ""):
            reader = _Reader(file, source, name, spans)
            if reader.first(function) is not None:
                reader.generic_visit(function)
                found += reader.found
    return [branch for _, branch in sorted(found, key=lambda pair: pair[0])]


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.AST]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{prefix}{child.name}", child
        else:
            yield from _functions(child, f"{prefix}{child.name}." if isinstance(child, ast.ClassDef) else prefix)


class _Reader(ast.NodeVisitor):
    """Goes through a function, as far as something of it was run."""

    def __init__(self, file: str, source: File, name: str, spans: Mapping[Span, int]) -> None:
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
            self._take(entered, "no case", f"no case of match {self._text(node.subject)}", node.subject, refused)
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        self._choose(node.test, self.first(*node.body))
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._choose(node.test, self.first(node.body))
        self.generic_visit(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        place = self.first(*node.body)
        if place is not None:
            what = "" if node.type is None else f" {self._text(node.type)}"
            self._take(place, "case", f"except{what}", node.type or node)
        self.generic_visit(node)

    def _choose(self, test: ast.expr, taken: int | None) -> None:
        asked = self.first(test)
        if taken is not None:
            self._take(taken, "if", f"if {self._text(test)}", test)
        elif asked is not None:
            self._take(asked, "if not", f"if not ({self._text(test)})", test)

    def _take(
        self,
        place: int,
        kind: Kind,
        text: str,
        at: ast.expr | ast.pattern | ast.ExceptHandler,
        refused: Sequence[Guard] = (),
    ) -> None:
        branch = Branch(kind, text, self._name, self._file, at.lineno, tuple(refused))
        self.found.append((place, branch))

    def _text(self, node: ast.AST) -> str:
        text = self._source.text(node)
        return text if len(text) <= TEXT_CHARACTERS else f"{text[:TEXT_CHARACTERS]}…"

    def _case(self, case: ast.match_case) -> str:
        guard = "" if case.guard is None else f" if {self._text(case.guard)}"
        return f"case {self._text(case.pattern)}{guard}"

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
