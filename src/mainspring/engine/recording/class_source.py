"""The source of classes: slow to find, looked at several times at every start, the same for a class's whole life."""

from __future__ import annotations

import inspect
from functools import lru_cache
from typing import Any, Final

SOURCES_KEPT: Final = 200


def source_of(cls: type[Any]) -> str | None:
    """Return the source of a class, if there is any.

    >>> from mainspring.testing.samples import Counter
    >>> (source_of(Counter) or "").splitlines()[0]
    'class Counter(Workflow[Count, Counted, CountedThrice]):'
    """
    try:
        return _found(cls)
    except (OSError, TypeError, SyntaxError, SystemError):
        # What was typed into a prompt has no source; Python 3.11 says so with a SystemError now and then.
        return None


@lru_cache(maxsize=SOURCES_KEPT)
def _found(cls: type[Any]) -> str:
    return inspect.getsource(cls)
