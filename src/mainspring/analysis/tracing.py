"""Which instructions of authors' code a call runs. Found by Python's own tracing, for one call at a time.

The unit is the instruction and not the line: a `case` and its body may share one. Of a loop, each instruction counts
once, with the order in which it was first run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from types import CodeType, FrameType
from typing import Any, Final, TypeAlias, TypeVar

from mainspring.purity.guard import is_generated, is_library

T = TypeVar("T")

INSTRUCTIONS_TRACED: Final = 200_000
"""Of one call. A loop that runs longer goes on untraced."""

Span: TypeAlias = tuple[int, int, int, int]
"""The line and column of a beginning, and of an end. Columns count bytes, as in Python's own syntax trees."""


Ran: TypeAlias = dict[str, dict[Span, int]]
"""By file, what was run, each with its place in the order in which all of it was first run."""


class Trace:
    """What a call ran.

    `own` are the names of modules that count as authors' code wherever they lie; those of libraries do not.

    >>> from mainspring.testing.samples import Count, Counted, Counter
    >>> trace = Trace(own={"mainspring.testing.samples"})
    >>> trace.call(Counter().decide, Count("c-1"), Counted(2))
    [Complete(result=CountedThrice(counter='c-1'))]
    >>> [file.rpartition("/")[2] for file in trace.ran()]
    ['samples.py']
    """

    def __init__(self, own: Collection[str] = ()) -> None:
        self._own = own
        self._ran: dict[tuple[CodeType, int], None] = {}
        self._left = INSTRUCTIONS_TRACED

    @property
    def cut(self) -> bool:
        """Whether more was run than was traced."""
        return self._left <= 0

    def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function, and see what it runs. A debugger that was tracing goes on afterwards."""
        previous = sys.gettrace()
        sys.settrace(self._entered)
        try:
            return function(*arguments)
        finally:
            sys.settrace(previous)

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

    def _entered(self, frame: FrameType, event: str, _: Any) -> Any:
        if self.cut or not self._is_authors(frame):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._within

    def _within(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "opcode":
            self._ran.setdefault((frame.f_code, frame.f_lasti))
            self._left -= 1
            if self.cut:
                frame.f_trace_opcodes = False
        return self._within

    def _is_authors(self, frame: FrameType) -> bool:
        if is_generated(frame):
            return False
        module = str(frame.f_globals.get("__name__", ""))
        return module in self._own or (module.partition(".")[0] != "mainspring" and not is_library(frame))
