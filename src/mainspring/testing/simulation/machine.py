"""The simulated machine: a clock, threads, randomness and a store that hide nothing from the world."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from datetime import datetime
from typing import Any, Final

from mainspring.core.story import Entry
from mainspring.engine.handlers.threads import Threads
from mainspring.engine.registry import Registry
from mainspring.engine.runtime import Runtime
from mainspring.port.records import Outcome, OutputClaim, Unit
from mainspring.stores.memory import MemoryStore
from mainspring.testing.clock import SECOND_US, VirtualClock
from mainspring.testing.simulation.chronicle import Chronicle

FENCE_TURNS: Final = 50


class SimulatedClock(VirtualClock):
    """A virtual clock that knows who sleeps. Who sleeps on it in the test's own code moves the world."""

    def __init__(self, start: datetime) -> None:
        super().__init__(start)
        self.asleep: set[asyncio.Task[Any] | None] = set()
        self.drives: Callable[[asyncio.Task[Any] | None], bool] = lambda _: False
        self.drive: Callable[[int], Awaitable[None]] | None = None

    async def sleep(self, seconds: float) -> None:
        task = asyncio.current_task()
        if self.drive is not None and self.drives(task):
            # Nothing else would: awaiting a result in a test has to let the time pass in which it comes.
            await self.drive(self.now_us() + round(seconds * SECOND_US))
            return
        self.asleep.add(task)
        try:
            await super().sleep(seconds)
        finally:
            self.asleep.discard(task)


class SimulatedRuntime(Runtime):
    """A seeded runtime without housekeeping, which calls plain functions in a thread one after the other.

    One at a time, and only when all else is quiet: how long a thread takes must not change what happens next.
    """

    def __init__(self, clock: SimulatedClock, seed: int) -> None:
        super().__init__(clock, seed)
        self._thread = Threads(1)
        self._calls: deque[tuple[Callable[[], Any], asyncio.Future[Any]]] = deque()

    def every(
        self, seconds: float, work: Callable[[], Awaitable[None]], name: str, when: asyncio.Event | None = None
    ) -> None:
        """Leave it: no worker dies here, no lease runs out, and the world ends attempts at their deadlines itself."""

    def owns(self, task: asyncio.Task[Any] | None) -> bool:
        """Return True if a task is one of the engine's."""
        return task in self._tasks

    async def in_thread(self, function: Callable[[], Any], name: str = "") -> Any:
        called: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._calls.append((function, called))
        return await called

    def start_next_call(self) -> asyncio.Future[Any] | None:
        """Let the thread make the next call. Return a future that is done when it is over."""
        while self._calls:
            function, called = self._calls.popleft()
            if not called.done():
                return _answered(self._thread.run(function), called)
        return None

    def close(self) -> None:
        super().close()
        self._thread.close()
        self._thread = Threads(1)


class SimulatedStore(MemoryStore):
    """A memory store that writes the chronicle, and whose wake-ups need no polling behind them."""

    def __init__(self, clock: SimulatedClock, chronicle: Chronicle) -> None:
        super().__init__(clock)
        self._chronicle = chronicle

    async def commit(self, worker: int, units: Sequence[Unit]) -> list[Outcome]:
        outcomes = await super().commit(worker, units)
        self._chronicle.commit(self.now_us(), units, outcomes)
        return outcomes

    async def wait_for_work(self, timeout_seconds: float) -> None:
        await self._news.wait()
        self._news.clear()

    def streams(self, registry: Registry) -> dict[str, list[Entry]]:
        """Return all streams, in the order of their beginning."""
        streams: dict[str, list[Entry]] = {str(ref): [] for ref in self._tables.begun}
        for _, ref, row in self._tables.feed:
            streams[str(ref)].append(registry.workflows[ref.workflow].recorder.entry(ref, row))
        return streams

    def waiting_timers(self) -> list[OutputClaim]:
        """Return what is scheduled, the next one first."""
        timers = [(key, output) for key, output in self._tables.outbox.items() if output.row.kind == "timer"]
        timers.sort(key=lambda item: (item[1].due_us, item[0]))
        return [self._tables.claim_of(*item) for item in timers]


def _answered(made: Future[Any], called: asyncio.Future[Any]) -> asyncio.Future[None]:
    """Answer a call with what a thread makes of it. Return a future that is done then, even if no caller waits."""
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()

    def answer() -> None:
        over.set_result(None)
        error = made.exception()
        if called.done():
            return
        if error is None:
            called.set_result(made.result())
        else:
            called.set_exception(error)

    made.add_done_callback(lambda _: loop.call_soon_threadsafe(answer))
    return over


async def until_idle(most_turns: int) -> bool:
    """Let the loop turn until nothing in it is ready to run. Return True if that happened.

    asyncio's own loops say what is ready; of another kind of loop (uvloop), a number of turns has to do.
    """
    ready: Any = getattr(asyncio.get_running_loop(), "_ready", None)
    for turn in range(most_turns):
        if ready is None:
            if turn == FENCE_TURNS:
                return True
        elif not ready:
            return True
        await asyncio.sleep(0)
    return False
