"""Workers: a key each, and a lease that shows others that they live."""

from __future__ import annotations

from typing import Protocol


class Workers(Protocol):
    """Workers: a key each, and a lease that shows others that they live."""

    async def register_worker(self, name: str, lease_us: int, knows: str = "") -> int:
        """Return a key for a new worker: its epoch. It holds what it claims while it is alive or its lease runs.

        `knows` says what it can read, and what every heartbeat says it holds back; `workers` returns both as they are.
        """
        ...

    async def heartbeat(self, worker: int, standing: str = "") -> bool:
        """Extend a worker's lease. False means that it lost its lease and was relieved: its key is fenced off."""
        ...

    async def release_worker(self, worker: int) -> None:
        """Release all that a worker holds, for others to claim at once, and forget the worker."""
        ...

    async def relieve(self) -> int:
        """Release what dead workers hold, and forget them. Return how many were found dead or with a lost lease.

        What they held is counted as lost, but for those that tried something alone: then that alone. What was lost
        `SUSPECT` times is set aside. A retry, and the resumption of its instance, begin the count anew.
        """
        ...
