"""Waiting for work: this process's own commits wake it at once."""

from __future__ import annotations

import asyncio

from mainspring.port.clock import Clock


class Hints:
    """A hint that there may be work stays until a waiter has taken it.

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

    def reset(self) -> None:
        """Belong to the running event loop from now on."""
        self._news = asyncio.Event()

    def give(self) -> None:
        """Say that there is unclaimed work. To be called in the event loop."""
        self._news.set()

    async def wait(self, timeout_seconds: float) -> None:
        """Return when there may be work, or after the timeout."""
        if not self._news.is_set():
            news = asyncio.ensure_future(self._news.wait())
            pause = asyncio.ensure_future(self._pause(timeout_seconds))
            try:
                await asyncio.wait((news, pause), return_when=asyncio.FIRST_COMPLETED)
                if pause.done():
                    pause.result()
            finally:
                news.cancel()
                pause.cancel()
        self._news.clear()

    async def _pause(self, seconds: float) -> None:
        """Return after so many seconds, or when others may have left work."""
        await self._clock.sleep(seconds)
