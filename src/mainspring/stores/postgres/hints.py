"""Waiting for work: this process's commits tell at once, those of others by NOTIFY where one can listen."""

from __future__ import annotations

import asyncio

from mainspring.port.clock import Clock


class Hints:
    """A hint that there may be work stays until somebody has taken it.

    >>> from mainspring.testing.clock import VirtualClock
    >>> async def waits() -> None:
    ...     hints = Hints(VirtualClock())
    ...     hints.give()
    ...     await hints.wait(60)
    >>> asyncio.run(waits())
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._news = asyncio.Event()

    def give(self) -> None:
        """Say that there is work which nobody holds."""
        self._news.set()

    async def wait(self, timeout_seconds: float) -> None:
        """Return when there may be work, or after the timeout."""
        if not self._news.is_set():
            news = asyncio.ensure_future(self._news.wait())
            pause = asyncio.ensure_future(self._clock.sleep(timeout_seconds))
            try:
                await asyncio.wait((news, pause), return_when=asyncio.FIRST_COMPLETED)
            finally:
                news.cancel()
                pause.cancel()
        self._news.clear()
