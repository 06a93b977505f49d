"""What a doctor finds."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class Finding(Struct, frozen=True):
    """Something found: a problem, which makes the exit code 1, or a note. `fix` says what to do.

    >>> note("No worker runs", "Start one.").level
    'note'
    """

    level: Literal["problem", "note"]
    what: str
    fix: str


def problem(what: str, fix: str) -> Finding:
    """Return a problem."""
    return Finding("problem", what, fix)


def note(what: str, fix: str) -> Finding:
    """Return a note."""
    return Finding("note", what, fix)
