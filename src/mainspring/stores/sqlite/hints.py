"""Waiting for work: this process's commits wake it at once, another's are found by polling.

A look is at the write-ahead log's size and time, which costs next to nothing. Only after a write is SQLite asked
whether that was another process.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypeAlias

from mainspring.port.clock import Clock
from mainspring.stores.hints import Hints

LOOK_SECONDS: Final = 0.05

Written: TypeAlias = tuple[int, int]


def written(log: Path) -> Written | None:
    """Return what changes when a file is written to. None: there is none, or its file system shows it only later.

    >>> written(Path("no-such-file"))
    """
    try:
        found = log.stat()
    except OSError:
        return None
    return None if os.name == "nt" else (found.st_mtime_ns, found.st_size)


class FileHints(Hints):
    """Hints that come from other processes, too, by looking at the file."""

    def __init__(
        self, clock: Clock, foreign_commits: Callable[[], Awaitable[int]], written: Callable[[], Written | None]
    ) -> None:
        super().__init__(clock)
        self._foreign_commits = foreign_commits
        self._written = written
        self._mark: Written | None = None
        self._settled = False
        self._seen: int | None = None

    async def begin(self) -> None:
        """Belong to the running event loop from now on, and notice what others commit from now on."""
        self.reset()
        self._seen = await self._foreign_commits()

    async def _pause(self, seconds: float) -> None:
        """Return when another process has committed, or after the timeout."""
        ends_us = self._clock.now_us() + round(seconds * 1_000_000)
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
