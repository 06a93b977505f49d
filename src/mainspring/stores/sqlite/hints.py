"""Waiting for work: this process's commits tell at once, another's are noticed by looking now and then."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from mainspring.port.clock import Clock

LOOK_SECONDS: Final = 0.05


class Hints:
    """A hint that there may be work stays until somebody has taken it.

    >>> from mainspring.testing.clock import VirtualClock
    >>> async def nothing_new() -> int:
    ...     return 1
    >>> async def waits() -> None:
    ...     hints = Hints(VirtualClock(), nothing_new)
    ...     hints.give()
    ...     await hints.wait(60)
    >>> asyncio.run(waits())
    """

    def __init__(self, clock: Clock, foreign_commits: Callable[[], Awaitable[int]]) -> None:
        self._clock = clock
        self._foreign_commits = foreign_commits
        self._seen: int | None = None
        self._news = asyncio.Event()

    async def reset(self) -> None:
        """Belong to the running event loop from now on, and notice what others commit from now on."""
        self._news = asyncio.Event()
        self._seen = await self._foreign_commits()

    def give(self) -> None:
        """Say that there is work which nobody holds. To be called in the event loop."""
        self._news.set()

    async def wait(self, timeout_seconds: float) -> None:
        """Return when there may be work, or after the timeout."""
        ends_us = self._clock.now_us() + round(timeout_seconds * 1_000_000)
        while not self._news.is_set() and not await self._changed_elsewhere():
            left = (ends_us - self._clock.now_us()) / 1_000_000
            if left <= 0:
                break
            await self._pause(min(left, LOOK_SECONDS))
        self._news.clear()

    async def _changed_elsewhere(self) -> bool:
        seen = await self._foreign_commits()
        changed = self._seen not in (None, seen)
        self._seen = seen
        return changed

    async def _pause(self, seconds: float) -> None:
        news = asyncio.ensure_future(self._news.wait())
        pause = asyncio.ensure_future(self._clock.sleep(seconds))
        try:
            await asyncio.wait((news, pause), return_when=asyncio.FIRST_COMPLETED)
        finally:
            news.cancel()
            pause.cancel()
