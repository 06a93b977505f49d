"""Deadlines of whole instances: what a workflow that has one decides, beside what its decide says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from mainspring.core.decisions import Compensate, Complete, Decisions, Fail, Schedule
from mainspring.core.definition import Definition
from mainspring.core.events import Scheduled, StreamEvent
from mainspring.core.failures import DeadlinePassed

# It does not say how long: what the class says today need not be what the instance began with. The stream shows that.
PASSED: Final = "its deadline has passed"


def at_beginning(definition: Definition, decisions: Decisions[Any, Any]) -> Decisions[Any, Any]:
    """Return what is decided before all else when an instance begins; nothing where that very step ends it.

    >>> from mainspring.core.definition import definition_of
    >>> from mainspring.testing.samples import Counter
    >>> at_beginning(definition_of(Counter), [])
    ()
    """
    if definition.deadline is None or (decisions and isinstance(decisions[-1], Complete | Fail)):
        return ()
    return (Schedule(DeadlinePassed(), after=definition.deadline),)


def is_set_by(events: Sequence[StreamEvent[Any, Any]]) -> bool:
    """Tell whether the first of the events behind the input that begins an instance sets its deadline.

    >>> from datetime import timedelta
    >>> is_set_by([Scheduled(DeadlinePassed(), after=timedelta(days=30), at=None, key="mainspring.DeadlinePassed")])
    True
    """
    return bool(events) and isinstance(events[0], Scheduled) and type(events[0].message) is DeadlinePassed


def at_end(definition: Definition) -> Decisions[Any, Any]:
    """Return what is decided when the deadline has passed and decide has no case for it.

    >>> from mainspring.core.definition import definition_of
    >>> from mainspring.testing.samples import Counter
    >>> at_end(definition_of(Counter))
    (Compensate(reason='its deadline has passed'),)
    """
    # What is done by one that keeps no history cannot be undone.
    return (Fail(PASSED) if definition.history == "state" else Compensate(PASSED),)
