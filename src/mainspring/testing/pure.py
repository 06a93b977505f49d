"""assert_pure: the static purity check as a test."""

from __future__ import annotations

from typing import Any

from mainspring.core.workflow import Workflow
from mainspring.purity import check_purity


def assert_pure(workflow: Workflow[Any, Any, Any] | type[Workflow[Any, Any, Any]]) -> None:
    """Fail with a list of what is impure in a workflow's route, decide and evolve, as far as reading them shows.

    >>> from mainspring.testing.samples import Counter
    >>> assert_pure(Counter)
    """
    __tracebackhide__ = True
    findings = check_purity(workflow)
    if findings:
        cls = workflow if isinstance(workflow, type) else type(workflow)
        count = "one impure place" if len(findings) == 1 else f"{len(findings)} impure places"
        raise AssertionError("\n".join([f"{cls.__name__} has {count}:", *(f"  {finding}" for finding in findings)]))
