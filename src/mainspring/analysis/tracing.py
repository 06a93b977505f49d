"""Which instructions of authors' code a call runs. Found by Python's own monitoring, or tracing before Python 3.12.

The unit is the instruction and not the line: a `case` and its body may share one. Of a loop, each instruction counts
once, with the order in which it was first run.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Collection
from types import CodeType, FrameType
from typing import Any, Final, TypeAlias, TypeVar

import mainspring
from mainspring.purity.guard import is_generated, is_library

T = TypeVar("T")

# With Python 3.12 a frame that asks for its instructions while it is traced is told of them only the next time.
_MONITORING: Final[Any] = getattr(sys, "monitoring", None)
_TOOLS: Final = (4, 3)
"""The numbers that are nobody's: debuggers, coverage, profilers and optimizers have their own."""
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
        """Call a function, and see what it runs. A debugger that was tracing goes on afterwards."""
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
