"""Eras: between two of them something was erased, and a key was made anew for whom it was about."""

from __future__ import annotations

from collections.abc import Callable


def era_of(store: object) -> Callable[[], int] | None:
    """Return what tells in which era a store is, or None if nothing can be erased from it.

    What was read in an earlier era may be erased by now. Whoever moves an instance by it says so in the unit.

    >>> era_of(object()) is None
    True
    """
    return getattr(store, "era", None)
