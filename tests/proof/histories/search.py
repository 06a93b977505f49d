"""Is there an order in which each operation could have happened at one moment? The search of Wing and Gong, as Lowe
made it bearable: depth first over what can have been next, and no configuration twice.

A configuration is which operations have happened, and how the model stands after them. The next one that happens is any
that need not wait for another:

- whatever has ended before an operation began has happened before it;
- a write that was acknowledged without having happened yet (`known`, but no `by`) may still be on its way when a read
  that begins later looks, but no later write overtakes it;
- an operation that nobody was told about (`needed=False`) may happen at any later moment, or never.

Two things keep it small, and lose nothing. A read that can be next and fits is next: it changes nothing, and all that
has to stand before it does. And where a model can tell that what a later read saw is out of reach, nothing is looked
for behind that (`leads`).

The search is bounded. Where it ends before it has an answer, the history is undecided: neither good nor bad.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, Protocol, TypeVar

S = TypeVar("S")

NEVER: Final = math.inf
MOST_CONFIGURATIONS: Final = 50_000
LATER_READS: Final = 3
"""So many reads that have not happened yet are asked whether they are still in reach, and the last of all."""


@dataclass(frozen=True)
class Operation:
    """What somebody did, and when it can have happened. Times are of one clock.

    It happened after it `began`, and `by` a moment at which somebody knew that it had. From `known` on it was certain
    that it would. `instead` names others by their `name`: only one of them can have changed anything.
    """

    name: str
    what: Any
    began: float
    by: float = NEVER
    known: float = NEVER
    writes: bool = True
    needed: bool = True
    instead: frozenset[str] = frozenset()


class Model(Protocol[S]):
    """What operations do, one at a time. How it stands (S) is compared and kept in sets."""

    @property
    def beginning(self) -> S: ...

    def after(self, standing: S, what: Any) -> S | None:
        """Return how it stands after an operation; None if that cannot have happened here as it was told."""
        ...

    def inside(self, standing: S) -> Iterable[S]:
        """Return how it may stand after what nobody outside did: one thing each."""
        ...

    def leads(self, standing: S, what: Any) -> bool:
        """Tell whether it may ever come to what a read saw. Whoever does not know says yes."""
        ...


@dataclass(frozen=True)
class Answer(Generic[S]):
    """What the search found, after how many configurations; and what it had placed where it got to, and what not."""

    verdict: Literal["explained", "violated", "undecided"]
    configurations: int
    placed: tuple[Operation, ...]
    left: tuple[Operation, ...]
    standing: S


def search(model: Model[S], operations: Iterable[Operation], most: int = MOST_CONFIGURATIONS) -> Answer[S]:
    """Look for an order that explains a history."""
    return _Search(model, operations).run(most)


class _Search(Generic[S]):
    def __init__(self, model: Model[S], operations: Iterable[Operation]) -> None:
        self._model = model
        self._operations = sorted(operations, key=lambda operation: operation.began)
        places = {operation.name: place for place, operation in enumerate(self._operations)}
        self._instead = [
            sum(1 << places[name] for name in operation.instead if name in places) for operation in self._operations
        ]
        self._reads = [place for place, operation in enumerate(self._operations) if not operation.writes]
        self._needed = sum(1 << place for place, operation in enumerate(self._operations) if operation.needed)

    def run(self, most: int) -> Answer[S]:
        stack: list[tuple[int, S]] = [(0, self._model.beginning)]
        seen, furthest = set(stack), stack[0]
        while stack:
            done, standing = stack.pop()
            if done.bit_count() > furthest[0].bit_count():
                furthest = done, standing
            if done & self._needed == self._needed:
                return self._answer("explained", len(seen), done, standing)
            if len(seen) > most:
                return self._answer("undecided", len(seen), *furthest)
            fresh = [step for step in self._steps(done, standing) if step not in seen]
            seen.update(fresh)
            stack.extend(reversed(fresh))
        return self._answer("violated", len(seen), *furthest)

    def _steps(self, done: int, standing: S) -> Sequence[tuple[int, S]]:
        """Return the configurations that can be next, the likeliest first."""
        by = known = NEVER
        steps: list[tuple[int, S]] = []
        for place, operation in enumerate(self._operations):
            if done >> place & 1:
                continue
            if operation.began > by:
                break  # and so does all that stands behind it
            waits = operation.writes and operation.began > known
            by = min(by, operation.by)
            if operation.writes:
                known = min(known, operation.known)
            if waits:
                continue
            after = self._model.after(standing, operation.what)
            if after is None or (done & self._instead[place] and after != standing):
                continue
            if not operation.writes:
                return [(done | 1 << place, after)]
            steps.append((done | 1 << place, after))
        steps += [(done, after) for after in self._model.inside(standing)]
        later = [self._operations[place].what for place in self._later_reads(done)]
        return [step for step in steps if all(self._model.leads(step[1], what) for what in later)]

    def _later_reads(self, done: int) -> Iterator[int]:
        left = [place for place in self._reads if not done >> place & 1]
        return iter({*left[:LATER_READS], *left[-1:]})

    def _answer(
        self, verdict: Literal["explained", "violated", "undecided"], configurations: int, done: int, standing: S
    ) -> Answer[S]:
        placed = tuple(operation for place, operation in enumerate(self._operations) if done >> place & 1)
        left = tuple(operation for place, operation in enumerate(self._operations) if not done >> place & 1)
        return Answer(verdict, configurations, placed, left, standing)
