"""What memory has not: a database to write to beside us, in one transaction."""

from __future__ import annotations

from mainspring.errors import LendingError
from mainspring.port.lending import Loan
from mainspring.port.records import Relayed


class NothingToLend:
    """The verbs of a store in which nobody else can write."""

    @property
    def lends(self) -> bool:
        return False

    async def lend(self, worker: int, limit_seconds: float) -> Loan:
        raise LendingError("There is no database in memory to write to", "Use SQLite or PostgreSQL.")

    async def relay(self, limit: int) -> Relayed:
        return Relayed(0)
