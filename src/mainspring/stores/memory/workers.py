"""Workers in dicts: who lives, what each holds, and what was lost with those that are gone."""

from __future__ import annotations

import asyncio

from mainspring.port.records import OutputKey, Ref
from mainspring.port.suspects import SUSPECT, Suspect
from mainspring.port.workers import WorkerRow
from mainspring.stores.memory.tables import ASIDE, Input, Tables, Worker


class WorkerTables:
    """The verbs of workers, for a store that has a clock.

    >>> asyncio.run(WorkerTables().register_worker("host:1", 30))
    1
    """

    def __init__(self) -> None:
        super().__init__()
        self._tables = Tables()
        self._workers_registered = 0
        self._news = asyncio.Event()

    def now_us(self) -> int:
        """Return the store's time."""
        return 0

    async def register_worker(self, name: str, lease_us: int, knows: str = "") -> int:
        self._workers_registered += 1
        self._tables.workers[self._workers_registered] = Worker(name, lease_us, self.now_us() + lease_us, knows)
        return self._workers_registered

    async def heartbeat(self, worker: int, held: str = "") -> bool:
        if known := self._tables.workers.get(worker):
            known.ends_us, known.held = self.now_us() + known.lease_us, held
        return known is not None

    async def release_worker(self, worker: int) -> None:
        self._tables.workers.pop(worker, None)
        self._tables.alone.pop(worker, None)
        for held in (*self._tables.outbox.values(), *self._tables.inbox.values()):
            if held.owner == worker:
                held.give_back()
        self._news.set()

    async def relieve(self) -> int:
        dead = [key for key, worker in self._tables.workers.items() if worker.ends_us <= self.now_us()]
        for worker in dead:
            self._lose(worker)
            await self.release_worker(worker)
        return len(dead)

    def _lose(self, worker: int) -> None:
        alone = self._tables.alone.get(worker)
        for key, one in (*self._tables.outbox.items(), *self._tables.inbox.items()):
            if one.owner == worker and alone in (None, key):
                one.lost += 1

    async def workers(self) -> list[WorkerRow]:
        return [WorkerRow(key, **vars(each)) for key, each in self._tables.workers.items()]

    async def holds(self, worker: int) -> list[OutputKey]:
        return [key for key, output in self._tables.outbox.items() if output.owner == worker]

    async def holds_inputs(self, worker: int) -> list[tuple[Ref, int]]:
        held = [waiting.row for waiting in self._tables.inbox.values() if waiting.owner == worker]
        return [(Ref(row.workflow, row.instance), row.position) for row in held]

    async def suspects(self, limit: int) -> list[Suspect]:
        outputs = [(key, one) for key, one in self._tables.outbox.items() if one.lost >= SUSPECT]
        inputs = [one for one in self._tables.inbox.values() if one.lost >= SUSPECT and not self._parked(one)]
        found = [
            Suspect(*_named(one.ref), self._type(key), key.version, one.lost, one.row.destination, one.owner == ASIDE)
            for key, one in outputs
        ]
        found += [
            Suspect(
                row.workflow,
                row.instance,
                row.type,
                None,
                one.lost,
                "",
                one.owner == ASIDE,
                row.type_version,
                row.position,
            )
            for one in inputs
            if (row := one.row)
        ]
        return sorted(found, key=lambda suspect: -suspect.lost)[:limit]

    def _type(self, output: OutputKey) -> str:
        """Return the type of an output's message."""
        return ""

    def _parked(self, waiting: Input) -> bool:
        """Tell whether an input waits for the resumption of its instance."""
        return False


def _named(ref: Ref) -> tuple[str, str]:
    return ref.workflow, ref.id
