"""Time: the database's, by which leases and due times are judged, or that of a test."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from mainspring.port.clock import Clock

DRIFT: Final = 0.000_5
"""How far two clocks may drift apart: 0.5 ms in a second, more than any usable one does."""


class DatabaseClock:
    """The database's time as this process knows it: measured now and then, and carried on in between.

    The machine's own time of day does not matter, wherever it is set to. An answer that was long under way says little,
    so it does not replace a better one that it does not contradict.

    >>> clock = DatabaseClock(monotonic_ns=lambda: 50_000)
    >>> clock.measured(1_000_000, sent_us=40, came_us=60)
    >>> clock.now_us()
    1000000
    """

    def __init__(self, monotonic_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._monotonic_ns = monotonic_ns
        self._offset_us = time.time_ns() // 1_000 - self.monotonic_us()
        # How far it may be wrong, as it was when it was measured. Nothing was measured yet.
        self._error_us: float | None = None
        self._measured_us = 0

    def monotonic_us(self) -> int:
        """Return a moment of ours."""
        return self._monotonic_ns() // 1_000

    def measured(self, database_us: int, sent_us: int, came_us: int) -> None:
        """Learn what the database said its time was, somewhere between these two moments of ours."""
        offset_us, error_us = database_us - (sent_us + came_us) // 2, (came_us - sent_us) / 2
        if self._error_us is not None:
            known_us = self._error_us + (came_us - self._measured_us) * DRIFT
            if error_us > known_us and abs(offset_us - self._offset_us) <= error_us + known_us:
                return
        self._offset_us, self._error_us, self._measured_us = offset_us, error_us, came_us

    def now_us(self) -> int:
        return self._monotonic_ns() // 1_000 + self._offset_us

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def is_machines(clock: Clock) -> bool:
    """Return True if a clock gives this machine's time of day: then the database's is the better one.

    >>> from mainspring.testing.clock import VirtualClock
    >>> is_machines(VirtualClock())
    False
    """
    return abs(clock.now_us() - time.time_ns() // 1_000) < 1_000_000
