"""Events to rows and back: the only place that knows how an event is stored."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final, Protocol

from msgspec import Raw
from msgspec.structs import replace

from mainspring.codec import BODY_LIMIT_BYTES, Codec, Encoded
from mainspring.core.events import (
    AnswerRefused,
    Asked,
    Became,
    Began,
    Cancelled,
    ChildStarted,
    Compensated,
    Compensating,
    Completed,
    Failed,
    FannedOut,
    InitiatedBy,
    Kept,
    Migrated,
    Occurrence,
    Published,
    Received,
    Replied,
    Resent,
    Reset,
    Resumed,
    Retried,
    ScheduleCancelled,
    Scheduled,
    Sent,
    Skipped,
    StreamEvent,
    Suspended,
    TaskClosed,
    Terminated,
)
from mainspring.core.messages import Kind
from mainspring.core.story import Entry
from mainspring.core.unkept import NotKept
from mainspring.engine.recording.answered_commands import answered_by
from mainspring.engine.recording.event_details import (
    Detail,
    Packed,
    detail_of_task,
    encode_detail,
    read_detail,
    task_asked,
)
from mainspring.engine.recording.event_rows import is_folded, is_unkept, message_id_of, unknown_event
from mainspring.engine.recording.fan_out_parts import Parts, restored, stored
from mainspring.engine.recording.stored_values import MICROSECOND, encode_context, moment, read_context, read_kind
from mainspring.errors import BodyTooLargeError, DamagedRecordError, ErasedError
from mainspring.errors.reading import UNREADABLE
from mainspring.port.digests import digested
from mainspring.port.records import Context, EventRow, Ref, Snapshot
from mainspring.sealing.seals import ERASED

PARTS_BYTES: Final = BODY_LIMIT_BYTES // 2
"""Of the messages of one fan-out together: in its event they are text inside a text, which takes more."""

_CARRIERS: Final[dict[str, Any]] = {
    cls.__name__: cls for cls in (InitiatedBy, Received, Sent, Published, Became, Skipped, Kept, Resent)
}
_TAKEN: Final = frozenset({Received, InitiatedBy})
_REASONED: Final[dict[str, Any]] = {"Failed": Failed, "Cancelled": Cancelled, "Terminated": Terminated}

_ERASED: Final = encode_detail(Detail(reason="erased", title="erased"))


class Taken(Protocol):
    """What is recorded of an input. `position` is its place in the inbox, if it comes from there."""

    type: str
    type_version: int
    body: bytes
    id: str
    mark: str
    kind: Kind
    context: Context
    actor: str | None
    cause: int | None
    attempt: int | None
    duration_us: int | None
    position: int | None


class Recorder:
    """Writes and reads the rows of one workflow's streams, with the codec of its messages and that of its states.

    >>> Recorder(Codec(), Codec()).row(Began(), 1, 0).event
    'Began'
    """

    def __init__(self, messages: Codec, states: Codec, *, occurrences: bool = False) -> None:
        self._codec = messages
        self._states = states
        # Whether evolve asks for events with their places in the stream.
        self._occurrences = occurrences

    def step_rows(
        self,
        events: Sequence[StreamEvent[Any, Any]],
        after: int,
        time_us: int,
        taken: Taken,
        state: str,
        began_in: bytes | None,
        *,
        trims: bool,
    ) -> list[EventRow]:
        """Return the rows of a step's events, of which the first one stands behind the version `after`.

        `began_in` is the context in which the instance began; `trims` says that of an input only its identity is kept.
        """
        rows: list[EventRow] = []
        version = cause = after
        for event in events:
            version += 1
            if type(event) in _TAKEN:
                cause = version
                row = self.input_row(type(event).__name__, version, time_us, taken, state)
                row = self.unkept(row) if trims else row
            elif type(event) is Replied:
                row = self.reply_row(event, version, time_us, _reply_to(event, taken.context, began_in), cause)
            elif type(event) is Compensated:
                row = self.compensated_row(event, version, time_us, taken.cause, taken.actor)
                row = replace(row, attempt=taken.attempt, duration_us=taken.duration_us)
                cause = version
            elif type(event) is AnswerRefused:
                row = self.refused_row(event, version, time_us, taken, state, trims=trims)
            else:
                row = self.row(event, version, time_us, cause=cause)
            rows.append(row)
        return rows

    def input_row(self, event: str, version: int, time_us: int, taken: Taken, state: str | None) -> EventRow:
        """Return the row of an input. Its id is left out where it follows from the output that it answers."""
        derived = taken.cause is not None and taken.position is None
        return EventRow(
            version,
            event,
            time_us,
            taken.type,
            taken.type_version,
            taken.body,
            None,
            taken.kind.value,
            None if derived else taken.mark + taken.id,
            taken.cause,
            None if derived else encode_context(taken.context),
            taken.actor,
            state,
            taken.attempt,
            taken.duration_us,
        )

    def refused_row(
        self, event: AnswerRefused[Any], version: int, time_us: int, taken: Taken, state: str, *, trims: bool
    ) -> EventRow:
        """Return the row of a refused answer. It has no id: the next answer to the task may have the same."""
        row = self.input_row("AnswerRefused", version, time_us, taken, state)
        type, body = digested((row.type, row.body)) if trims else (row.type, row.body)
        detail = Detail(key=event.task, reason=event.reason, unkept=row.type if trims else None)
        return replace(row, type=type, body=body, message_id=None, detail=encode_detail(detail))

    def unkept(self, row: EventRow) -> EventRow:
        """Return what is kept of an input where the history is not: enough to recognise a duplicate.

        One without an id of its own is gone with the next step anyway.
        """
        if row.message_id is None:
            return row
        type, body = digested((row.type, row.body))
        return replace(row, type=type, body=body, detail=encode_detail(Detail(unkept=row.type)))

    def row(
        self,
        event: StreamEvent[Any, Any],
        version: int,
        time_us: int,
        actor: str | None = None,
        cause: int | None = None,
    ) -> EventRow:
        """Return the row of a decision or of what an operator did. `cause` is the input for which it was decided."""
        # The most frequent ones first: a match asks one class after the other.
        if type(event) is Sent and event.compensate is None and event.undoes is None:
            return self._carrier(event, version, time_us, event.message, None, cause)
        if type(event) is Began or (type(event) is Completed and event.result is None):
            return EventRow(version, type(event).__name__, time_us, actor=actor)
        match event:
            case Sent(message, compensation, undoes) if compensation is not None or undoes is not None:
                detail = Detail(compensate=self._packed(compensation), undoes=undoes)
                return self._carrier(event, version, time_us, message, detail, cause)
            case Sent(message) | Published(message):
                return self._carrier(event, version, time_us, message, None, cause)
            case Resent(message, compensation):
                detail = None if compensation is None else Detail(compensate=self._packed(compensation))
                return replace(self._carrier(event, version, time_us, message, detail, cause), actor=actor)
            case Scheduled(message, after, at, key):
                after_us = None if after is None else after // MICROSECOND
                return self._carrier(event, version, time_us, message, Detail(key=key, after_us=after_us, at=at), cause)
            case ChildStarted(message, when_parent_ends):
                detail = Detail(abandon=True) if when_parent_ends == "abandon" else None
                return self._carrier(event, version, time_us, message, detail, cause)
            case FannedOut():
                return self._carrier(event, version, time_us, self._parts(event), None, cause)
            case Became(state):
                encoded = self._states.encode(state)
                return EventRow(version, "Became", time_us, encoded.name, encoded.version, encoded.body)
            case Completed(result) if result is not None:
                return self._carrier(event, version, time_us, result, None)
            case ScheduleCancelled(key) | TaskClosed(key):
                return EventRow(version, type(event).__name__, time_us, detail=encode_detail(Detail(key=key)))
            case AnswerRefused(message, task, reason):
                return self._carrier(event, version, time_us, message, Detail(key=task, reason=reason))
            case Asked():
                detail = encode_detail(detail_of_task(event))
                return EventRow(version, "Asked", time_us, detail=detail, cause=cause)
            case Reset(back_to, reason):
                detail = encode_detail(Detail(version=back_to, reason=reason))
                return EventRow(version, "Reset", time_us, detail=detail, actor=actor)
            case Migrated(at) | Retried(at):
                detail = encode_detail(Detail(version=at))
                return EventRow(version, type(event).__name__, time_us, detail=detail, actor=actor)
            case Compensating(reason, then, cancelled):
                detail = Detail(reason=reason, cancelled=cancelled)
                row = EventRow(version, "Compensating", time_us, detail=encode_detail(detail), actor=actor, cause=cause)
                if then is None:
                    return row
                encoded = self._codec.encode(then)
                return replace(row, type=encoded.name, type_version=encoded.version, body=encoded.body)
            case Suspended(reason, failed) if failed is not None:
                detail = encode_detail(Detail(reason=reason, failed=failed))
                return EventRow(version, "Suspended", time_us, detail=detail, actor=actor)
            case Failed(reason) | Suspended(reason) | Cancelled(reason) | Terminated(reason):
                detail = encode_detail(Detail(reason=reason))
                return EventRow(version, type(event).__name__, time_us, detail=detail, actor=actor)
            case _:
                return EventRow(version, type(event).__name__, time_us, actor=actor)

    def reply_row(self, event: Replied[Any], version: int, time_us: int, reply_to: str | None, cause: int) -> EventRow:
        """Return the row of a reply: where it goes stands beside what the author wrote, or that none waits for it."""
        detail = Detail(to=event.to, reply_to=reply_to, undelivered=reply_to is None)
        return self._carrier(event, version, time_us, event.message, detail, cause)

    def compensated_row(
        self, event: Compensated[Any], version: int, time_us: int, cause: int | None, actor: str | None = None
    ) -> EventRow:
        """Return the row of a compensation that was carried out. `cause` is the version at which it was sent."""
        detail = None if event.result is None else Detail(result=self._packed(event.result))
        row = self._carrier(event, version, time_us, event.message, detail, cause)
        return replace(row, kind=Kind.RESULT.value, actor=actor)

    def event(self, row: EventRow) -> StreamEvent[Any, Any]:
        """Return the event of a row. One that passes the checksum and makes no sense is damaged all the same."""
        codec = self._states if row.event == "Became" else self._codec
        message: Any = None
        try:
            if row.type is not None:
                message = codec.decode(row.type, row.type_version, row.body or b"")
            elif is_unkept(row):
                message = NotKept(read_detail(row.detail).unkept or "")
            carrier = _CARRIERS.get(row.event)
            if carrier is not None and not (row.event in ("Sent", "Resent") and row.detail is not None):
                return carrier(message)
            return self._detailed(row, message)
        except (*UNREADABLE, AttributeError, OverflowError) as error:
            raise DamagedRecordError("events", f"version {row.version}, {row.event}: {error}") from error

    def told(self, row: EventRow) -> StreamEvent[Any, Any]:
        """Return the event of a row for people: where its message was erased, with what stands for it."""
        if row.detail == ERASED:
            row = replace(row, detail=_ERASED)
        try:
            return self.event(row)
        except ErasedError:
            gone = NotKept(row.type or "")
        if row.event == "FannedOut":
            return FannedOut((gone,), "", "")
        carrier = _CARRIERS.get(row.event)
        return self._detailed(row, gone) if carrier is None else carrier(gone)

    def _detailed(self, row: EventRow, message: Any) -> StreamEvent[Any, Any]:
        """Return an event that says more than its message."""
        detail = read_detail(row.detail)
        match row.event:
            case "Began":
                return Began()
            case "Sent":
                return Sent(message, self._unpacked(detail.compensate), detail.undoes)
            case "Resent":
                return Resent(message, self._unpacked(detail.compensate))
            case "Compensating":
                return Compensating(detail.reason or "", message, detail.cancelled)
            case "Compensated":
                return Compensated(message, self._unpacked(detail.result))
            case "Suspended":
                return Suspended(detail.reason or "", detail.failed)
            case "Replied":
                return Replied(message, detail.to)
            case "Scheduled":
                after = None if detail.after_us is None else timedelta(microseconds=detail.after_us)
                return Scheduled(message, after, detail.at, detail.key or "")
            case "ScheduleCancelled":
                return ScheduleCancelled(detail.key or "")
            case "TaskClosed":
                return TaskClosed(detail.key or "")
            case "Asked":
                return task_asked(detail)
            case "AnswerRefused":
                return AnswerRefused(message, detail.key or "", detail.reason or "")
            case "ChildStarted":
                return ChildStarted(message, "abandon" if detail.abandon else "cancel")
            case "FannedOut":
                return FannedOut(restored(self._codec, message.messages), message.into, message.key)
            case "Completed":
                return Completed(message)
            case "Resumed":
                return Resumed()
            case "Reset":
                return Reset(detail.version or 0, detail.reason or "")
            case "Migrated":
                return Migrated(detail.version or 0)
            case "Retried":
                return Retried(detail.version or 0)
            case "Failed" | "Cancelled" | "Terminated":
                return _REASONED[row.event](detail.reason or "")
            case _:
                raise unknown_event(row)

    def message(self, type: str, type_version: int, body: bytes) -> Any:
        """Return the message that waits somewhere, as in an inbox."""
        return self._codec.decode(type, type_version, body)

    def snapshot(self, state: object, version: int, fingerprint: str) -> Snapshot:
        """Return a state as a snapshot."""
        encoded = self._states.encode(state)
        return Snapshot(version, fingerprint, encoded.name, encoded.version, encoded.body)

    def state(self, snapshot: Snapshot) -> Any:
        """Return the state of a snapshot."""
        return self._states.decode(snapshot.type, snapshot.type_version, snapshot.body)

    def folded(self, ref: Ref, rows: Sequence[EventRow]) -> list[Any]:
        """Return the events of those rows that a fold sees, as it asks for them. `branches` says which rows count."""
        if self._occurrences:
            return [self.as_folded(ref, row, self.event(row)) for row in rows if is_folded(row)]
        return [self.event(row) for row in rows if is_folded(row)]

    def as_folded(self, ref: Ref, row: EventRow, event: Any) -> Any:
        """Return the event of a row as a fold asks for it: bare, or with its place in the stream."""
        if not self._occurrences:
            return event
        cause = answered_by(ref, row) if event.direction == "input" else None
        return Occurrence(event, moment(row.time_us), row.version, cause)

    def entry(self, ref: Ref, row: EventRow, *, told: bool = False) -> Entry:
        """Return a row as a line of the stream; `told`, for people: an erased message does not keep it from them."""
        kind = None if row.kind is None else read_kind(row.kind)
        return Entry(
            row.version,
            self.told(row) if told else self.event(row),
            kind,
            message_id_of(ref, row),
            moment(row.time_us),
            row.actor,
            row.state,
            answered_by(ref, row),
            row.attempt,
            None if row.duration_us is None else timedelta(microseconds=row.duration_us),
            row.event == "Replied" and read_detail(row.detail).undelivered,
        )

    def _parts(self, event: FannedOut[Any]) -> Parts:
        messages = [self._codec.encode(message) for message in event.messages]
        size_bytes = sum(len(encoded.body) for encoded in messages)
        if size_bytes > PARTS_BYTES:
            raise BodyTooLargeError(
                "FanOut",
                f"its messages have {size_bytes:,} bytes together; the limit is {PARTS_BYTES:,}",
                "Keep large data elsewhere and its address in the messages, or let the parts fan out again.",
            )
        return Parts(tuple(map(stored, messages)), len(messages), event.into, event.key)

    def encoded(self, message: object) -> Encoded:
        """Return a message as it is stored."""
        return self._codec.encode(message)

    def _packed(self, message: object) -> Packed | None:
        if message is None:
            return None
        encoded = self._codec.encode(message)
        return Packed(encoded.name, encoded.version, Raw(encoded.body))

    def _unpacked(self, packed: Packed | None) -> Any:
        return None if packed is None else self._codec.decode(packed.type, packed.version, bytes(packed.body))

    def _carrier(
        self,
        event: StreamEvent[Any, Any],
        version: int,
        time_us: int,
        message: object,
        detail: Detail | None,
        cause: int | None = None,
    ) -> EventRow:
        encoded = self._codec.encode(message)
        return EventRow(
            version,
            type(event).__name__,
            time_us,
            encoded.name,
            encoded.version,
            encoded.body,
            None if detail is None else encode_detail(detail),
            cause=cause,
        )


def _reply_to(event: Replied[Any], context: Context, began_in: bytes | None) -> str | None:
    """A reply goes where it says, else to the sender of the input, else to the one that began the instance."""
    if event.to is not None:
        return f"message:{event.to}"
    own = _return_address(context)
    return own if own is not None or began_in is None else _return_address(read_context(began_in))


def _return_address(context: Context) -> str | None:
    return context.reply_to or (f"instance:{context.sender}" if context.sender else None)
