"""A stored stream, decided once more: would the same have been decided today?

A stream folds without decide; this is for those who want to know what a change of decide means for what has happened.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from mainspring.core import deadlines
from mainspring.core.events import Replied, StreamEvent
from mainspring.core.messages import Envelope
from mainspring.core.step import step
from mainspring.core.workflow import Workflow
from mainspring.engine.recording.recorder import Recorder
from mainspring.engine.recording.walk import Journey, Moment, beside_input, turns_of
from mainspring.engine.registry import WorkflowEntry
from mainspring.port.records import EventRow, Ref
from mainspring.purity.guarding import guarded_workflow


class Redecided(Struct, frozen=True):
    """One input of a stream, decided once more: what was recorded for it, and what would be today.

    `before` is the state in which it was decided, `after` the one behind it, as today's evolve folds what was recorded.
    With an `error`, decide or a check of it failed. `checked` is False where the input was decided under another
    version of the workflow, before a migration.
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


def redecided_rows(entry: WorkflowEntry, ref: Ref, rows: Sequence[EventRow]) -> Iterator[Redecided]:
    """Yield each input of a whole stream, decided once more by a version of its workflow, which can do nothing else.

    Raises what kept an event from being read, or behind the inputs before it, from being folded.
    """
    journey = Journey(entry, ref, turns_of(rows), guarded_workflow(entry.workflow))
    moments = list(journey.moments(rows))
    if journey.error is not None and journey.unread:
        raise journey.error
    for moment in moments:
        if moment.envelope is not None:
            yield _redecided(entry, journey.workflow, moment, moment.envelope)
    if journey.error is not None:
        raise journey.error


def _redecided(
    entry: WorkflowEntry, workflow: Workflow[Any, Any, Any], moment: Moment, envelope: Envelope[Any]
) -> Redecided:
    was: Sequence[StreamEvent[Any, Any]] = beside_input([happened.entry.event for happened in moment.happened])
    now: Sequence[StreamEvent[Any, Any]] = []
    error: Exception | None = None
    if not moment.migrated:
        try:
            now = decided(entry, workflow, moment, envelope)
            if moment.begins:
                was, now = deadlines.compared(entry.definition, was, now)
        except Exception as failed:  # noqa: BLE001  whatever it is, it is the answer
            error = failed
    checked = not moment.migrated
    return Redecided(moment.position, envelope.message, moment.before, moment.after, was, now, error, checked)


def decided(
    entry: WorkflowEntry, workflow: Workflow[Any, Any, Any], moment: Moment, envelope: Envelope[Any]
) -> list[StreamEvent[Any, Any]]:
    """Return what is decided for the input of a moment, as it would come back from a store."""
    recorder = entry.recorder
    first = moment.happened[0].entry
    after = moment.position - 1 - moment.begins
    taken = step(workflow, moment.before, after, envelope, moment.begins, first.time, first.cause)
    return [recorder.event(row_of(recorder, event)) for event in beside_input(taken.events, begins=moment.begins)]


def row_of(recorder: Recorder, event: StreamEvent[Any, Any]) -> EventRow:
    """Return the row of a decision, for what it says: its version and its time are 0."""
    return recorder.reply_row(event, 0, 0, None, 0) if isinstance(event, Replied) else recorder.row(event, 0, 0)
