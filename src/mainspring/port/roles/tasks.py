"""Tasks of people."""

from __future__ import annotations

from typing import Protocol

from mainspring.port.records import Ref
from mainspring.port.tasks import Hand, Refused, TaskFilter, TaskRow, TaskSpot


class Tasks(Protocol):
    """Tasks of people."""

    async def tasks(self, where: TaskFilter, limit: int, after: TaskSpot | None = None) -> list[TaskRow]:
        """Return open tasks, the next due first, then those of older instances; behind the task `after`."""
        ...

    async def task(self, ref: Ref, version: int) -> TaskRow | None:
        """Return the task that an instance asked at a version, whatever became of it."""
        ...

    async def hand(self, ref: Ref, version: int, hand: Hand) -> TaskRow | Refused:
        """Let a task change hands, in a transaction, and return it as it is then."""
        ...

    async def pick(self, role: str, actor: str, limit: int) -> list[TaskRow]:
        """Claim the next tasks of a role that are unclaimed and do not exclude the actor; the next due first.

        Of many who pick at once, no two get the same task, and none waits for another.
        """
        ...
