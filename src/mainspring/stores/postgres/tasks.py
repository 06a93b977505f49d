"""Tasks: what a batch does to them, who holds them, and what is open."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from mainspring.port.pages import Page
from mainspring.port.records import Ref
from mainspring.port.store import TaskSpot
from mainspring.port.tasks import (
    Hand,
    Refused,
    TaskAnswer,
    TaskFilter,
    TaskOpening,
    TaskRow,
    TaskWork,
    answered,
    barred,
    handed,
    opened,
    refusal,
    reopened,
)
from mainspring.stores.postgres.reads import Ask
from mainspring.stores.postgres.session import Row
from mainspring.stores.postgres.sql import name_of
from mainspring.stores.postgres.transaction import Transaction
from mainspring.stores.task_rows import read_task, task_values


class TaskBook:
    """The tasks that a batch is about: as the database has them, and then as the units so far have changed them.

    >>> TaskBook().refusal(7, TaskAnswer(3, "ann", (), "Approve"))
    Refused(reason='missing')
    """

    def __init__(self) -> None:
        self._tasks: dict[int, dict[int, TaskRow]] = {}
        self._changed: dict[tuple[int, int], None] = {}
        self._opened: dict[tuple[int, int], TaskOpening] = {}

    async def lock(self, transaction: Transaction, asked: Iterable[tuple[int, int]]) -> None:
        """Hold still the tasks of instances, each with the version that is answered, if one is."""
        rows = sorted(set(asked))
        for key, *row in await transaction.rows("lock_tasks", [key for key, _ in rows], [v for _, v in rows]):
            task = read_task(row)
            self._tasks.setdefault(key, {})[task.version] = task

    def refusal(self, key: int, answer: TaskAnswer | None) -> Refused | None:
        """Return why an answer is refused, if there is one."""
        return answer and refusal(self._tasks.get(key, {}).get(answer.version), answer.actor, answer.roles)

    def barred(self, key: int, work: TaskWork) -> Refused | None:
        """Return why a message from outside is refused, if that is what a unit takes."""
        return barred(self._tasks.get(key, {}).values(), work) if work.bars else None

    def apply(self, key: int, work: TaskWork, now_us: int) -> None:
        """Do what a unit says to the tasks of the instance with this key."""
        own = self._tasks.setdefault(key, {})
        if work.answer is not None:
            self._end(key, answered(own[work.answer.version], work.answer, now_us))
        for task in list(own.values()):
            if task.status == "open" and (work.close_all or task.key in work.closes):
                self._end(key, replace(task, status="closed", ended_us=now_us))
        if work.reopens is not None and work.reopens in own:
            self._end(key, reopened(own[work.reopens]))
        for opening in work.opens:
            own[opening.version] = opened(opening, "", "", now_us, b"")
            self._opened[key, opening.version] = opening

    def _end(self, key: int, task: TaskRow) -> None:
        self._tasks[key][task.version] = task
        if (key, task.version) not in self._opened:
            self._changed[key, task.version] = None

    async def write(self, transaction: Transaction, now_us: int) -> None:
        """Write what was changed and what is new."""
        if self._changed:
            rows = [(*spot, *_end(self._tasks[spot[0]][spot[1]])) for spot in self._changed]
            await transaction.rows("end_tasks", *zip(*rows, strict=True))
        if self._opened:
            await transaction.rows("insert_tasks", *zip(*self._new_rows(now_us), strict=True))

    def _new_rows(self, now_us: int) -> Iterator[tuple[object, ...]]:
        for (key, version), opening in self._opened.items():
            yield (*task_values(key, opening, now_us), *_end(self._tasks[key][version]))


def _end(task: TaskRow) -> tuple[object, ...]:
    return (task.status, task.answered_by, task.answer_type, task.ended_us)


async def get(ask: Ask, ref: Ref, version: int) -> TaskRow | None:
    """Return one task, whatever became of it."""
    rows = await ask("task", name_of(ref.workflow, ref.id), version)
    return read_task(rows[0]) if rows else None


async def listed(ask: Ask, where: TaskFilter, limit: int, after: TaskSpot | None) -> list[TaskRow]:
    """Return open tasks that match, by urgency."""
    behind = (None, None) if after is None else (name_of(after[0].workflow, after[0].id), after[1])
    asked = (where.workflow, where.due_before_us, where.person, list(where.roles))
    page = Page[Row, TaskRow](limit, read_task)
    while page.wants:
        page.take(await ask("open_tasks", *asked, page.wants, *behind))
        if page.last:
            behind = (name_of(page.last[0], page.last[1]), page.last[2])
    return page.records


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
