"""Prefetch: how much of a handler's work one worker holds, so that others get their share.

Commands that wait in a worker cannot be claimed by others. So beside those that run, no more wait here than are
carried out in about half a second, by what was measured. A quick handler always has enough to do, and of slow work a
worker keeps little that it cannot begin at once.
"""

from __future__ import annotations

import math
from typing import Final

from mainspring.engine.handlers.policies.limits import RateLimit

AHEAD_SECONDS: Final = 0.5
# How much of a new measurement counts.
WEIGHT: Final = 0.125


class Prefetch:
    """How much of one handler's work a worker prefetches, with so many commands at once.

    >>> prefetch = Prefetch(at_once=4)
    >>> prefetch.most  # nothing is known yet
    8
    >>> prefetch.measured(duration_us=10_000_000)
    >>> prefetch.most
    5
    """

    def __init__(self, at_once: int, rate: RateLimit | None = None) -> None:
        self._at_once = at_once if rate is None else min(at_once, math.ceil(rate.burst + rate.per_second))
        self._rate = rate
        self._seconds: float | None = None
        self.most = self._at_once + self._ahead(AHEAD_SECONDS)

    def measured(self, duration_us: int) -> None:
        """Learn how long an attempt took."""
        seconds = max(duration_us, 1) / 1e6
        self._seconds = seconds if self._seconds is None else self._seconds + WEIGHT * (seconds - self._seconds)
        self.most = self._at_once + self._ahead(self._seconds)

    def _ahead(self, seconds: float) -> int:
        ahead = self._at_once * AHEAD_SECONDS / seconds
        if self._rate is not None:
            ahead = min(ahead, self._rate.per_second * AHEAD_SECONDS)
        return max(1, int(ahead))
