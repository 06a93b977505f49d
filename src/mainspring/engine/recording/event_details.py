"""What an event says beside its message, as it is stored."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Raw, Struct, json

from mainspring.core.decisions import Value
from mainspring.core.events import Asked
from mainspring.engine.recording.stored_values import MICROSECOND


class Packed(Struct, frozen=True):
    """A second message of an event, as it is stored in its detail.

    >>> Packed("Refund", 1, Raw(b"{}")).type
    'Refund'
    """

    type: str
    version: int
    body: Raw


class Ending(Struct, frozen=True, omit_defaults=True):
    """Who is to be notified of an instance's end: the parent that began it, and children that it began.

    >>> Ending("failed", "Orders/o-1/3").children
    False
    """

    status: str
    parent: str | None = None
    children: bool = False


class Detail(Struct, frozen=True, omit_defaults=True):
    """What an event says beside its message, stored as one JSON object.

    `compensate` undoes what was sent, `undoes` is the version that is undone, `result` what came of that, `failed` the
    version of what failed, `cancelled` says that a compensation was begun from outside. `unkept` is the type of a
    message that is not kept.

    >>> json.encode(Detail(key="payment"))
    b'{"key":"payment"}'
    """

    key: str | None = None
    after_us: int | None = None
    at: datetime | None = None
    to: str | None = None
    reason: str | None = None
    reply_to: str | None = None
    undelivered: bool = False
    version: int | None = None
    title: str | None = None
    answers: tuple[str, ...] = ()
    role: str | None = None
    person: str | None = None
    excludes: tuple[str, ...] = ()
    reject: str | None = None
    data: dict[str, Value] = {}
    abandon: bool = False
    end: Ending | None = None
    compensate: Packed | None = None
    undoes: int | None = None
    result: Packed | None = None
    failed: int | None = None
    cancelled: bool = False
    unkept: str | None = None


encode_detail = json.Encoder().encode
_decode_detail = json.Decoder(Detail).decode


def read_detail(body: bytes | None) -> Detail:
    """Return a stored detail; nothing stored says nothing.

    >>> read_detail(None).key is None
    True
    """
    return Detail() if body is None else _decode_detail(body)


def detail_of_task(event: Asked) -> Detail:
    """Return what the asking of a task says, as it is stored.

    >>> detail_of_task(Asked("review", "Approve e-1", ("Approve",))).answers
    ('Approve',)
    """
    due = event.due
    return Detail(
        key=event.key,
        title=event.title,
        answers=event.answers,
        role=event.role,
        person=event.person,
        excludes=event.excludes,
        reject=event.reject,
        data=event.data,
        after_us=due // MICROSECOND if isinstance(due, timedelta) else None,
        at=due if isinstance(due, datetime) else None,
    )


def task_asked(detail: Detail) -> Asked:
    """Return the asking of a task from its detail.

    >>> task_asked(Detail(key="review")).key
    'review'
    """
    due = detail.at if detail.after_us is None else timedelta(microseconds=detail.after_us)
    return Asked(
        key=detail.key or "",
        title=detail.title or "",
        answers=detail.answers,
        role=detail.role,
        person=detail.person,
        excludes=detail.excludes,
        reject=detail.reject,
        due=due,
        data=detail.data,
    )
