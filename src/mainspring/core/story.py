"""A stream as people read it: position, kind, direction, event, message."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import Struct

from mainspring.core.events import (
    AnswerRefused,
    Asked,
    Became,
    Cancelled,
    ChildStarted,
    Compensated,
    Compensating,
    Completed,
    Failed,
    FannedOut,
    Kept,
    Migrated,
    Published,
    Received,
    Replied,
    Resent,
    Reset,
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
from mainspring.core.unkept import NotKept

COLUMNS: Final = ("position", "kind", "direction", "event", "message")


class Entry(Struct, frozen=True, gc=False):
    """One recorded event with its place in the stream and, for an input, what its envelope said.

    `state` is the name of the state after an input's step; `cause` the position of the output that an input answers
    (of an output, that of the input for which it was decided); `attempt` and `duration` those of the handler's call
    that gave a result. `undelivered` says that a reply had no recipient.

    >>> from mainspring.core.events import Sent
    >>> Entry(3, Sent("charge")).position
    3
    """

    position: int
    event: StreamEvent[Any, Any]
    kind: Kind | None = None
    message_id: str | None = None
    time: datetime | None = None
    actor: str | None = None
    state: str | None = None
    cause: int | None = None
    attempt: int | None = None
    duration: timedelta | None = None
    undelivered: bool = False


class Row(Struct, frozen=True, gc=False):
    """One line of the table, all of it text.

    >>> from mainspring.core.events import Sent
    >>> tell([Entry(3, Sent("charge"))])
    [Row(position='3', kind='command', direction='output', event='Sent', message="'charge'")]
    """

    position: str
    kind: str
    direction: str
    event: str
    message: str

    def cells(self) -> tuple[str, ...]:
        """The five cells, in the order of COLUMNS."""
        return (self.position, self.kind, self.direction, self.event, self.message)


def tell(entries: Iterable[Entry]) -> list[Row]:
    """Return a stream as the rows of its table."""
    return [
        Row(
            position=str(entry.position),
            kind=str(entry.kind or entry.event.kind or ""),
            direction="" if entry.event.direction == "lifecycle" else entry.event.direction,
            event=type(entry.event).__name__,
            message=f"{_message(entry.event)}{' (undelivered)' if entry.undelivered else ''}",
        )
        for entry in entries
    ]


def table(rows: Sequence[Row], width: int | None = None) -> str:
    """Return rows as plain text in columns, each line cut to `width` characters when given.

    >>> from mainspring.core.events import Began, InitiatedBy, Sent
    >>> print(table(tell([Entry(1, Began()), Entry(2, InitiatedBy("placed"), Kind.COMMAND), Entry(3, Sent("charge"))])))
    position  kind     direction  event        message
    1                             Began
    2         command  input      InitiatedBy  'placed'
    3         command  output     Sent         'charge'
    """
    lines = [COLUMNS, *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(COLUMNS))]
    texts = ["  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join(text if width is None or len(text) <= width else f"{text[: width - 1]}…" for text in texts)


def duration(span: timedelta) -> str:
    """Return a duration as people write it.

    >>> duration(timedelta(days=3)), duration(timedelta(minutes=5)), duration(timedelta(hours=1, seconds=30))
    ('3 days', '5 min', '1 h 30 s')
    >>> duration(timedelta(microseconds=25))
    '0.000025 s'
    """
    hours, rest = divmod(span.seconds, 3600)
    minutes, seconds = divmod(rest, 60)
    parts = [
        f"{span.days} day{'s' if span.days > 1 else ''}" if span.days else "",
        f"{hours} h" if hours else "",
        f"{minutes} min" if minutes else "",
        f"{seconds + span.microseconds / 1e6:.6f}".rstrip("0").rstrip(".") + " s"
        if seconds or span.microseconds
        else "",
    ]
    return " ".join(part for part in parts if part) or "0 s"


def _message(event: StreamEvent[Any, Any]) -> str:
    match event:
        case Scheduled(message, after) if after is not None:
            return f"{message!r} after {duration(after)}"
        case Scheduled(message, _, at) if at is not None:
            return f"{message!r} at {at.isoformat()}"
        case Sent(message, undoes=undoes) if undoes is not None:
            return f"{message!r} undoes {undoes}"
        case Sent(message, compensate) if compensate is not None:
            return f"{message!r} undone by {compensate!r}"
        case Compensating(reason, then) if then is not None:
            return f"{reason!r} then {then!r}"
        case Compensated(message, result) if result is not None:
            return f"{message!r}: {result!r}"
        case Received(message) | Sent(message) | Published(message) | Replied(message):
            return repr(message)
        case ChildStarted(message):
            return repr(message)
        case FannedOut((NotKept() as gone,)) | Scheduled(NotKept() as gone):
            return repr(gone)
        case FannedOut(messages, into):
            return f"{len(messages):,} of {_kinds(messages)} into {into}"
        case Skipped(message) | Kept(message) | Resent(message) | Compensated(message):
            return repr(message)
        case Asked("", title):  # erased, and all that it said
            return repr(title)
        case Asked(key, title):
            return f"{title!r} for {_asked_of(event)} ({key})"
        case TaskClosed(text) | ScheduleCancelled(text) | Failed(text) | Suspended(text) | Cancelled(text):
            return repr(text)
        case Compensating(text) | Terminated(text):
            return repr(text)
        case AnswerRefused(message, task, reason):
            return f"{message!r} to {task}: {reason!r}"
        case Reset(version, reason):
            return f"to {version}: {reason!r}"
        case Retried(version):
            return f"position {version}"
        case Migrated(version):
            return f"to workflow version {version}"
        case Completed(result):
            return "" if result is None else repr(result)
        case Became(state):
            return repr(state)
        case _:
            return ""


def _asked_of(event: Asked) -> str:
    return " or ".join(name for name in (event.role, event.person) if name is not None)


def _kinds(messages: Sequence[object]) -> str:
    return " | ".join(dict.fromkeys(type(message).__name__ for message in messages)) or "nothing"
