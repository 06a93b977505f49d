"""The trace: every turn, verb, fault and commit of a run, as one hash, and as lines for whoever reads the story."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from hashlib import sha256


class Trace:
    """Takes everything down. The lines are kept only where somebody will read them."""

    def __init__(self, *, kept: bool) -> None:
        self._kept = kept
        self._hash = sha256()
        self._turns = bytearray()
        self.lines: list[str] = []
        self.fired: Counter[str] = Counter()
        self.seconds: Callable[[], float] = lambda: 0.0

    def turn(self, party: int) -> None:
        """Take down whose turn it is."""
        self._turns.append(party & 255)

    def line(self, who: str, what: str) -> None:
        """Take down what happens."""
        text = f"{self.seconds():10.4f} {who:<10} {what}"
        self._hash.update(self._turns)
        self._hash.update(text.encode())
        self._turns.clear()
        if self._kept:
            self.lines.append(text)

    def fault(self, kind: str, who: str, what: str) -> None:
        """Take down a fault that fires."""
        self.fired[kind] += 1
        self.line(who, f"!! {kind}: {what}")

    @property
    def hash(self) -> str:
        """One number for all of it."""
        whole = self._hash.copy()
        whole.update(self._turns)
        return whole.hexdigest()
