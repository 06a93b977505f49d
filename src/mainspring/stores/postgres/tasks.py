"""Tasks that change hands."""

from __future__ import annotations

from mainspring.port.records import Ref
from mainspring.port.tasks import Hand, Refused, TaskRow, handed
from mainspring.stores.commit.task_rows import read_task
from mainspring.stores.postgres.statements import name_of
from mainspring.stores.postgres.transaction import Transaction


async def hand(transaction: Transaction, ref: Ref, version: int, hand: Hand, now_us: int) -> TaskRow | Refused:
    """Let a task change hands."""
    name = name_of(ref.workflow, ref.id)
    found = await transaction.rows("lock_task", name, version)
    if not found:
        return Refused("missing")
    ((transaction.xid, key),) = found
    # Asked only now: the statement that waited for the lock saw the rest of the row as it was before.
    task = handed(read_task((await transaction.rows("task", name, version))[0]), hand, now_us)
    if isinstance(task, TaskRow):
        await transaction.rows("hand_task", key, version, task.person, task.claimed_by, task.claimed_us)
    return task


async def pick(transaction: Transaction, role: str, actor: str, limit: int, now_us: int) -> list[TaskRow]:
    """Claim the next tasks of a role."""
    rows = await transaction.rows("pick_tasks", role, actor, now_us, limit)
    if rows:
        transaction.xid = rows[0][0]
    return [read_task(row[1:]) for row in rows]
