"""Clock, tasks, threads and randomness, injected so that a simulator can run this very engine."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

from mainspring.port.clock import Clock

HANDLER_THREADS = 32
CANCEL_SECONDS = 2.0


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
        self._random = random.Random(seed)  # noqa: S311  jitter, not secrets
        self._seeded = seed is not None
        self._process = 0
        self._prefix = ""
        self._made = 0
        self._executor: Executor | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def random(self) -> float:
        """Return a number in [0, 1)."""
        return self._random.random()

    def new_id(self) -> str:
        """Return an id that nobody else has: 80 random bits for this process, and a number."""
        if self._process != os.getpid():
            # At the first use, and again in a child that was forked meanwhile.
            self._process = os.getpid()
            self._prefix = f"{self._random.getrandbits(80):020x}" if self._seeded else secrets.token_hex(10)
        self._made += 1
        return f"{self._prefix}-{self._made:x}"

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Start a task, which ends with the engine at the latest."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def cancel_tasks(self) -> None:
        """End all tasks that still run, but for the one that asks."""
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CANCEL_SECONDS)

    async def in_thread(self, function: Callable[[], Any]) -> Any:
        """Run a blocking function in a thread."""
        if self._executor is None:
            self._executor = ThreadPoolExecutor(HANDLER_THREADS, thread_name_prefix="mainspring-handler")
        return await asyncio.get_running_loop().run_in_executor(self._executor, function)

    def close(self) -> None:
        """Let go of the threads, without waiting for a handler that hangs."""
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)
            self._executor = None
