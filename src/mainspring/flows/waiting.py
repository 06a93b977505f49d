"""Where a flow waits: at which lines, called from where, for what, and with which local variables.

The code is run once more on a journal, as a worker does when it has not kept the run, and the frames of its tasks are
read. Then the run is torn down. Nothing is sent. What is read is bounded, and values are shown shortened.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, Final, cast

from msgspec.structs import replace

from mainspring.core.decisions import Ask, FanOut, Send, StartChild
from mainspring.core.messages import type_of
from mainspring.errors import shown, told
from mainspring.flows.calls import Call
from mainspring.flows.flow import Flow, run_of
from mainspring.sources import code_text, line_text
from mainspring.views import Frame, FunctionText, Variable, WaitingCode, WaitsAt

if TYPE_CHECKING:
    from mainspring.flows.asked import Asked
    from mainspring.flows.journal import Journal
    from mainspring.flows.loop import FlowTask
    from mainspring.flows.run import Run

TASKS_MOST: Final = 50
FRAMES_MOST: Final = 20
VARIABLES_MOST: Final = 50
VALUE_CHARACTERS: Final = 300
LINES_MOST: Final = 1_000
"""Of the source of a function."""
NAMED_MOST: Final = 5
"""Of the tasks that one waits for."""
DEPTH_MOST: Final = 10_000

# What hides the coroutine that it drives; only the collector of garbage knows which one that is.
_WRAPPERS: Final = frozenset({"async_generator_asend", "async_generator_athrow", "coroutine_wrapper"})
_INSIDE: Final = ("cr_frame", "gi_frame", "ag_frame")
_AWAITED: Final = ("cr_await", "gi_yieldfrom", "ag_await")


def waiting_at(flow: Flow[Any, Any], journal: Journal, position: int = 0, *, values: bool = True) -> WaitsAt:
    """Run a flow's code on a journal, and return where it waits. Without `values`, variables have their types only."""
    try:
        run = run_of(flow, journal)
    except Exception as error:  # noqa: BLE001  drift, or whatever an author's code raises: it is the answer
        return WaitsAt(position, problem=told(error))
    try:
        return _Reader(run, position, values=values).read()
    finally:
        run.close()


class _Reader:
    """Reads the frames of a run's tasks."""

    def __init__(self, run: Run, position: int, *, values: bool) -> None:
        self._run = run
        self._position = position
        self._values = values
        self._package = run.flow.function.__module__.partition(".")[0]
        self._functions: dict[CodeType, FunctionText] = {}
        self._asked = {id(each.future): (at, each) for at, each in run.asked() if each.future is not None}
        self._received = {id(future): types for types, future in run.mail.waiting}
        self._timers = {id(found): (key, handle) for key, handle in run.timers() for found in _arguments(handle)[:1]}

    def read(self) -> WaitsAt:
        """Return where all tasks wait."""
        tasks = [] if self._run.ended else self._run.tasks
        found = [self._task(task) for task in tasks[:TASKS_MOST]]
        return WaitsAt(
            self._position,
            ended=self._run.ended,
            waiting=tuple(_beside_those_that_await(found, tasks)),
            more=max(0, len(tasks) - TASKS_MOST),
            functions=tuple(self._functions.values()),
        )

    def _task(self, task: FlowTask) -> WaitingCode:
        chain = list(_chain(task.get_coro()))
        own = [frame for frame in (self._frame(link) for link in chain) if frame is not None][::-1]
        kind, awaits, position, due = self._awaited(task, chain)
        return WaitingCode(
            task=task.get_name(),
            awaits=awaits,
            kind=kind,
            frames=tuple(own if len(own) <= FRAMES_MOST else [*own[: FRAMES_MOST - 1], own[-1]]),
            position=position,
            due=due,
            times_out=self._times_out(task),
            more=max(0, len(own) - FRAMES_MOST),
        )

    # ---- what it waits for

    def _awaited(self, task: FlowTask, chain: list[Any]) -> tuple[Any, str, int | None, datetime | None]:
        future = _waiter(task)
        known = self._asked.get(id(future))
        if known is not None:
            position, asked = known
            kind, words = self._words_of(asked)
            return kind, words if position else f"{words}, which is not sent yet", position or None, None
        if id(future) in self._received:
            names = " or ".join(type_of(cls).name for cls in self._received[id(future)])
            return "message", f"a message {names}", None, None
        if id(future) in self._timers:
            key, handle = self._timers[id(future)]
            return "timer", f"the timer {key}", None, self._moment(handle.when())
        others = _tasks_in(future, chain)
        if others:
            names = ", ".join(each.get_name() for each in others[:NAMED_MOST])
            more = f" and {len(others) - NAMED_MOST:,} more" if len(others) > NAMED_MOST else ""
            return "code", f"the end of {names}{more}", None, None
        inside = next((link for link in reversed(chain) if isinstance(link, FrameType)), None)
        return "code", "other code" if inside is None else inside.f_code.co_qualname, None, None

    def _words_of(self, asked: Asked) -> tuple[str, str]:
        decision: Any = asked.decision
        kind = type(asked.decision)
        if kind is Send:
            step = self._run.flow.step_of(_type_of(decision.message))
            return ("command", _name_of(decision.message)) if step is None else ("step", f"the step {step.name}")
        if kind is StartChild:
            return "child", f"the child that {_name_of(decision.message)} began"
        if kind is FanOut:
            return "fan-out", f"{len(decision.messages):,} calls of the step {_name_of(decision.messages[0])}"
        if kind is Ask:
            return "task", f"the task {decision.title!r} of a person"
        return "code", kind.__name__

    def _times_out(self, task: FlowTask) -> datetime | None:
        """Return when a timeout ends what a task waits for."""
        due = [
            handle.when()
            for _, handle in self._run.timers()
            if isinstance(timeout := getattr(_callback(handle), "__self__", None), asyncio.Timeout)
            and getattr(timeout, "_task", None) is task
        ]
        return self._moment(min(due)) if due else None

    def _moment(self, when: float) -> datetime | None:
        began = self._run.began
        return None if began is None else began + timedelta(seconds=when)

    # ---- where it stands

    def _frame(self, link: Any) -> Frame | None:
        """Return a frame of an author's code; None for one of a library."""
        if isinstance(link, Call):
            code, line, names, variables = link.code, link.place.line, dict[str, Any](), list[tuple[str, Any]]()
        elif self._is_library(link):
            return None
        else:
            code, line, names = link.f_code, link.f_lineno, link.f_globals
            variables = [(name, value) for name, value in link.f_locals.items() if name.isidentifier()]
        self._note(code, names)
        return Frame(
            code.co_filename,
            line,
            code.co_qualname,
            _written(line_text(code, line, names)),
            tuple(self._variable(name, value) for name, value in variables[:VARIABLES_MOST]),
            max(0, len(variables) - VARIABLES_MOST),
        )

    def _is_library(self, frame: FrameType) -> bool:
        return _is_library(frame.f_globals.get("__name__", ""), frame.f_code.co_filename, self._package)

    def _note(self, code: CodeType, names: dict[str, Any]) -> None:
        if code not in self._functions:
            lines = code_text(code, names).splitlines()
            self._functions[code] = FunctionText(
                code.co_filename, code.co_qualname, code.co_firstlineno, _written("\n".join(lines[:LINES_MOST]))
            )

    def _variable(self, name: str, value: Any) -> Variable:
        return Variable(name, type(value).__name__, _written(shown(value, VALUE_CHARACTERS)) if self._values else None)


