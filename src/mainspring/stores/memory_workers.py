"""Workers in dicts: who lives, what each holds, and what was lost with those that are gone."""

from __future__ import annotations

import asyncio

from mainspring.port.records import OutputKey, Ref
from mainspring.port.suspects import SUSPECT, Suspect
from mainspring.port.workers import WorkerRow
from mainspring.stores.memory_tables import ASIDE, Input, Output, Worker


class WorkerTables:
    """The verbs of workers, for a store that has a clock.

    >>> asyncio.run(WorkerTables().register_worker("host:1", 30))
    1
    """

    def __init__(self) -> None:
        super().__init__()
        # All work once more, beside that of each instance: what is claimed is looked for across instances.
        self._inbox: dict[int, Input] = {}
        self._outbox: dict[OutputKey, Output] = {}
        self._workers: dict[int, Worker] = {}
        self._workers_registered = 0
        # What a worker tries alone: the position of an input, or an output.
        self._alone: dict[int, OutputKey | int] = {}
        self._news = asyncio.Event()

    def now_us(self) -> int:
        """Return the store's time."""
        return 0

    async def register_worker(self, name: str, lease_us: int, knows: str = "") -> int:
        self._workers_registered += 1
        self._workers[self._workers_registered] = Worker(name, lease_us, self.now_us() + lease_us, knows)
        return self._workers_registered

    async def heartbeat(self, worker: int, held: str = "") -> bool:
        if known := self._workers.get(worker):
            known.ends_us, known.held = self.now_us() + known.lease_us, held
        return known is not None

    async def release_worker(self, worker: int) -> None:
        self._workers.pop(worker, None)
        self._alone.pop(worker, None)
        for held in (*self._outbox.values(), *self._inbox.values()):
            if held.owner == worker:
                held.give_back()
        self._news.set()

    async def relieve(self) -> int:
        dead = [key for key, worker in self._workers.items() if worker.ends_us <= self.now_us()]
        for worker in dead:
            self._lose(worker)
            await self.release_worker(worker)
        return len(dead)

    def _lose(self, worker: int) -> None:
        alone = self._alone.get(worker)
        held = [(key, one) for key, one in (*self._outbox.items(), *self._inbox.items()) if one.owner == worker]
        for key, one in held:
            if alone in (None, key):
                one.lost += 1

    async def workers(self) -> list[WorkerRow]:
        return [WorkerRow(key, **vars(each)) for key, each in self._workers.items()]

    async def holds(self, worker: int) -> list[OutputKey]:
        return [key for key, output in self._outbox.items() if output.owner == worker]

    async def holds_inputs(self, worker: int) -> list[tuple[Ref, int]]:
        held = [waiting.row for waiting in self._inbox.values() if waiting.owner == worker]
        return [(Ref(row.workflow, row.instance), row.position) for row in held]

    async def suspects(self, limit: int) -> list[Suspect]:
        outputs = [(key, one) for key, one in self._outbox.items() if one.lost >= SUSPECT]
        inputs = [one for one in self._inbox.values() if one.lost >= SUSPECT and not self._parked(one)]
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
