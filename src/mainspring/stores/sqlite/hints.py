"""Waiting for work: this process's commits tell at once, another's are noticed by looking now and then.

A look is at the write-ahead log's size and time, which costs next to nothing. Only after somebody has written is SQLite
asked whether that was another process.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypeAlias

from mainspring.port.clock import Clock

LOOK_SECONDS: Final = 0.05

Written: TypeAlias = tuple[int, int]


def written(log: Path) -> Written | None:
    """Return what changes when somebody writes to a file. None: there is none, or its system tells only later.

    >>> written(Path("no-such-file"))
    """
    try:
        found = log.stat()
    except OSError:
        return None
    return None if os.name == "nt" else (found.st_mtime_ns, found.st_size)


class Hints:
    """A hint that there may be work stays until somebody has taken it.

    >>> from mainspring.testing.clock import VirtualClock
    >>> async def nothing_new() -> int:
    ...     return 1
    >>> async def waits() -> None:
    ...     hints = Hints(VirtualClock(), nothing_new, lambda: None)
    ...     hints.give()
    ...     await hints.wait(60)
    >>> asyncio.run(waits())
    """

    def __init__(
        self, clock: Clock, foreign_commits: Callable[[], Awaitable[int]], written: Callable[[], Written | None]
    ) -> None:
        self._clock = clock
        self._foreign_commits = foreign_commits
        self._written = written
        self._mark: Written | None = None
        self._settled = False
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
        if not self._news.is_set():
            news = asyncio.ensure_future(self._news.wait())
            looking = asyncio.ensure_future(self._look(timeout_seconds))
            try:
                await asyncio.wait((news, looking), return_when=asyncio.FIRST_COMPLETED)
                if looking.done():
                    looking.result()
            finally:
                news.cancel()
                looking.cancel()
        self._news.clear()

    async def _look(self, timeout_seconds: float) -> None:
        """Return when another process has committed, or after the timeout."""
        ends_us = self._clock.now_us() + round(timeout_seconds * 1_000_000)
        while not await self._changed_elsewhere():
            left = (ends_us - self._clock.now_us()) / 1_000_000
            if left <= 0:
                return
            await self._clock.sleep(min(left, LOOK_SECONDS))

    async def _changed_elsewhere(self) -> bool:
        mark = self._written()
        if self._settled and mark == self._mark:
            return False
        seen = await self._foreign_commits()
        changed = self._seen not in (None, seen)
        self._seen = seen
        # The file system's clock ticks slowly: what follows within the same tick is found at the next look.
        self._settled = mark is not None and mark == self._mark
        self._mark = mark
        return changed