# ---- what asyncio tells nobody, and its debuggers read all the same


def _type_of(message: Any) -> type[Any]:
    return message.__class__


def _name_of(message: Any) -> str:
    return type_of(_type_of(message)).name


def _waiter(task: Any) -> Any:
    return getattr(task, "_fut_waiter", None)


def _callback(handle: Any) -> Any:
    return getattr(handle, "_callback", None)


def _arguments(handle: Any) -> tuple[Any, ...]:
    return getattr(handle, "_args", None) or ()


def _chain(coroutine: Any) -> Iterator[Any]:
    """Yield what a task is in, the outermost first: frames, and calls that have none of the author's."""
    awaited = coroutine
    for _ in range(DEPTH_MOST):
        if isinstance(awaited, Call):
            yield awaited
            awaited = cast("Any", awaited).generator
        elif type(awaited).__name__ in _WRAPPERS:
            awaited = next((each for each in gc.get_referents(awaited) if _of(each, _INSIDE) is not None), None)
        else:
            frame = _of(awaited, _INSIDE)
            if frame is None:
                return
            yield frame
            awaited = _of(awaited, _AWAITED)


def _of(awaited: Any, names: Iterable[str]) -> Any:
    return next((found for name in names if (found := getattr(awaited, name, None)) is not None), None)


def _is_library(module: str, file: str, package: str) -> bool:
    """Return True for code that is not of the author's, whose flow is in a package.

    >>> _is_library("asyncio.tasks", "/usr/lib/python3/asyncio/tasks.py", "shop")
    True
    >>> _is_library("shop.orders", "/srv/lib/site-packages/shop/orders.py", "shop")
    False
    """
    top = module.partition(".")[0]
    if top == package:
        return module.startswith("mainspring.flows.")
    return top == "mainspring" or top in sys.stdlib_module_names or "site-packages" in file or "dist-packages" in file


def _tasks_in(future: Any, chain: list[Any]) -> list[asyncio.Task[Any]]:
    """Return the tasks for which one waits: one, those of a gather, or those in a frame of asyncio's."""
    found: Any = getattr(future, "_children", None)  # a gather's
    if isinstance(future, asyncio.Task):
        found = [future]
    elif found is None:
        inside = next((link for link in reversed(chain) if isinstance(link, FrameType)), None)
        known = {} if inside is None else inside.f_locals
        found = known.get("fs") or getattr(known.get("self"), "_tasks", None) or ()
    tasks: list[asyncio.Task[Any]] = [each for each in found if isinstance(each, asyncio.Task) and not each.done()]
    return sorted(tasks, key=hash)  # in the order in which they were made: their hash is their number


def _beside_those_that_await(found: list[WaitingCode], tasks: list[FlowTask]) -> Iterator[WaitingCode]:
    """Yield what waits, with the calls of the task that awaits it where it has none of an author's."""
    callers: dict[str, tuple[Frame, ...]] = {}
    for code, task in zip(found, tasks, strict=False):
        for other in _tasks_in(_waiter(task), list(_chain(task.get_coro()))):
            callers.setdefault(other.get_name(), code.frames)
        yield code if code.frames else replace(code, frames=callers.get(code.task, ()))


def _written(text: str) -> str:
    """Return a text as JSON and terminals can have it: a lone surrogate is escaped."""
    return text.encode(errors="backslashreplace").decode()
