"""The store: the sum of its roles.

A batch needs no rollback here: each unit is judged before anything is changed, and nothing awaits in between.
"""

from __future__ import annotations

from mainspring.stores.memory.backlog import BacklogVerbs
from mainspring.stores.memory.projections import ProjectionVerbs
from mainspring.stores.memory.tasks import TaskVerbs
from mainspring.stores.memory.upkeep import UpkeepVerbs
from mainspring.stores.memory.work import WorkVerbs
from mainspring.stores.memory.workers import WorkerVerbs


class MemoryStore(WorkVerbs, WorkerVerbs, BacklogVerbs, TaskVerbs, ProjectionVerbs, UpkeepVerbs):
    """A store that forgets everything with its process.

    >>> import asyncio
    >>> from mainspring.port.records import EventRow, Unit
    >>> from mainspring.testing.clock import VirtualClock
    >>> store = MemoryStore(VirtualClock())
    >>> unit = Unit("W", "i", expected_version=0, events=(EventRow(1, "Began", 0),))
    >>> asyncio.run(store.commit(0, [unit, unit]))
    [Committed(key=1, positions=(), unclaimed=()), Conflict(reason='version')]
    """
