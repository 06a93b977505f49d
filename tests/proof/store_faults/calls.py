"""Calls of a store, counted in a process in which one of them is to fail."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CALL_CHARACTERS: Final = 80
GIVEN_UP: Final = "given up by the client"
"""The kind of fault that is none of the store's: who asked for it does not wait any more."""


@dataclass(frozen=True)
class Fault:
    """What goes wrong, and at which call: its name with its number among those of that name, as in `COMMIT#3`."""

    kind: str
    at: str


class Calls:
    """Counts calls. Whoever makes one asks whether it is to fail, and how."""

    def __init__(self, fault: Fault | None, note: Path) -> None:
        self._fault = fault
        self._note = note
        self._made: list[str] = []
        self._names: Counter[str] = Counter()
        self._happened = False
        self._one = threading.Lock()  # the SQLite store has threads of its own
        self.give_up: Callable[[], bool] = lambda: False
        """Lets the client give up what it asks for just now, if it asks for anything; the client says how."""

    def reach(self, what: str) -> str | None:
        """Be at the next call. Return the kind of fault that it meets; None, as a rule."""
        name = " ".join(what.split())[:CALL_CHARACTERS]
        with self._one:
            self._names[name] += 1
            call = f"{name}#{self._names[name]}"
            self._made.append(call)
            if self._fault is None or call != self._fault.at:
                return None
            if self._fault.kind == GIVEN_UP:
                self._happened = self.give_up()
                return None
            self._happened = True
            return self._fault.kind

    def write_down(self) -> None:
        """Say whether the fault has happened, and which calls there were, one a line."""
        self._note.write_text("\n".join(("happened" if self._happened else "", *self._made)))


def read_note(note: Path) -> tuple[bool, list[str]]:
    """Return whether the fault has happened, and all calls."""
    happened, *made = note.read_text().splitlines() or [""]
    return bool(happened), made
