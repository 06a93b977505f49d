"""The tasks of all instances, in dicts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from msgspec.structs import replace

from mainspring.port.records import Ref
from mainspring.port.tasks import Hand, Refused, TaskFilter, TaskRow, TaskSpot, handed


class TaskTable:
    """The tasks of all instances. An instance's key says how old it is.

    >>> TaskTable().get(Ref("W", "i"), 3) is None
    True
    """

    def __init__(self) -> None:
        self._tasks: dict[Ref, dict[int, tuple[int, TaskRow]]] = {}

    def of(self, ref: Ref) -> list[TaskRow]:
        """Return all tasks of an instance."""
        return [task for _, task in self._tasks.get(ref, {}).values()]

    def put(self, key: int, task: TaskRow) -> None:
        """Take in a new task, or what became of one."""
        self._tasks.setdefault(Ref(task.workflow, task.instance), {})[task.version] = key, task

    def renew(self, ref: Ref, context: bytes) -> None:
        """Take over the context of an instance that began anew."""
        own = self._tasks.get(ref, {})
        for version, (key, task) in own.items():
            own[version] = key, replace(task, context=context)

    def purge(self, ref: Ref) -> None:
        """Forget the tasks of an instance."""
        self._tasks.pop(ref, None)

    def get(self, ref: Ref, version: int) -> TaskRow | None:
        """Return a task, whatever became of it."""
        _, task = self._tasks.get(ref, {}).get(version, (0, None))
        return task

    def list(self, where: TaskFilter, limit: int, after: TaskSpot | None) -> list[TaskRow]:
        """Return open tasks that match."""
        last = self._tasks.get(after[0], {}).get(after[1]) if after is not None else None
        bound = None if last is None else _urgency(*last)
        wanted = (
            task
            for key, task in self._by_urgency()
            if _matches(where, task) and (bound is None or _urgency(key, task) > bound)
        )
        return list(islice(wanted, limit))

    def hand(self, ref: Ref, version: int, hand: Hand, now_us: int) -> TaskRow | Refused:
        """Let a task change hands."""
        task = handed(self.get(ref, version), hand, now_us)
        if isinstance(task, TaskRow):
            self._tasks[ref][version] = self._tasks[ref][version][0], task
        return task

    def pick(self, role: str, actor: str, limit: int, now_us: int) -> list[TaskRow]:
        """Claim the next tasks of a role."""
        free = [
            task
            for _, task in self._by_urgency()
            if task.role == role and task.claimed_by is None and actor not in task.excludes
        ]
        hand = Hand("claim", actor, (role,))
        picked = [self.hand(Ref(task.workflow, task.instance), task.version, hand, now_us) for task in free[:limit]]
        return [task for task in picked if isinstance(task, TaskRow)]

    def _by_urgency(self) -> Iterator[tuple[int, TaskRow]]:
        open = (item for own in self._tasks.values() for item in own.values() if item[1].status == "open")
        return iter(sorted(open, key=lambda item: _urgency(*item)))


def _urgency(key: int, task: TaskRow) -> tuple[bool, int, int, int]:
    return task.due_us is None, task.due_us or 0, key, task.version


def _matches(where: TaskFilter, task: TaskRow) -> bool:
    if where.workflow not in (None, task.workflow):
        return False
    if where.due_before_us is not None and (task.due_us is None or task.due_us >= where.due_before_us):
        return False
    person = where.person
    if person is not None and (person in task.excludes or task.claimed_by not in (None, person)):
        return False
    if person is None and not where.roles:
        return True
    return task.role in where.roles or (person is not None and person in (task.person, task.claimed_by))
