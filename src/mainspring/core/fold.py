"""Folds events into a state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, TypeAlias

from mainspring.core.definition import Definition, definition_of
from mainspring.core.events import Event, Occurrence
from mainspring.core.messages import In, Out
from mainspring.core.workflow import State, Workflow
from mainspring.errors import InvalidStateError, LeftError, shown

Folded: TypeAlias = Event[In, Out] | Occurrence[Event[In, Out]]


def fold(workflow: Workflow[In, State, Out], state: State, events: Iterable[Folded[In, Out]]) -> State:
    """Return the state after the events. This is all that a replay does: decide is never run again.

    They come as evolve asks for them: see `placed`.

    >>> from mainspring.core.events import Received
    >>> from mainspring.testing.samples import Count, Counter
    >>> fold(Counter(), Counter.initial_state, [Received(Count("c-1")), Received(Count("c-1"))])
    Counted(times=2)
    """
    return evolved(workflow, definition_of(type(workflow)).states, state, events)


def evolved(
    workflow: Workflow[In, State, Out], states: dict[type[Any], str], state: State, events: Iterable[Folded[In, Out]]
) -> State:
    """Return the state after the events, for who knows the workflow's states."""
    evolve = workflow.evolve
    for event in events:
        if not event.folded:
            continue
        try:
            after = evolve(state, event)  # pyright: ignore[reportArgumentType]  an occurrence where it asks for that
        except Exception as error:
            error.add_note(f"while {type(workflow).__name__} evolved {shown(state)} by {shown(event)}")
            raise
        except KeyboardInterrupt:
            raise  # the process is being stopped; nothing is wrong with the event
        except BaseException as error:
            raise LeftError(type(workflow).__name__, "evolve", error, message=event, state=state) from error
        if after is not None and after is not state:
            if type(after) not in states:
                name = type(workflow).__name__
                raise InvalidStateError(name, after, event=event, state=state, declared=states)
            state = after
    return state


def placed(
    definition: Definition, events: Sequence[Any], after: int, time: datetime | None, cause: int | None = None
) -> Sequence[Any]:
    """Return events that were recorded at one time as evolve asks for them; the first stands behind position `after`.

    `cause` is the position of the output that the input among them answers.

    >>> from mainspring.core.events import Received
    >>> from mainspring.testing.samples import Counter
    >>> placed(definition_of(Counter), [Received("x")], 2, None)
    [Received(message='x')]
    """
    if not definition.wants_occurrences:
        return events
    if time is None:
        raise TypeError(f"{definition.name} asks when its events were recorded, and no time was given")
    return [
        Occurrence(event, time, position, cause if event.direction == "input" else None)
        for position, event in enumerate(events, after + 1)
    ]
