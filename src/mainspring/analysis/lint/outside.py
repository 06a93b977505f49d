"""Rules about what comes from outside: MS104 answer-from-outside."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from mainspring.analysis.lint.findings import Finding, finding
from mainspring.analysis.model import Machine, Place
from mainspring.core.definition import definition_of
from mainspring.core.messages import type_of
from mainspring.core.workflow import Workflow
from mainspring.purity.asking import answers_in

_UNREAD: Final = "Name what it takes from outside in from_outside: until then only what begins an instance is taken."


def check_outside(cls: type[Workflow[Any, Any, Any]], machine: Machine, decide: Place) -> Iterator[Finding]:
    """Yield which answers to tasks may come past the task."""
    allowed, answers = definition_of(cls).from_outside, answers_in(cls)
    if answers is None and allowed is None:
        what = f"which inputs of {machine.workflow} answer its tasks"
        yield finding("MS901", machine.workflow, decide, what, fix=_UNREAD)
    for name in sorted(type_of(each).name for each in (answers or frozenset()) & (allowed or frozenset())):
        what = f"{name} answers a task of {machine.workflow}, and from_outside lets it come past the task"
        yield finding("MS104", machine.workflow, machine.place or decide, what, name)
