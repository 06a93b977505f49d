"""Tasks of people."""

from __future__ import annotations

from mainspring.port.records import Ref
from mainspring.port.tasks import Hand, Refused, TaskFilter, TaskRow, TaskSpot
from mainspring.stores.memory.tables import Verbs


class TaskVerbs(Verbs):
    """The verbs of tasks."""

    async def tasks(self, where: TaskFilter, limit: int, after: TaskSpot | None = None) -> list[TaskRow]:
        return self._tables.tasks.list(where, limit, after)

    async def task(self, ref: Ref, version: int) -> TaskRow | None:
        return self._tables.tasks.get(ref, version)

    async def hand(self, ref: Ref, version: int, hand: Hand) -> TaskRow | Refused:
        return self._tables.tasks.hand(ref, version, hand, self.now_us())

    async def pick(self, role: str, actor: str, limit: int) -> list[TaskRow]:
        return self._tables.tasks.pick(role, actor, limit, self.now_us())
