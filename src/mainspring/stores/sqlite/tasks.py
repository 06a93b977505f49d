"""Tasks that change hands."""

from __future__ import annotations

import apsw

from mainspring.port.records import Ref
from mainspring.port.tasks import Hand, Refused, TaskRow, handed
from mainspring.stores.commit.task_rows import read_task
from mainspring.stores.sql.dialect import packed
from mainspring.stores.sqlite.statements import change, rows


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
