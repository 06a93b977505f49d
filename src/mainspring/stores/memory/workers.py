"""Workers in dicts: who lives, and what was lost with those that are gone."""

from __future__ import annotations

from mainspring.stores.memory.tables import Verbs, Worker


class WorkerVerbs(Verbs):
    """The verbs of workers."""

    async def register_worker(self, name: str, lease_us: int, knows: str = "") -> int:
        self._tables.workers_registered += 1
        key = self._tables.workers_registered
        self._tables.workers[key] = Worker(name, lease_us, self.now_us() + lease_us, knows)
        return key

    async def heartbeat(self, worker: int, standing: str = "") -> bool:
        if known := self._tables.workers.get(worker):
            known.ends_us, known.standing = self.now_us() + known.lease_us, standing
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
