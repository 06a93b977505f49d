"""Tasks: what a batch does to them, who holds them, and what is open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import apsw

from mainspring.port.records import Ref
from mainspring.port.tasks import Hand, Refused, TaskRow, handed
from mainspring.stores.commit.task_book import TaskBook
from mainspring.stores.commit.task_rows import changed_values, new_values, read_task
from mainspring.stores.sql.dialect import packed
from mainspring.stores.sqlite.statements import QUERIES, Ladder, change, rows

_TASKS: Final = Ladder(QUERIES["insert_tasks"])


def read(connection: apsw.Connection, book: TaskBook, asked: Sequence[tuple[int, int]]) -> None:
    """Read the tasks of instances that are open, and those of the versions that are named, of key and version."""
    for key, *row in rows(connection, "tasks_of", packed(sorted(set(asked)))):
        book.put(key, read_task(row))


def write(connection: apsw.Connection, book: TaskBook) -> None:
    """Write what became of tasks, and new ones."""
    if changed := [changed_values(*task) for task in book.changed()]:
        change(connection, "end_tasks", packed(changed))
    _TASKS.insert(connection, [value for task in book.opened() for value in new_values(*task)])


def hand(connection: apsw.Connection, ref: Ref, version: int, hand: Hand, now_us: int) -> TaskRow | Refused:
    """Let a task change hands."""
    found = rows(connection, "task", ref.workflow, ref.id, version)
    task = handed(read_task(found[0]) if found else None, hand, now_us)
    if isinstance(task, TaskRow):
        change(connection, "hand_task", ref.workflow, ref.id, version, task.person, task.claimed_by, task.claimed_us)
    return task


def pick(connection: apsw.Connection, role: str, actor: str, limit: int, now_us: int) -> list[TaskRow]:
    """Claim the next tasks of a role."""
    picked = rows(connection, "pick_tasks", role, actor, now_us, limit)
    return [read_task(row) for row in rows(connection, "tasks_by_key", packed(picked))]
