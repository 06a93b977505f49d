"""What a walk along one stream finds, and how much it has compared."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

What: TypeAlias = Literal["decision", "error", "state", "unreadable", "evolve"]
Key: TypeAlias = tuple[What, str]
"""What differs, and how, in the words that are the same wherever the same differs."""
Lines: TypeAlias = tuple[str, ...]


class Stored(Struct, frozen=True, gc=False):
    """A state as it was stored: of a snapshot, or of an exported file.

    >>> Stored("Waiting", 1, b"{}").type
    'Waiting'
    """

    type: str
    type_version: int
    body: bytes


class Found(Struct):
    """A kind of difference in one instance: at which versions, and the story of the first of them.

    >>> Found([4, 9], ()).steps
    2
    """

    versions: list[int]
    lines: Lines

    @property
    def steps(self) -> int:
        """In how many steps it was found."""
        return len(self.versions)


class Compared(Struct, frozen=True):
    """How much was held against what: decisions step by step, names of states, and whole states where there are any.

    `states` are those of `states_passed` of which the whole is known: by a snapshot, or by old code to compare with.

    >>> Compared(decisions=3).state_names
    0
    """

    decisions: int = 0
    state_names: int = 0
    states: int = 0
    before_migration: int = 0
    unreadable_snapshots: int = 0
    states_passed: int = 0


class StopWalkError(Exception):
    """The stream cannot be walked any further: what comes behind cannot be known."""
