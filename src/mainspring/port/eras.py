"""Eras: between two of them something was erased, and the data subject got a new key."""

from __future__ import annotations

from collections.abc import Callable


def era_of(store: object) -> Callable[[], int] | None:
    """Return the function that gives a store's era, or None if nothing can be erased from it.

    What was read in an earlier era may be erased by now. A unit that moves an instance by it names the era.

    >>> era_of(object()) is None
    True
    """
    return getattr(store, "era", None)
