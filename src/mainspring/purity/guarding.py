"""Guarded workflows: copies whose decide and evolve have no access to clock, randomness or I/O.

The purity guard makes a call some fifty times slower. So where many streams are walked it watches the first steps in
which a message meets a state, and all of them once one was caught: Watch.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final, TypeAlias, TypeVar

from mainspring.core.workflow import Workflow
from mainspring.purity.guard import purity_guard

W = TypeVar("W", bound=Workflow[Any, Any, Any])

Method: TypeAlias = Callable[..., Any]
Around: TypeAlias = Callable[[str, Method], Method]

# The core asks for decisions through decide_on, whatever the authoring style.
METHODS: Final = {"route": "route", "decide": "decide_on", "evolve": "evolve"}


def with_method(workflow: W, name: str, method: Method) -> W:
    """Return a copy of a workflow with another method; the author's own object is left alone.

    >>> from mainspring.testing.samples import Count, Counter
    >>> with_method(Counter(), "route", lambda message: "elsewhere").route(Count("c-1"))
    'elsewhere'
    """
    twin = copy.copy(workflow)
    vars(twin)[name] = method
    return twin


def watched(workflow: W, around: Around) -> W:
    """Return a copy of a workflow in which `around(name, method)` stands in for route, decide and evolve.

    The copy is of the same class, so the core sees nothing unusual; the author's own object is left alone.

    >>> from mainspring.testing.samples import Count, Counter
    >>> loud = watched(Counter(), lambda name, method: lambda *arguments: (name, method(*arguments)))
    >>> loud.route(Count("c-1"))
    ('route', 'c-1')
    """
    twin = copy.copy(workflow)
    for name, called in METHODS.items():
        vars(twin)[called] = around(name, getattr(twin, called))
    return twin


def guarded(where: str, method: Method) -> Method:
    """Return a method that runs under the purity guard.

    >>> guarded("Orders.decide", len)("abc")
    3
    """

    def call(*arguments: Any) -> Any:
        __tracebackhide__ = True
        with purity_guard(where):
            return method(*arguments)

    return call


def guarded_workflow(workflow: W) -> W:
    """Return a copy of a workflow whose route, decide and evolve run under the purity guard: an impure call raises.

    >>> from mainspring.testing.samples import Count, Counted, Counter
    >>> guarded_workflow(Counter()).decide_on(Count("c-1"), Counted(0))
    []
    """
    cls = type(workflow).__name__
    return watched(workflow, lambda name, method: guarded(f"{cls}.{name}", method))


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
        """Return the guard for the next step, None if that step is not watched."""
        pair = (workflow, message, state)
        left = self._left.get(pair, STEPS_WATCHED)
        if not left:
            return None
        if pair in self._left or len(self._left) < PAIRS:
            self._left[pair] = left - 1
        return purity_guard(workflow)

    def caught(self, workflow: str, message: type[Any], state: type[Any]) -> None:
        """Guard every such step from now on."""
        self._left[workflow, message, state] = -1
