"""Tasks to rows and back, for both SQL stores. Lists are kept as JSON; what is never due has the last moment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, get_args

from msgspec import json

from mainspring.errors import DamagedRecordError
from mainspring.errors.reading import UNREADABLE
from mainspring.port.tasks import TaskRow, TaskStatus

NEVER_US: Final = 2**62

_texts = json.Decoder(tuple[str, ...]).decode

# Where, in a row, the lists, the due time and the status stand.
_ANSWERS, _EXCLUDES, _DUE, _STATUS = 5, 9, 12, 13


def new_values(instance: int, task: TaskRow) -> tuple[Any, ...]:
    """Return the row of a new task, and what became of it since.

    >>> new_values(7, TaskRow("W", "i", 3, "k", "Approve e-1", ("Approve",), 0, role="manager"))[:4]
    (7, 3, 'k', 'Approve e-1')
    """
    return (
        instance,
        task.version,
        task.key,
        task.title,
        json.encode(task.answers).decode(),
        task.opened_us,
        task.role,
        task.person,
        json.encode(task.excludes).decode(),
        task.reject,
        task.data,
        NEVER_US if task.due_us is None else task.due_us,
        *_became(task),
    )


def changed_values(instance: int, task: TaskRow) -> tuple[Any, ...]:
    """Return what became of a task: key, version, status, who answered, with what, and when.

    >>> changed_values(7, TaskRow("W", "i", 3, "k", "Approve e-1", ("Approve",), 0, status="closed", ended_us=9))
    (7, 3, 'closed', None, None, 9)
    """
    return (instance, task.version, *_became(task))


def _became(task: TaskRow) -> tuple[Any, ...]:
    return (task.status, task.answered_by, task.answer_type, task.ended_us)


def read_task(row: Sequence[Any]) -> TaskRow:
    """Return the task of a row, or raise DamagedRecordError."""
    values = list(row)
    try:
        values[_ANSWERS], values[_EXCLUDES] = _texts(values[_ANSWERS]), _texts(values[_EXCLUDES])
    except UNREADABLE as error:
        raise DamagedRecordError("tasks", f"{row[0]}/{row[1]}/{row[2]}: {error}") from error
    if values[_STATUS] not in get_args(TaskStatus):
        raise DamagedRecordError("tasks", f"{row[0]}/{row[1]}/{row[2]}: it is {values[_STATUS]!r:.40}")
    if values[_DUE] == NEVER_US:
        values[_DUE] = None
    return TaskRow(*values)
