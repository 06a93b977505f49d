"""Replays a recorded stream through decide as well: would the same have been decided today? Pure.

A stream folds without decide; this is for those who want to know what a change of decide means for what has happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from msgspec import Struct

from mainspring.core import deadlines
from mainspring.core.definition import definition_of
from mainspring.core.events import (
    OUTPUTS,
    Became,
    Began,
    Compensating,
    Completed,
    Failed,
    Migrated,
    Received,
    Reset,
    StreamEvent,
)
from mainspring.core.fold import fold
from mainspring.core.messages import Envelope
from mainspring.core.step import step
from mainspring.core.workflow import Workflow

Open: TypeAlias = Callable[[int], Envelope[Any]]

_DECIDED: Final = (*OUTPUTS, Became, Completed, Failed, Compensating)


class Recorded(Struct, frozen=True):
    """An event of a stream with its version.

    >>> Recorded(1, Began()).version
    1
    """

    version: int
    event: StreamEvent[Any, Any]


class Redecided(Struct, frozen=True):
    """One input of a stream, decided once more: what was recorded for it, and what would be today.

    `before` is the state in which it was decided, `after` the one behind it, as today's evolve folds what was recorded.
    With an `error`, decide or a check of it failed. `checked` is False where the input was decided under another
    version of the workflow, before a migration.

    >>> Redecided(2, "go", before=0, after=1, recorded=(), decided=()).changed
    False
    """

    version: int
    message: Any
    before: Any
    after: Any
    recorded: Sequence[StreamEvent[Any, Any]]
    decided: Sequence[StreamEvent[Any, Any]]
    error: Exception | None = None
    checked: bool = True

    @property
    def changed(self) -> bool:
        """Whether something else would be decided today."""
        return self.checked and (self.error is not None or list(self.recorded) != list(self.decided))


def redecided(
    workflow: Workflow[Any, Any, Any],
    stream: Iterable[Recorded],
    envelope: Open,
    as_recorded: Callable[[StreamEvent[Any, Any]], StreamEvent[Any, Any]] = lambda event: event,
) -> Iterator[Redecided]:
    """Yield each input of a whole stream, decided once more in the state that was recorded before it.

    `envelope` gives the envelope of the input at a version; `as_recorded` an event as it comes back from a store.

    >>> from mainspring.core.events import InitiatedBy
    >>> from mainspring.testing.envelopes import envelope
    >>> from mainspring.testing.samples import Count, Counter
    >>> stream = [Recorded(1, Began()), Recorded(2, InitiatedBy(Count("c-1")))]
    >>> [(step.after, step.changed) for step in redecided(Counter(), stream, lambda _: envelope(Count("c-1")))]
    [(Counted(times=1), False)]
    """
    recorded = list(stream)
    migrated = max((r.version for r in recorded if isinstance(r.event, Migrated)), default=0)
    states: dict[int, Any] = {}
    state: Any = workflow.initial_state
    place = 0
    while place < len(recorded):
        version, event = recorded[place].version, recorded[place].event
        length = _length(recorded, place)
        before = _before(workflow, event, state, states)
        events = [r.event for r in recorded[place : place + length]]
        after = fold(workflow, before, events)  # pyright: ignore[reportArgumentType]  what is no Event is not folded
        if isinstance(event, Received):
            begins = place > 0 and isinstance(recorded[place - 1].event, Began)
            # As in the step itself: what begins an instance is decided before its Began is folded.
            decided_in = workflow.initial_state if begins else before
            yield _step(
                workflow,
                recorded[place : place + length],
                envelope(version),
                (decided_in, after),
                begins,
                as_recorded,
                checked=version > migrated,
            )
        state = after
        place += length
        states[recorded[place - 1].version] = state


def _length(recorded: Sequence[Recorded], place: int) -> int:
    """Return how many events belong together: an input and what was decided for it, or one event alone."""
    if not isinstance(recorded[place].event, Received):
        return 1
    end = place + 1
    while end < len(recorded) and belongs(recorded[end].event, behind=recorded[end - 1].event):
        end += 1
    return end - place


def belongs(event: StreamEvent[Any, Any], *, behind: StreamEvent[Any, Any]) -> bool:
    """Tell whether an event was decided for the same input as the one `behind` which it stands, or for that input.

    >>> from mainspring.core.events import InitiatedBy, Sent
    >>> belongs(Sent("charge"), behind=InitiatedBy("placed")), belongs(InitiatedBy("placed"), behind=Began())
    (True, False)
    """
    # What follows a Compensating is undone by the engine. One that was begun from outside was nobody's decision.
    if isinstance(behind, Compensating) or (isinstance(event, Compensating) and event.cancelled):
        return False
    return isinstance(event, _DECIDED)


def _before(workflow: Workflow[Any, Any, Any], event: StreamEvent[Any, Any], state: Any, states: dict[int, Any]) -> Any:
    """Return the state before an event: the last one, unless history goes on from elsewhere."""
    match event:
        case Began():
            return workflow.initial_state
        case Reset(version):
            return states.get(version, workflow.initial_state)
        case _:
            return state


def _step(
    workflow: Workflow[Any, Any, Any],
    group: Sequence[Recorded],
    envelope: Envelope[Any],
    states: tuple[Any, Any],
    begins: bool,
    as_recorded: Callable[[StreamEvent[Any, Any]], StreamEvent[Any, Any]],
    *,
    checked: bool,
) -> Redecided:
    before, after = states
    was: Sequence[StreamEvent[Any, Any]] = [r.event for r in group[1:]]
    decided: Sequence[StreamEvent[Any, Any]] = []
    error: Exception | None = None
    if checked:
        try:
            events = step(workflow, before, group[0].version - 1, envelope, begins).events
            decided = [as_recorded(event) for event in events[2 if begins else 1 :]]
            if begins:
                was, decided = deadlines.compared(definition_of(type(workflow)), was, decided)
        except Exception as failed:  # noqa: BLE001  whatever it is, it is the answer
            error = failed
    return Redecided(group[0].version, envelope.message, before, after, was, decided, error, checked)
