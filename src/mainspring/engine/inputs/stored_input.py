"""Stored inputs: a row of the inbox, or a dead letter, as the input that it was."""

from __future__ import annotations

from typing import Any

from mainspring.codec import Codec
from mainspring.core.messages import Kind
from mainspring.engine.inputs.pending import Answer, Pending
from mainspring.engine.recording.stored_values import read_context, read_kind
from mainspring.engine.registry import Registry
from mainspring.errors import CodecError, DamagedRecordError, WiringError
from mainspring.port.ids import MARK
from mainspring.port.records import Context, DeadLetter, InputRow, Ref


def from_inbox(codec: Codec, row: InputRow) -> Pending:
    """Return a row of the inbox as an input."""
    message, unreadable = read_message(codec, row)
    mark, id = _split(row.message_id)
    kind, context = Kind.COMMAND, Context(id)
    try:
        kind, context = read_kind(row.kind), read_context(row.context)
    except DamagedRecordError as error:
        message, unreadable = None, error
    return Pending(
        ref=Ref(row.workflow, row.instance),
        message=message,
        type=row.type,
        type_version=row.type_version,
        body=row.body,
        id=id,
        kind=kind,
        context=context,
        time_us=row.time_us,
        mark=mark,
        actor=row.actor,
        cause=row.cause,
        position=row.position,
        timer_key=row.timer_key,
        unreadable=unreadable,
    )


def from_dead_letter(registry: Registry, letter: DeadLetter) -> Pending:
    """Return a dead letter as the input that it was."""
    if letter.workflow not in registry.workflows:
        raise WiringError(
            f"Dead letter {letter.id} was sent to {letter.workflow}, which is not part of this app",
            f"Use the app that has it; this one knows {', '.join(registry.workflows) or 'none'}.",
        )
    mark, id = _split(letter.message_id)
    return Pending(
        ref=Ref(letter.workflow, letter.instance),
        message=registry.codec.decode(letter.type, letter.type_version, letter.body),
        type=letter.type,
        type_version=letter.type_version,
        body=letter.body,
        id=id,
        kind=read_kind(letter.kind),
        context=read_context(letter.context),
        time_us=letter.time_us,
        mark=mark,
        actor=letter.actor,
        answer=Answer(),
        discards=(letter.id,),
    )


def read_message(codec: Codec, row: InputRow) -> tuple[Any, Exception | None]:
    """Return a row's message, or why it cannot be read."""
    try:
        return codec.decode(row.type, row.type_version, row.body), None
    except CodecError as error:
        return None, error


def _split(stored: str) -> tuple[str, str]:
    """Return the mark of a stored id, if it has one, and the id."""
    return (MARK, stored[1:]) if stored[:1] == MARK else ("", stored)
