"""One line on a terminal that says how far a long run is."""

from __future__ import annotations

import sys
import time

SECONDS_BETWEEN = 0.2


class Progress:
    """Writes over its own line on a terminal's stderr; without a terminal it is silent."""

    def __init__(self, what: str, total: int) -> None:
        self._what = what
        self._total = total
        self._shown = sys.stderr.isatty()
        self._last = 0.0

    def at(self, done: int) -> None:
        now = time.monotonic()
        if self._shown and now - self._last >= SECONDS_BETWEEN:
            self._last = now
            sys.stderr.write(f"\r\x1b[K{self._what}: {done:,} of {self._total:,}")
            sys.stderr.flush()

    def end(self) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
