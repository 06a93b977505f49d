"""A task as people see it, and what became of it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import Struct, json

from mainspring.engine.inputs.pending import ReceiptStatus
from mainspring.engine.recording.stored_values import moment
from mainspring.errors import DamagedRecordError
from mainspring.errors.reading import UNREADABLE
from mainspring.port.tasks import TaskRow, TaskStatus

_data = json.Decoder(dict[str, Any]).decode


class Task(Struct, frozen=True):
    """A task. `status` is `open`, `answered` or `closed`; `claimed_by` is who holds it.

    >>> task_of(TaskRow("Leave", "l-1", 3, "k", "Leave?", ("Grant",), opened_us=0, due_us=5), now_us=9).overdue
    True
    """

    id: str
    workflow: str
    instance: str
    key: str
    title: str
    answers: tuple[str, ...]
    role: str | None
    person: str | None
    excludes: tuple[str, ...]
    reject: str | None
    data: dict[str, Any]
    opened_at: datetime
    due_at: datetime | None
    overdue: bool
    status: TaskStatus
    claimed_by: str | None
    claimed_at: datetime | None
    answered_by: str | None
    answer: str | None
    ended_at: datetime | None


class TaskOutcome(Struct, frozen=True):
    """How a task was answered: by which person, when, with which message. `first` says whether by this very call.

    `status` is that of the receipt: `stepped`, `accepted` or `suspended` for the first, `duplicate` for the others.

    >>> from datetime import UTC
    >>> TaskOutcome("Leave/l-1/3", True, "stepped", "ann", datetime(2026, 1, 1, tzinfo=UTC), "Grant", None).answered_by
    'ann'
    """

    id: str
    first: bool
    status: ReceiptStatus
    answered_by: str
    answered_at: datetime
    answer: str
    message: Any


def task_of(row: TaskRow, now_us: int) -> Task:
    """Return a row as a task, at this moment."""
    return Task(
        id=str(row),
        workflow=row.workflow,
        instance=row.instance,
        key=row.key,
        title=row.title,
        answers=row.answers,
        role=row.role,
        person=row.person,
        excludes=row.excludes,
        reject=row.reject,
        data=data_of(row),
        opened_at=moment(row.opened_us),
        due_at=_moment(row.due_us),
        overdue=row.status == "open" and row.due_us is not None and row.due_us < now_us,
        status=row.status,
        claimed_by=row.claimed_by,
        claimed_at=_moment(row.claimed_us),
        answered_by=row.answered_by,
        answer=row.answer_type,
        ended_at=_moment(row.ended_us),
    )


def data_of(row: TaskRow) -> dict[str, Any]:
    """Return what a task's form is filled with.

    >>> data_of(TaskRow("Leave", "l-1", 3, "k", "Leave?", ("Grant",), opened_us=0, data=b'{"days":3}'))
    {'days': 3}
    """
    try:
        return _data(row.data)
    except UNREADABLE as error:
        raise DamagedRecordError("tasks", f"{row}: {error}") from error


def _moment(time_us: int | None) -> datetime | None:
    return None if time_us is None else moment(time_us)
