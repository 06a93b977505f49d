"""Finds the shortest order of messages that breaks a property, with hypothesis. Imported only when it is needed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity
from hypothesis import strategies as st
from hypothesis.errors import Flaky
from hypothesis.strategies import DataObject, SearchStrategy

from mainspring.testing.orders import Answer, Draw, Failure, Fire, Move, Repeat, Say

ORDER_PARTS: Final = 4

Play = Callable[[Sequence[Any], Sequence[Move], Draw], Failure | None]


class _Found(Exception):  # noqa: N818  a signal to hypothesis, not an error
    """Signals to hypothesis that an order is worth shrinking."""


def search(
    play: Play, messages: Sequence[Any], *, answers: bool, max_examples: int, max_steps: int, seed: int
) -> tuple[Failure, bool] | None:
    """Return the smallest failure found, and whether it came again when repeated. None when nothing failed."""
    found: list[Failure] = []
    strategies = [_strategy(message) for message in messages]

    @hypothesis.seed(seed)
    @_settings(max_examples)
    @hypothesis.given(
        order=st.permutations(range(len(strategies))),
        openings=st.tuples(*strategies),
        moves=_orders(_moves(strategies, answers=answers), max_steps - 1),
        data=st.data(),
    )
    def run(order: list[int], openings: tuple[Any, ...], moves: list[Move], data: DataObject) -> None:
        def draw(answer: Any) -> Any:
            return data.draw(_strategy(answer))

        failure = play([openings[place] for place in order], moves, draw)
        # One bug at a time: shrinking must not slip from one property to another.
        if failure is not None and (not found or found[0].property == failure.property):
            found[:] = [failure]
            raise _Found

    try:
        run()
    except _Found:
        return found[0], True
    except Flaky:
        if not found:
            raise
        return found[0], False
    return None


def _settings(max_examples: int) -> hypothesis.settings:
    return hypothesis.settings(
        max_examples=max_examples,
        database=None,
        deadline=None,
        derandomize=False,
        phases=(Phase.generate, Phase.shrink),
        print_blob=False,
        report_multiple_bugs=False,
        suppress_health_check=cast("list[HealthCheck]", list(HealthCheck)),
        verbosity=Verbosity.quiet,
    )


def _strategy(message: Any) -> SearchStrategy[Any]:
    return cast("SearchStrategy[Any]", message) if isinstance(message, SearchStrategy) else st.just(message)


def _orders(move: SearchStrategy[Move], max_size: int) -> SearchStrategy[list[Move]]:
    """Return long orders that still shrink to nothing: hypothesis makes single lists too short for late surprises."""
    sizes = [max_size * (part + 1) // ORDER_PARTS - max_size * part // ORDER_PARTS for part in range(ORDER_PARTS)]
    parts = st.tuples(*(st.lists(move, max_size=size) for size in sizes))
    return parts.map(lambda lists: [*itertools.chain.from_iterable(lists)])


def _moves(strategies: Sequence[SearchStrategy[Any]], *, answers: bool) -> SearchStrategy[Move]:
    which = st.integers(0, 20)
    say = st.one_of(*strategies).map(Say)
    others = [which.map(Answer)] if answers else []
    return st.one_of(say, *others, which.map(Fire), which.map(Repeat))
