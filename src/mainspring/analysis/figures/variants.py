"""Variants: the paths that instances took, by how often each was taken, with a bound on how many are remembered."""

from __future__ import annotations

from collections import Counter
from typing import Final, TypeAlias

from msgspec import Struct

PATHS_KEPT: Final = 10_000
PATH_STEPS: Final = 100

Step: TypeAlias = tuple[str, str]
"""The type of an input, and the state that it led to."""
Path: TypeAlias = tuple[Step, ...]

CUT: Final[Step] = ("…", "…")
"""Stands at the end of a path of more than PATH_STEPS steps: those that begin alike count as one."""


class Variant(Struct, frozen=True):
    """A path, how many took it, and their share. Steps that follow themselves are told once.

    >>> Variant((("PlaceOrder", "Waiting"),), 3, 0.75).count
    3
    """

    steps: Path
    count: int
    share: float


class VariantsFound(Struct, frozen=True):
    """The most frequent paths, and the rest: how many took another one, and how many other paths that were.

    Where more than PATHS_KEPT were seen, rare ones were forgotten on the way: then `distinct` is at least so many, and
    a count may be too low by `uncertain` at most.

    >>> VariantsFound((), 0, 0, 0).uncertain
    0
    """

    top: tuple[Variant, ...]
    distinct: int
    others: int
    uncertain: int


class Variants:
    """Counts paths.

    >>> variants = Variants()
    >>> variants.add([("PlaceOrder", "Waiting"), ("CardCharged", "Paid")])
    >>> variants.most(5).top[0].share
    1.0
    """

    __slots__ = ("_distinct", "_paths", "_seen", "_steps", "_uncertain")

    def __init__(self) -> None:
        self._paths: Counter[Path] = Counter()
        # Steps are few and paths are many: each path points to steps that others have, too.
        self._steps: dict[Step, Step] = {}
        self._seen = self._distinct = self._uncertain = 0

    def add(self, path: list[Step]) -> None:
        """Count a path once more."""
        self._seen += 1
        self._count(tuple(path), 1)

    def merge(self, other: Variants) -> None:
        """Take the counts of another."""
        self._seen += other._seen
        self._distinct = max(self._distinct, other._distinct)
        self._uncertain += other._uncertain
        for path, count in other._paths.items():
            self._count(path, count)

    def most(self, limit: int) -> VariantsFound:
        """Return the most frequent ones; of those as frequent, the first in the order of the alphabet."""
        ranked = sorted(self._paths.items(), key=lambda item: (-item[1], item[0]))[:limit]
        top = tuple(Variant(path, count, count / self._seen) for path, count in ranked)
        shown = sum(variant.count for variant in top)
        distinct = max(self._distinct, len(self._paths))
        return VariantsFound(top, distinct, self._seen - shown, self._uncertain)

    def _count(self, path: Path, times: int) -> None:
        if path not in self._paths:
            path = tuple(self._steps.setdefault(step, step) for step in path)
            if len(self._paths) >= 2 * PATHS_KEPT:
                self._forget()
        self._paths[path] += times

    def _forget(self) -> None:
        """Forget the rarer half. A path that comes again begins at one: it may lack what was forgotten of it."""
        ranked = self._paths.most_common()
        self._distinct = max(self._distinct, len(ranked) + 1)
        self._paths = Counter(dict(ranked[:PATHS_KEPT]))
        # A path that is forgotten again and again loses at most this each time.
        self._uncertain += ranked[PATHS_KEPT][1]
