"""Arrivals: what this worker has received since it was missed."""

from __future__ import annotations

from typing import TypeAlias

from mainspring.port.records import OutputKey

InHand: TypeAlias = OutputKey | int
"""An output, or an input by its position in the inbox."""


class Arrivals:
    """Knows what was missing at the last look, less what has come since. See `strays`.

    >>> arrivals = Arrivals()
    >>> arrivals.miss({7, 8})
    >>> arrivals.came(7)
    >>> arrivals.missing
    {8}
    """

    def __init__(self) -> None:
        self.missing: set[InHand] = set()
        self.heeded = False
        """Whether arrivals are to be noted: mostly nothing is missing, and no look is under way."""
        # What came during the look that is under way; None where there is none.
        self._during: set[InHand] | None = None

    def came(self, what: InHand) -> None:
        """Note that something arrived."""
        self.missing.discard(what)
        if self._during is not None:
            self._during.add(what)

    def begin_look(self) -> None:
        """Note from now on what comes."""
        self._during, self.heeded = set(), True

    def end_look(self) -> set[InHand]:
        """Return what came during the look."""
        during, self._during = self._during, None
        return during or set()

    def miss(self, missing: set[InHand]) -> None:
        """Set what is missing, and forget the rest."""
        self.missing, self.heeded = missing, bool(missing) or self._during is not None
