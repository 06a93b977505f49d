"""A task's row as people see it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import json

from mainspring.engine.recording.stored_values import moment
from mainspring.errors import DamagedRecordError
from mainspring.errors.reading import UNREADABLE
from mainspring.port.tasks import TaskRow
from mainspring.views import Task

_data = json.Decoder(dict[str, Any]).decode


def task_of(row: TaskRow, now_us: int) -> Task:
    """Return a row as a task, at this moment.

    >>> task_of(TaskRow("Leave", "l-1", 3, "k", "Leave?", ("Grant",), opened_us=0, due_us=5), now_us=9).overdue
    True
    """
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
