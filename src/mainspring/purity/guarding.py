"""Workflows that are only asked: copies whose decide and evolve can do nothing but decide and evolve."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, TypeVar

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
