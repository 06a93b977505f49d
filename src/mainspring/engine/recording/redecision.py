"""A stored stream, decided once more: rows to events, and the envelopes that decide may have asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import json

from mainspring.core.events import Replied, StreamEvent
from mainspring.core.messages import Envelope, InstanceId, Kind
from mainspring.core.replay import Recorded, Redecided, redecided
from mainspring.engine.inputs.answered_command import Commands, command_in
from mainspring.engine.inputs.pending import instance_id, moment, read_context, read_kind
from mainspring.engine.recording.event_rows import message_id_of
from mainspring.engine.recording.recorder import Recorder
from mainspring.engine.registry import WorkflowEntry
from mainspring.port.records import EventRow, Ref
from mainspring.purity.guarding import guarded_workflow

_NO_CONTEXT: Final = b'{"correlation_id":""}'


def redecided_rows(entry: WorkflowEntry, ref: Ref, rows: Sequence[EventRow]) -> Iterator[Redecided]:
    """Yield each input of a whole stream, decided once more by a version of its workflow, which can do nothing else."""
    recorder = entry.recorder
    by_version = {row.version: row for row in rows}
    asked = Commands(wants=entry.definition.wants_envelope)
    for row in rows:
        asked.note(row)
    began = next((row.context for row in rows if row.context is not None), None)

    def as_recorded(event: StreamEvent[Any, Any]) -> StreamEvent[Any, Any]:
        return recorder.event(row_of(recorder, event))

    def envelope(version: int) -> Envelope[Any]:
        row = by_version[version]
        message = recorder.message(row.type or "", row.type_version, row.body or b"")
        return envelope_of(ref, row, message, began, asked.by(ref, row))

    stream = (Recorded(row.version, recorder.event(row)) for row in rows)
    return redecided(guarded_workflow(entry.workflow), stream, envelope, as_recorded)


def row_of(recorder: Recorder, event: StreamEvent[Any, Any]) -> EventRow:
    """Return the row of a decision, for what it says: its version and its time are 0."""
    return recorder.reply_row(event, 0, 0, None, 0) if isinstance(event, Replied) else recorder.row(event, 0, 0)


def envelope_of(ref: Ref, row: EventRow, message: Any, began: bytes | None, asked: EventRow | None) -> Envelope[Any]:
    """Return the envelope of an input as far as the stream tells. An answer has the context of what it answers.

    `began` is the context of the input that began the instance, and `asked` the event that the input answers.
    """
    context = read_context(row.context or began or _NO_CONTEXT)
    own = row.context is not None
    sender: InstanceId | None = instance_id(context.sender) if own and context.sender else None
    return Envelope(
        message,
        message_id_of(ref, row) or "",
        moment(row.time_us),
        context.correlation_id,
        Kind.COMMAND if row.kind is None else read_kind(row.kind),
        context.causation_id if own else f"{ref}/{row.cause}",
        sender,
        context.reply_to if own else None,
        row.actor,
        context.trace,
        context.task if own else None,
        json.decode(command_in(asked)) if row.kind in (Kind.RESULT, Kind.REPLY) else None,
    )
