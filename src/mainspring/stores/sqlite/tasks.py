"""Tasks: what a batch does to them, who holds them, and what is open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import apsw

from mainspring.port.pages import Page
from mainspring.port.records import Ref
from mainspring.port.store import TaskSpot
from mainspring.port.tasks import Hand, Refused, TaskFilter, TaskRow, TaskWork, handed
from mainspring.stores.sqlite.sql import QUERIES, Ladder, change, packed, rows
from mainspring.stores.task_rows import read_task, task_values

_TASKS: Final = Ladder(QUERIES["insert_tasks"])


class TaskChanges:
    """What the units of a segment do to tasks; of one instance, one unit at most."""

    def __init__(self) -> None:
        self._answered: list[tuple[int, int, str, str]] = []
        self._closed: list[tuple[int, str | None]] = []
        self._opened: list[tuple[int, TaskWork]] = []
        self._reopened: list[tuple[int, int]] = []

    def add(self, key: int, work: TaskWork) -> None:
        """Take in what a unit does to the tasks of the instance with this key."""
        if work.answer is not None:
            self._answered.append((key, work.answer.version, work.answer.actor, work.answer.type))
        self._closed += [(key, None)] if work.close_all else [(key, task) for task in work.closes]
        if work.opens:
            self._opened.append((key, work))
        if work.reopens is not None:
            self._reopened.append((key, work.reopens))

    def write(self, connection: apsw.Connection, now_us: int) -> None:
        """Write it: a task that is closed and asked anew in one step must stay."""
        if self._answered:
            change(connection, "answer_tasks", packed(self._answered), now_us)
        if self._closed:
            change(connection, "close_tasks", packed(self._closed), now_us)
        if self._reopened:
            change(connection, "reopen_tasks", packed(self._reopened))
        opened: list[Any] = []
        for key, work in self._opened:
            for task in work.opens:
                opened += (*task_values(key, task, now_us), "open")
        _TASKS.insert(connection, opened)


def found(connection: apsw.Connection, spots: Sequence[tuple[str, str, int]]) -> dict[tuple[str, str, int], TaskRow]:
    """Return the tasks that are there, of workflow, id and version."""
    tasks = [read_task(row) for row in rows(connection, "tasks_by_name", packed(spots))]
    return {(task.workflow, task.instance, task.version): task for task in tasks}


def open_of(connection: apsw.Connection, names: Sequence[tuple[str, str]]) -> dict[tuple[str, str], list[TaskRow]]:
    """Return the open tasks of instances, each of workflow and id."""
    found: dict[tuple[str, str], list[TaskRow]] = {}
    for row in rows(connection, "open_tasks_by_name", packed(names)):
        task = read_task(row)
        found.setdefault((task.workflow, task.instance), []).append(task)
    return found


def get(connection: apsw.Connection, ref: Ref, version: int) -> TaskRow | None:
    """Return one task, whatever became of it."""
    spot = (ref.workflow, ref.id, version)
    return found(connection, [spot]).get(spot)


def listed(connection: apsw.Connection, where: TaskFilter, limit: int, after: TaskSpot | None) -> list[TaskRow]:
    """Return open tasks that match, by urgency."""
    behind = (None, None, None) if after is None else (after[0].workflow, after[0].id, after[1])
    asked = (where.workflow, where.due_before_us, where.person, packed(where.roles))
    page = Page[tuple[Any, ...], TaskRow](limit, read_task)
    while page.wants:
        page.take(rows(connection, "open_tasks", *asked, page.wants, *(page.last[:3] if page.last else behind)))
    return page.records


def hand(connection: apsw.Connection, ref: Ref, version: int, hand: Hand, now_us: int) -> TaskRow | Refused:
    """Let a task change hands."""
    task = handed(get(connection, ref, version), hand, now_us)
    if isinstance(task, TaskRow):
        change(connection, "hand_task", ref.workflow, ref.id, version, task.person, task.claimed_by, task.claimed_us)
    return task


def pick(connection: apsw.Connection, role: str, actor: str, limit: int, now_us: int) -> list[TaskRow]:
    """Claim the next tasks of a role."""
    picked = rows(connection, "pick_tasks", role, actor, now_us, limit)
    return [read_task(row) for row in rows(connection, "tasks_by_key", packed(picked))]
