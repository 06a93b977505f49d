"""Workflows that are only asked: copies whose decide and evolve can do nothing but decide and evolve.

The purity guard makes a call some fifty times slower. So where many streams are walked it watches the first steps in
which a message meets a state, and all of them once one was caught: Watch.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final, TypeVar

from mainspring.core.workflow import Workflow
from mainspring.purity.guard import purity_guard

W = TypeVar("W", bound=Workflow[Any, Any, Any])


def with_method(workflow: W, name: str, method: Callable[..., Any]) -> W:
    """Return a copy of a workflow with another method; the author's own object is left alone.

    >>> from mainspring.testing.samples import Count, Counter
    >>> with_method(Counter(), "route", lambda message: "elsewhere").route(Count("c-1"))
    'elsewhere'
    """
    twin = copy.copy(workflow)
    vars(twin)[name] = method
    return twin


def guarded(where: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that runs under the purity guard.

    >>> guarded("Orders.decide", len)("abc")
    3
    """

    def call(*arguments: Any) -> Any:
        with purity_guard(where):
            return method(*arguments)

    return call


def guarded_workflow(workflow: W) -> W:
    """Return a copy of a workflow whose decide and evolve run under the purity guard: an impure call raises.

    >>> from mainspring.testing.samples import Count, Counted, Counter
    >>> guarded_workflow(Counter()).decide_on(Count("c-1"), Counted(0))
    []
    """
    name = type(workflow).__name__
    decides = with_method(workflow, "decide_on", guarded(f"{name}.decide", workflow.decide_on))
    return with_method(decides, "evolve", guarded(f"{name}.evolve", workflow.evolve))


STEPS_WATCHED: Final = 3
"""Of each message in each state."""
PAIRS: Final = 10_000


class Watch:
    """Says which steps are to be guarded, for as long as one process checks.

    >>> watch = Watch()
    >>> [watch.guard("Orders", int, str) is None for _ in range(STEPS_WATCHED + 1)]
    [False, False, False, True]
    """

    def __init__(self) -> None:
        self._left: dict[tuple[str, type[Any], type[Any]], int] = {}

    def guard(self, workflow: str, message: type[Any], state: type[Any]) -> AbstractContextManager[None] | None:
        """Return what the next step is to run under, if it is one of those that are watched."""
        pair = (workflow, message, state)
        left = self._left.get(pair, STEPS_WATCHED)
        if not left:
            return None
        if pair in self._left or len(self._left) < PAIRS:
            self._left[pair] = left - 1
        return purity_guard(workflow)

    def caught(self, workflow: str, message: type[Any], state: type[Any]) -> None:
        """Guard such steps from now on, every one."""
        self._left[workflow, message, state] = -1
