"""How many objects there are, by type, that can be reached from some others: what grows with the work is a leak."""

from __future__ import annotations

import gc
from collections import Counter
from types import ModuleType
from typing import Any


def census(*roots: Any) -> Counter[str]:
    """Return how many objects can be reached, by type."""
    gc.collect()
    found: Counter[str] = Counter()
    # Kept, not only their ids: an object that is freed on the way would leave its id to another one.
    seen: dict[int, Any] = {}
    ahead = list(roots)
    while ahead:
        one = ahead.pop()
        if id(one) in seen:
            continue
        seen[id(one)] = one
        kind = type(one)
        found[f"{kind.__module__}.{kind.__qualname__}"] += 1
        # What is in a module of ours is reached by its functions. In `_asyncio` of 3.12 this would find objects that
        # were freed, and no collection would end afterwards (CPython's gh-122695).
        if not isinstance(one, ModuleType):
            ahead.extend(gc.get_referents(one))
    return found


def kinds() -> Counter[str]:
    """Return how many objects there are at all, by type, of those that the collector knows."""
    gc.collect()
    return Counter(f"{type(one).__module__}.{type(one).__qualname__}" for one in gc.get_objects())


def grown(before: Counter[str], after: Counter[str], least: int) -> dict[str, int]:
    """Return the types of which there are so many more.

    >>> grown(Counter(a=1, b=2), Counter(a=9, b=3), 5)
    {'a': 8}
    """
    return {name: more for name, count in sorted(after.items()) if (more := count - before[name]) >= least}
