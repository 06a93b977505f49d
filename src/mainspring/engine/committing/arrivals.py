"""Arrivals: what has come into this worker's hands since somebody missed it."""

from __future__ import annotations

from typing import TypeAlias

from mainspring.port.records import OutputKey

Held: TypeAlias = OutputKey | int
"""An output, or an input by its position in the inbox."""


class Arrivals:
    """Knows what was missing at the last look, less what has come since. See `strays`.

    >>> arrivals = Arrivals()
    >>> arrivals.missing.add(7)
    >>> arrivals.came(7)
    >>> arrivals.missing
    set()
    """

    def __init__(self) -> None:
        self.missing: set[Held] = set()
        # What came during the look that is under way; None where there is none.
        self._during: set[Held] | None = None

    def came(self, what: Held) -> None:
        """Know that something came into hand."""
        self.missing.discard(what)
        if self._during is not None:
            self._during.add(what)

    def begin_look(self) -> None:
        """Note from now on what comes."""
        self._during = set()

    def end_look(self) -> set[Held]:
        """Return what came during the look."""
        during, self._during = self._during, None
        return during or set()
