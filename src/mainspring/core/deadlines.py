"""Deadlines of whole instances: what a workflow that has one decides, beside what its decide says."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from mainspring.core.decisions import Compensate, Complete, Decisions, Fail, Schedule
from mainspring.core.definition import Definition
from mainspring.core.events import Scheduled, StreamEvent
from mainspring.core.failures import DeadlinePassed

# It does not say how long: what the class says today need not be what the instance began with. The stream shows that.
PASSED: Final = "its deadline has passed"


def at_beginning(deadline: timedelta, decisions: Decisions[Any, Any]) -> Decisions[Any, Any]:
    """Return what is recorded when an instance begins: its deadline before all else, none where that very step ends it.

    >>> at_beginning(timedelta(days=30), [Complete()])
    [Complete(result=None)]
    """
    if decisions and isinstance(decisions[-1], Complete | Fail):
        return decisions
    return (Schedule(DeadlinePassed(), after=deadline), *decisions)


def is_set_by(definition: Definition, events: Sequence[StreamEvent[Any, Any]]) -> bool:
    """Return True if the first of the events behind the input that begins an instance is the deadline of its class.

    >>> from datetime import timedelta
    >>> from mainspring.core.definition import definition_of
    >>> from mainspring.testing.samples import Counter
    >>> own = Scheduled(DeadlinePassed(), after=timedelta(days=30), at=None, key="mainspring.DeadlinePassed")
    >>> is_set_by(definition_of(Counter), [own])
    False
    """
    return definition.deadline is not None and _leading(events) > 0


def compared(
    definition: Definition, recorded: Sequence[StreamEvent[Any, Any]], decided: Sequence[StreamEvent[Any, Any]]
) -> tuple[Sequence[StreamEvent[Any, Any]], Sequence[StreamEvent[Any, Any]]]:
    """Return what was recorded and what is decided now behind the input that begins an instance, without its deadline.

    A deadline that is added, changed or taken away holds for instances that begin from then on: those that began with
    another one, or with none, keep theirs. What decide itself sets is compared.

    >>> from datetime import timedelta
    >>> from mainspring.core.definition import definition_of
    >>> from mainspring.testing.samples import Counter
    >>> set = Scheduled(DeadlinePassed(), after=timedelta(days=30), at=None, key="mainspring.DeadlinePassed")
    >>> compared(definition_of(Counter), [set], [])
    ([], [])
    """
    if is_set_by(definition, decided):
        decided = decided[1:]
    # The stream does not record whether the class or decide set it then.
    return recorded[1:] if _leading(recorded) > _leading(decided) else recorded, decided


def _leading(events: Sequence[StreamEvent[Any, Any]]) -> int:
    """Return how many of the events set a deadline before all else."""
    others = (
        place
        for place, event in enumerate(events)
        if not (isinstance(event, Scheduled) and type(event.message) is DeadlinePassed)
    )
    return next(others, len(events))


def at_end(definition: Definition) -> Decisions[Any, Any]:
    """Return what is decided when the deadline has passed and decide has no case for it.

    >>> from mainspring.core.definition import definition_of
    >>> from mainspring.testing.samples import Counter
    >>> at_end(definition_of(Counter))
    (Compensate(reason='its deadline has passed'),)
    """
    # What an instance without a history did cannot be compensated.
    return (Fail(PASSED) if definition.history == "state" else Compensate(PASSED),)
