"""The event loop in which a flow runs: it runs what is ready and never waits, and its time is the recorded one.

All of asyncio that needs no outside works in it as it is: tasks, futures, gather, TaskGroup, timeout, Queue, Lock. Its
tasks and futures are numbered, and the number is their hash: so the sets in which asyncio keeps them have the same
order in every process.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio import events, tasks
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import suppress
from contextvars import Context
from typing import Any, Final, NoReturn

from mainspring.errors import FlowError

_OUTSIDE: Final = [
    "add_reader",
    "add_signal_handler",
    "add_writer",
    "call_soon_threadsafe",
    "connect_accepted_socket",
    "connect_read_pipe",
    "connect_write_pipe",
    "create_connection",
    "create_datagram_endpoint",
    "create_server",
    "create_unix_connection",
    "create_unix_server",
    "getaddrinfo",
    "getnameinfo",
    "run_in_executor",
    "sendfile",
    "sock_accept",
    "sock_connect",
    "sock_recv",
    "sock_recv_into",
    "sock_recvfrom",
    "sock_recvfrom_into",
    "sock_sendall",
    "sock_sendfile",
    "sock_sendto",
    "start_tls",
    "subprocess_exec",
    "subprocess_shell",
    "run_forever",
    "run_until_complete",
    "shutdown_default_executor",
]

# Since 3.14 the current task is kept for each thread, and no longer for each loop.
_ONE_TASK_A_THREAD: Final = sys.version_info >= (3, 14)

_TASKS_SWEPT: Final = 64

EVICTIONS: Final = 100
"""How often code is told that it is torn down."""

TURNS_MOST: Final = 1_000_000
"""Within one step."""


class Evicted(BaseException):
    """Raised in the code of a run that is put away, where it asks for anything more."""


class FlowTask(asyncio.Task[Any]):
    """A task whose hash is its number."""

    number: int

    def __hash__(self) -> int:
        return self.number


class FlowFuture(asyncio.Future[Any]):
    """A future whose hash is its number."""

    number: int

    def __hash__(self) -> int:
        # Given when it is first asked for, as for few: the order of that is the code's own.
        try:
            return self.number
        except AttributeError:
            loop: Any = self.get_loop()
            self.number = loop.next_number()
            return self.number


class FlowLoop(asyncio.AbstractEventLoop):
    """An event loop that is driven from outside: `run_ready` runs what can run now, `now` is its time.

    `schedule` is called with each timer that is set, `cancel` with each that is cancelled.
    """

    def __init__(
        self,
        run: Any,
        schedule: Callable[[asyncio.TimerHandle], None],
        cancel: Callable[[asyncio.TimerHandle], None],
    ) -> None:
        self.run = run
        """What this loop is the loop of."""
        self.now = 0.0
        self.closing = False
        self._evictions = 0
        self.refused: FlowError | None = None
        """Why what the code did cannot be: raised again at the end of the step, whatever the code caught."""
        self.unhandled: list[dict[str, Any]] = []
        self._schedule = schedule
        self._cancel = cancel
        self._ready: deque[asyncio.Handle] = deque()
        self._count = 0
        self._tasks: list[FlowTask] = []
        self._swept_at = _TASKS_SWEPT

    # ---- what asyncio asks for

    def time(self) -> float:
        return self.now

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def get_task_factory(self) -> None:
        return None

    def evict(self) -> None:
        """Raise Evicted in code that asks for something while it is torn down.

        Code that catches even that, and asks again without end, is let wait: then the teardown gets it back.
        """
        self._evictions += 1
        if self._evictions <= EVICTIONS:
            raise Evicted

    def create_future(self) -> FlowFuture:
        if self.closing:
            self.evict()
        return FlowFuture(loop=self)

    def next_number(self) -> int:
        """Return the number of a task or future, which is its hash."""
        self._count += 1
        return self._count

    def create_task(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, coro: Coroutine[Any, Any, Any], *, name: str | None = None, context: Context | None = None, **_: Any
    ) -> FlowTask:
        if self.closing:
            coro.close()
            self.evict()
        self._count += 1
        # Its number is asked for while it is made: asyncio keeps a set of all tasks.
        task = FlowTask.__new__(FlowTask)
        task.number = self._count
        task.__init__(coro, loop=self, name=name or f"task {self._count}", context=context)
        if len(self._tasks) >= self._swept_at:
            self._tasks = [task for task in self._tasks if not task.done() or _is_unseen(task)]
            self._swept_at = max(_TASKS_SWEPT, 2 * len(self._tasks))
        self._tasks.append(task)
        return task

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Context | None = None) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.now + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        if self.closing:
            self.evict()
        else:
            self._schedule(handle)
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        if not self.closing:
            self._cancel(handle)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.unhandled.append(context)

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        self.unhandled.append(context)

    def finish(self, generator: AsyncGenerator[Any, Any]) -> None:
        """End an async generator that nobody iterates any more: as asyncio does, but in this loop.

        The loop in which the worker runs would call the steps of its `finally` as plain functions, at each re-run.
        """
        ending = generator.aclose()
        if events._get_running_loop() is self and not self.closing:  # noqa: SLF001
            self.create_task(ending)
            return
        # It was found by the collection of garbage, or is torn down with what iterated it.
        before, self.closing = (self.closing, self._evictions), True
        with self.current(), suppress(BaseException):
            for _ in range(EVICTIONS):
                ending.send(None)
        self.closing, self._evictions = before

    # ---- driving it

    def make_ready(self, handle: asyncio.Handle) -> None:
        """Run what a timer was set for, at the next turn."""
        self._ready.append(handle)

    def run_ready(self) -> None:
        """Run until nothing can run any more. The loop has to be the `current` one."""
        ready, turns = self._ready, 0
        while ready:
            turns += 1
            if turns > TURNS_MOST:
                raise FlowError(
                    f"A flow has gone on for {TURNS_MOST:,} turns of its loop without waiting for anything",
                    "Await what ends the loop: a step, receive(…) or asyncio.sleep, and not asyncio.sleep(0).",
                )
            handle = ready.popleft()
            if not handle.cancelled():
                handle._run()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  as every loop does

    @property
    def is_ready(self) -> bool:
        """Whether something can run now."""
        return bool(self._ready)

    def pending(self) -> list[FlowTask]:
        """Return the tasks that have not ended, oldest first."""
        return [task for task in self._tasks if not task.done()]

    def ended_badly(self) -> list[FlowTask]:
        """Return the tasks that have failed, and whose error nobody has looked at."""
        return [task for task in self._tasks if task.done() and _is_unseen(task)]

    def let_go(self) -> None:
        """Forget everything that knows this loop, so that it goes without a collection of garbage."""
        self.unhandled.clear()
        self._tasks.clear()
        self._ready.clear()
        self.run = None
        self._schedule = self._cancel = _nothing

    def current(self) -> Current:
        """Let code find this loop as the one that runs; the one in which the caller runs is out of sight meanwhile."""
        return Current(self)


class Current:
    """What `current` returns. A class, and no generator: every step enters one."""

    __slots__ = ("_generators", "_loop", "_outer", "_task")

    def __init__(self, loop: FlowLoop) -> None:
        self._loop = loop
        self._outer: asyncio.AbstractEventLoop | None = None
        self._task: Any = None
        self._generators: Any = None

    def __enter__(self) -> None:
        self._outer = events._get_running_loop()  # noqa: SLF001
        self._task = _swapped(self._outer, None)
        events._set_running_loop(self._loop)  # noqa: SLF001
        self._generators = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(None, self._loop.finish)

    def __exit__(self, *_: object) -> None:
        sys.set_asyncgen_hooks(*self._generators)
        events._set_running_loop(self._outer)  # noqa: SLF001
        _swapped(self._outer, self._task)


def _nothing(_: asyncio.TimerHandle) -> None:
    """Stands for what is done with timers where nothing is done any more."""


def _is_unseen(task: FlowTask) -> bool:
    return not task.cancelled() and bool(task._log_traceback)  # noqa: SLF001  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownArgumentType]


def _swapped(loop: Any, task: Any) -> Any:
    if not _ONE_TASK_A_THREAD or loop is None:
        return None
    return tasks._swap_current_task(loop, task)  # type: ignore[attr-defined]  # noqa: SLF001


def _refusing(name: str) -> Callable[..., NoReturn]:
    def refuse(self: FlowLoop, *_: Any, **__: Any) -> NoReturn:
        if self.closing:
            raise Evicted
        self.refused = FlowError(
            f"A flow called loop.{name}, which reaches outside: files, sockets, threads, processes",
            "Put what reaches outside into a function with @app.step, and await that.",
        )
        raise self.refused

    refuse.__name__ = name
    return refuse


for _name in _OUTSIDE:
    setattr(FlowLoop, _name, _refusing(_name))
