"""A clock that stands still until a test moves it."""

from __future__ import annotations

import asyncio
from bisect import insort
from datetime import datetime
from itertools import count
from typing import Final

from mainspring.testing.envelopes import EPOCH

SECOND_US: Final = 1_000_000


class VirtualClock:
    """Time that passes only by `advance`, beginning with 2026-01-01 (UTC).

    >>> clock = VirtualClock()
    >>> async def waits() -> int:
    ...     sleeper = asyncio.create_task(clock.sleep(60))
    ...     await asyncio.sleep(0)
    ...     clock.advance(60)
    ...     await sleeper
    ...     return clock.now_us()
    >>> start = clock.now_us()
    >>> asyncio.run(waits()) - start
    60000000
    """

    def __init__(self, start: datetime = EPOCH) -> None:
        self._now_us = _us(start.timestamp())
        self._sleepers: list[tuple[int, int, asyncio.Future[None]]] = []
        self._numbers = count()

    def now_us(self) -> int:
        return self._now_us

    @property
    def next_us(self) -> int | None:
        """When the next sleeper is due, if any sleeps: a simulation advances to there."""
        return self._sleepers[0][0] if self._sleepers else None

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        # The number keeps sleepers due at one moment in the order in which they went to sleep.
        sleeper = (self._now_us + _us(seconds), next(self._numbers), asyncio.get_running_loop().create_future())
        insort(self._sleepers, sleeper)
        try:
            await sleeper[2]
        finally:
            if sleeper in self._sleepers:
                self._sleepers.remove(sleeper)

    def advance(self, seconds: float) -> None:
        """Move time forward and wake due sleepers, the earliest first. They run when the caller next awaits."""
        self.advance_to(self._now_us + _us(seconds))

    def advance_to(self, moment_us: int) -> None:
        """Move time forward to a moment, and wake the sleepers that are due by then."""
        self._now_us = moment_us
        while self._sleepers and self._sleepers[0][0] <= self._now_us:
            _, _, future = self._sleepers.pop(0)
            if not future.done():
                future.set_result(None)


def _us(seconds: float) -> int:
    return round(seconds * SECOND_US)
