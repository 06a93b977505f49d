"""Makes views of what is stored: no row of the port leaves the app as it is.

How a message is read is the caller's choice: Python gets it decoded, the command line and HTTP as its stored JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeAlias

from msgspec import Raw, json

from mainspring.app.undelivered import Undelivered, undelivered_in
from mainspring.codec import Codec
from mainspring.codec.strict import scan
from mainspring.core import events
from mainspring.engine.recording.event_details import read_detail
from mainspring.engine.recording.event_rows import message_id_of
from mainspring.engine.recording.stored_values import moment, nearest_moment
from mainspring.errors import DecodeError, told
from mainspring.errors.reading import UNREADABLE
from mainspring.port import attempts
from mainspring.port.ids import plain
from mainspring.port.records import EDGE, EventRow, InputRow, InstanceRow, OutputClaim, Ref
from mainspring.port.records import DeadLetter as LetterRow
from mainspring.port.records import Stats as Depths
from mainspring.views import Attempt, DeadLetter, EventInfo, InstanceInfo, Stats, WaitingInput, WaitingOutput

Read: TypeAlias = Callable[[str, int, bytes], tuple[Any, str | None]]
"""Returns the message of a type, a version and a body, or why it cannot be read."""


def as_json(_type: str, _version: int, body: bytes) -> tuple[Raw, None]:
    """Return a message as it is stored."""
    return Raw(body), None


def decoded(codec: Codec) -> Read:
    """Return what decodes messages."""

    def read(type: str, version: int, body: bytes) -> tuple[Any, str | None]:
        try:
            return codec.decode(type, version, body), None
        except Exception as error:  # noqa: BLE001  an author's type may raise anything: the rest is shown all the same
            return None, told(error)

    return read


def instance_view(row: InstanceRow) -> InstanceInfo:
    """Return an instance."""
    return InstanceInfo(
        instance=f"{row.workflow}/{row.id}",
        workflow=row.workflow,
        id=row.id,
        status=row.status,
        state=row.state,
        workflow_version=row.definition_version,
        position=row.version,
        error=row.error,
        began=moment(row.created_us),
        updated=moment(row.updated_us),
        key=row.key,
        purged=_moment(row.purged_us),
    )


def input_view(row: InputRow, read: Read = as_json) -> WaitingInput:
    """Return a waiting input."""
    message, unreadable = read(row.type, row.type_version, row.body)
    return WaitingInput(
        message_id=plain(row.message_id),
        kind=row.kind,
        type=row.type,
        message=message,
        time=moment(row.time_us),
        actor=row.actor,
        unreadable=unreadable,
    )


def output_view(claim: OutputClaim, read: Read = as_json) -> WaitingOutput:
    """Return an output that is not carried out yet."""
    message, unreadable = read(claim.type, claim.type_version, claim.body)
    return WaitingOutput(
        instance=f"{claim.workflow}/{claim.instance}",
        position=claim.output.version,
        kind=claim.kind,
        key=_key(claim),
        type=claim.type,
        message=message,
        due=moment(claim.due_us),
        attempts=claim.attempts,
        error=claim.error,
        unreadable=unreadable,
    )


def _key(claim: OutputClaim) -> str | None:
    """Return the key of a timer; None too where a seal hides it."""
    try:
        return read_detail(claim.detail).key
    except UNREADABLE:
        return None


def letter_view(letter: LetterRow, codec: Codec | None = None) -> DeadLetter:
    """Return a dead letter: its message decoded by a codec, or else its JSON. One of an edge has its headers too."""
    message, headers, unreadable = None, None, None
    try:
        if letter.workflow != EDGE:
            message = Raw(letter.body) if codec is None else codec.decode(letter.type, letter.type_version, letter.body)
        else:
            came = undelivered_in(letter)
            headers = came.headers
            outside = (letter.type, letter.type_version, came.bytes)
            message = _as_json(letter.type, came) if codec is None else codec.decode_outside(*outside)
    except Exception as error:  # noqa: BLE001  as above
        unreadable = told(error)
    return DeadLetter(
        id=letter.id,
        instance=f"{letter.workflow}/{letter.instance}",
        message_id=plain(letter.message_id),
        kind=letter.kind,
        type=letter.type,
        message=message,
        time=moment(letter.time_us),
        reason=letter.reason,
        error=letter.error,
        attempts=letter.attempts,
        actor=letter.actor,
        headers=headers,
        unreadable=unreadable,
    )


def _as_json(type: str, came: Undelivered) -> Raw:
    """Return what came through an edge: as it is if that is JSON, else as a text, else as base64."""
    try:
        scan(type, came.bytes)
    except DecodeError:
        return Raw(json.encode(came.text if came.text is not None else {"base64": came.base64}))
    return Raw(came.bytes)


def event_view(ref: Ref, row: EventRow) -> EventInfo:
    """Return an event from its row: readable even where the app has lost the message's type."""
    detail = read_detail(row.detail)
    return EventInfo(
        position=row.version,
        time=moment(row.time_us),
        event=row.event,
        direction=direction_of(row),
        kind=kind_of(row),
        type=detail.unkept or row.type,
        message=None if row.body is None or row.type is None else Raw(row.body),
        message_id=message_id_of(ref, row),
        actor=row.actor,
        state=row.state,
        attempt=row.attempt,
        key=detail.key,
        after_seconds=None if detail.after_us is None else detail.after_us / 1e6,
        at=detail.at,
        to=detail.to,
        reason=detail.reason,
    )


def direction_of(row: EventRow) -> events.Direction:
    """Return whether an event is an input, an output or neither."""
    return getattr(events, row.event).direction


def kind_of(row: EventRow) -> str | None:
    """Return the kind of an event's message, if it has one."""
    kind = row.kind or getattr(events, row.event).kind
    return None if kind is None else str(kind)


def attempt_view(made: attempts.Attempt) -> Attempt:
    """Return a failed attempt."""
    return Attempt(made.version, made.number, made.worker, _moment(made.began_us), moment(made.ended_us), made.error)


def stats_view(depths: Depths) -> Stats:
    """Return how much there is of everything."""
    return Stats(
        depths.instances,
        depths.inbox,
        depths.outbox,
        depths.timers,
        depths.dead_letters,
        depths.workers,
        None if depths.oldest_due_us is None else nearest_moment(depths.oldest_due_us),
    )


def _moment(time_us: int | None) -> datetime | None:
    return None if time_us is None else moment(time_us)
