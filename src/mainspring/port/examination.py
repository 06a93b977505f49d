"""What a store finds when it looks at itself: what is wrong, how bad it is, and what to do."""

from __future__ import annotations

from typing import Literal, Protocol, runtime_checkable

from msgspec import Struct


class Finding(Struct, frozen=True):
    """Something found: a problem, which makes the doctor's exit code 1, or a note. `fix` says what to do.

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


class Examination(Struct, frozen=True):
    """What was found. `facts` is what is good to know anyway; `ready` says that opening the store changes nothing."""

    findings: list[Finding]
    facts: dict[str, str] = {}
    ready: bool = True


@runtime_checkable
class Examined(Protocol):
    """A store that can look at itself, opened or not. It changes nothing, and comes to an end whatever is wrong.

    >>> from mainspring.stores.memory import MemoryStore
    >>> from mainspring.testing.clock import VirtualClock
    >>> isinstance(MemoryStore(VirtualClock()), Examined)
    False
    """

    async def examine(self) -> Examination:
        """Return what is wrong with the database, as far as it can be seen from here."""
        ...
