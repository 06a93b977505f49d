"""Tasks: what a batch does to them, who holds them, and what is open."""

from __future__ import annotations

from collections.abc import Iterable

from mainspring.port.records import Ref
from mainspring.port.tasks import Hand, Refused, TaskRow, handed
from mainspring.stores.commit.task_book import TaskBook
from mainspring.stores.commit.task_rows import changed_values, new_values, read_task
from mainspring.stores.postgres.statements import name_of
from mainspring.stores.postgres.transaction import Transaction


async def lock(transaction: Transaction, book: TaskBook, asked: Iterable[tuple[int, int]]) -> None:
    """Hold still and read the tasks of instances that are open, and those of the versions that are named."""
    found = sorted(set(asked))
    for key, *row in await transaction.rows("lock_tasks", [key for key, _ in found], [v for _, v in found]):
        book.put(key, read_task(row))


async def write(transaction: Transaction, book: TaskBook) -> None:
    """Write what became of tasks, and new ones."""
    if changed := [changed_values(*task) for task in book.changed()]:
        await transaction.rows("end_tasks", *zip(*changed, strict=True))
    if new := [new_values(*task) for task in book.opened()]:
        await transaction.rows("insert_tasks", *zip(*new, strict=True))


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
