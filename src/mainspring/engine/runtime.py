"""Clock, tasks, threads and randomness, injected so that a simulator can run this very engine."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import time
from collections.abc import Awaitable, Callable, Coroutine
from itertools import count
from typing import TYPE_CHECKING, Any, Final, TypeVar

from mainspring.engine.handlers.hung_calls import Hung
from mainspring.engine.handlers.threads import Threads
from mainspring.port.clock import Clock

if TYPE_CHECKING:
    from mainspring.engine.handlers.process_pool import ProcessPool
    from mainspring.engine.observer import Observer

HANDLER_THREADS: Final = 32
CANCEL_SECONDS = 2.0
END_SECONDS: Final = 2.0

T = TypeVar("T")


async def unbroken(work: Coroutine[Any, Any, T]) -> T:
    """Do something to its end, even if its caller is cancelled meanwhile; the cancellation is raised afterwards.

    >>> asyncio.run(unbroken(asyncio.sleep(0, "done")))
    'done'
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait((task,))
        raise


class SystemClock:
    """The machine's clock.

    >>> SystemClock().now_us() > 0
    True
    """

    def now_us(self) -> int:
        return time.time_ns() // 1000

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class Runtime:
    """What the engine needs of the machine.

    >>> runtime = Runtime()
    >>> runtime.new_id() != runtime.new_id()
    True
    """

    def __init__(self, clock: Clock | None = None, seed: int | None = None) -> None:
        self.clock: Clock = clock or SystemClock()
        # How many processes there are at most for handlers that run in them: more than cores would not compute more.
        self.processes = _cores()
        # Calls in threads that were given up and still run.
        self.hung = Hung(self.clock.now_us)
        # Notified of everything, where telemetry is on.
        self.observer: Observer | None = None
        self._random = random.Random(seed)  # noqa: S311  jitter, not secrets
        self._seeded = seed is not None
        self._ids = (0, "", count(1))
        # For plain functions; made when the first is called.
        self.threads: Threads | None = None
        self._pool: ProcessPool | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def observe(self, observer: Observer) -> None:
        """Notify an observer of everything. To be called before an engine runs: its stations ask once who observes."""
        self.observer = observer

    def random(self) -> float:
        """Return a number in [0, 1)."""
        return self._random.random()

    def new_id(self) -> str:
        """Return a unique id: 80 random bits for this process, and a number. Any thread may ask."""
        process, prefix, numbers = self._ids
        if process != os.getpid():
            # At the first use, and again in a child that was forked meanwhile. Threads that come together may draw one
            # each; none sees half of another's.
            prefix = f"{self._random.getrandbits(80):020x}" if self._seeded else secrets.token_hex(10)
            numbers = count(1)
            self._ids = (os.getpid(), prefix, numbers)
        return f"{prefix}-{next(numbers):x}"

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Start a task, which ends with the engine at the latest."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def wait(self, future: asyncio.Future[Any], seconds: float) -> bool:
        """Wait for a future, so long by the clock at most. Return whether it is done."""
        if type(self.clock) is SystemClock:  # one that is derived from it may sleep otherwise
            # By the loop's own timer: a sleeping task beside every waiter costs more than the wait itself.
            await asyncio.wait((future,), timeout=seconds)
            return future.done()
        sleeper = asyncio.ensure_future(self.clock.sleep(seconds))
        try:
            await asyncio.wait((future, sleeper), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeper.cancel()
        return future.done()

    def every(
        self, seconds: float, work: Callable[[], Awaitable[None]], name: str, when: asyncio.Event | None = None
    ) -> None:
        """Do something again and again, or only `when` an event is set; else it costs nothing.

        It is housekeeping, which a simulation without other workers can do without.
        """

        async def repeat() -> None:
            while True:
                if when is not None:
                    await when.wait()
                await self.clock.sleep(seconds)
                await work()

        self.spawn(repeat(), name)

    async def cancel_tasks(self) -> list[str]:
        """End all tasks that still run, but for the one that asks. Return the names of those that still run."""
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        if not tasks:
            return []
        _, left = await asyncio.wait(tasks, timeout=CANCEL_SECONDS)
        return sorted(task.get_name() for task in left)

    async def in_thread(self, function: Callable[[], Any], name: str = "") -> Any:
        """Run a blocking function in a thread. With a name, it is reported if it outlives its caller's wait."""
        if self.threads is None:
            self.threads = Threads(HANDLER_THREADS, now_us=self.clock.now_us)
        threads = self.threads
        call = threads.run(function, name)
        try:
            return await asyncio.wrap_future(call)
        except asyncio.CancelledError:
            if threads.leave(call) and name:
                self.hung.add(name, call)
            raise

    async def in_process(self, function: Callable[[Any], Any], message: Any, begun: Callable[[], None]) -> Any:
        """Run a function of a message in a process; `begun` is called when it begins. Cancelling the wait kills it."""
        if self._pool is None:
            from mainspring.engine.handlers.process_pool import ProcessPool  # noqa: PLC0415  few apps have a use for it

            self._pool = ProcessPool(self.processes)
        return await self._pool.call(function, message, begun)

    async def end_processes(self) -> None:
        """Let the processes end, which have no work any more."""
        pool, self._pool = self._pool, None
        if pool is not None:
            await self.in_thread(lambda: pool.close(END_SECONDS))

    def close(self) -> None:
        """Release the threads, without waiting for a handler that hangs."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None
        if self.threads is not None:
            self.threads.close()
            self.threads = None


def _cores() -> int:
    """Return how many cores this process may use."""
    affinity: Callable[[int], set[int]] | None = getattr(os, "sched_getaffinity", None)  # not on every system
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1
