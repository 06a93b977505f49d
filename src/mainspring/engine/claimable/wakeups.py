"""Wake-ups: when to look for work. They are hints; polling is the safety net under them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from mainspring.engine.runtime import Runtime


class Wakeups:
    """Wakes the claims when something unclaimed becomes due: now, or at the earliest of the moments it was given."""

    def __init__(self, runtime: Runtime, now_us: Callable[[], int]) -> None:
        self._runtime = runtime
        self._now_us = now_us
        # Set when it is time to look; the claimer that looks clears it.
        self.hint = asyncio.Event()
        self._started = False
        self._timer: asyncio.Task[None] | None = None
        self._timer_us: int | None = None

    def start(self) -> None:
        """Begin to heed what becomes due: a process that claims nothing has no use for it."""
        self._started = True
        self.hint.set()

    async def stop(self) -> None:
        """Heed nothing more."""
        self._started = False
        if self._timer is not None:
            self._timer.cancel()
            await asyncio.gather(self._timer, return_exceptions=True)

    def due_at(self, due_us: int) -> None:
        """Note that something becomes due."""
        if not self._started:
            return
        if due_us <= self._now_us():
            self.hint.set()
        elif self._timer_us is None or due_us < self._timer_us:
            self._wake_at(due_us)

    def _wake_at(self, due_us: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_us = due_us

        async def wait() -> None:
            await self._runtime.clock.sleep(max(0, due_us - self._now_us()) / 1e6)
            self._timer_us = None
            self._timer = None
            self.hint.set()

        self._timer = self._runtime.spawn(wait(), "mainspring-due")
