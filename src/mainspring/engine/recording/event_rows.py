"""Rows of events, and what they show without being decoded."""

from __future__ import annotations

from typing import Final

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
    Suspended,
    TaskClosed,
    Terminated,
)
from mainspring.core.failures import SendFailed
from mainspring.core.messages import Kind, type_of
from mainspring.errors import NewerTypeError
from mainspring.port.ids import plain
from mainspring.port.records import EventRow, Ref

_OUTPUTS: Final = frozenset(
    cls.__name__ for cls in (Sent, Published, Replied, Scheduled, ChildStarted, FannedOut, Resent, Asked)
)
_FOLDED: Final = frozenset(
    cls.__name__
    for cls in (
        Began,
        InitiatedBy,
        Received,
        Sent,
        Published,
        Replied,
        Scheduled,
        ScheduleCancelled,
        Asked,
        TaskClosed,
        ChildStarted,
        FannedOut,
        Became,
        Compensating,
        Compensated,
        Completed,
        Failed,
    )
)

# What stands in a stream and is not folded.
_BESIDE: Final = frozenset(
    cls.__name__
    for cls in (
        AnswerRefused,
        Suspended,
        Resumed,
        Cancelled,
        Terminated,
        Skipped,
        Kept,
        Reset,
        Migrated,
        Retried,
        Resent,
    )
)

_SEND_FAILED: Final = type_of(SendFailed).name


def is_folded(row: EventRow) -> bool:
    """Return True if a fold sees an event, or raise a NewerTypeError for one that is unknown here.

    >>> is_folded(EventRow(3, "Suspended", 0))
    False
    """
    if row.event in _FOLDED:
        return True
    if row.event not in _BESIDE:
        raise unknown_event(row)
    return False


def unknown_event(row: EventRow) -> NewerTypeError:
    """Return what is raised for an event that only a newer release knows."""
    return NewerTypeError(
        row.event,
        f"stands at position {row.version}, and is no event that this release of mainspring knows",
        "Upgrade mainspring here to the release that wrote it; restore a backup if it was written by hand.",
    )


def matters_to_ledger(row: EventRow) -> bool:
    """Return True if a saga's ledger has to read a row: most others it need not even decode.

    >>> matters_to_ledger(EventRow(3, "Sent", 0, "Charge", 1, b"{}"))
    False
    """
    if row.event in ("Sent", "Resent", "Suspended"):
        return row.detail is not None
    if row.event in ("Received", "Kept"):
        return row.type == _SEND_FAILED
    return row.event in ("Began", "Compensating", "Compensated", "Reset", "Resumed", "Retried")


def is_unkept(row: EventRow) -> bool:
    """Return True if of the message of an event only the identity is kept.

    >>> is_unkept(EventRow(3, "Received", 0, None, 1, b'"a digest"'))
    True
    """
    return row.type is None and row.body is not None


def message_id_of(ref: Ref, row: EventRow) -> str | None:
    """Return the id of the message in a row: an output's follows from its place, an answer's from what it answers.

    >>> message_id_of(Ref("W", "i"), EventRow(3, "Sent", 0, "Charge", 1, b"{}", cause=2))
    'W/i/3'
    """
    if row.message_id is not None:
        return plain(row.message_id)
    if row.event in _OUTPUTS:
        return f"{ref.workflow}/{ref.id}/{row.version}"
    if row.kind is not None and row.cause is not None:
        return answer_id(ref, row.cause, row.kind)
    return None


def answer_id(ref: Ref, cause: int, kind: str | None, part: int = 1) -> str:
    """Return the id of what answers an output: a timer has the output's own, a result one below it.

    >>> answer_id(Ref("W", "i"), 3, "timer"), answer_id(Ref("W", "i"), 3, "result")
    ('W/i/3', 'W/i/3/1')
    """
    own = f"{ref.workflow}/{ref.id}/{cause}"
    return own if kind == Kind.TIMER else f"{own}/{part}"
