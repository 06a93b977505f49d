"""A workflow whose route, decide and evolve are called through something: a guard, a check, a recorder."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypeVar

from mainspring.core.workflow import Workflow
from mainspring.purity import purity_guard

W = TypeVar("W", bound=Workflow[Any, Any, Any])

Method: TypeAlias = Callable[..., Any]
Around: TypeAlias = Callable[[str, Method], Method]

# The core asks for decisions through decide_on, whatever the authoring style.
METHODS: Final = {"route": "route", "decide": "decide_on", "evolve": "evolve"}


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
