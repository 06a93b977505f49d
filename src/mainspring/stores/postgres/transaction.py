"""A transaction, and what became of it when the answer was lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from mainspring.errors import StoreError, UnknownOutcomeError
from mainspring.stores.postgres.address import Address
from mainspring.stores.postgres.faults import FAULTY, LOST, translated
from mainspring.stores.postgres.session import SETTINGS, Pool, Row, Session

RESOLVE_SECONDS: Final = 60.0
# How long a session may be about to commit before it is ended: mostly the COMMIT has not even reached it.
PATIENCE_SECONDS: Final = 1.0
LOOK_SECONDS: Final = 0.05

_LOCAL: Final = "".join(
    f"SET LOCAL {name} = '{value}';"
    for name, value in SETTINGS.items()
    if name.endswith("_timeout") or name.startswith("enable_") or name == "jit"
)


class Transaction:
    """An open transaction: named statements, and its number once it is known."""

    def __init__(self, session: Session, statements: Mapping[str, str], lock_class: int) -> None:
        self.session = session
        self._statements = statements
        self.lock_class = lock_class
        self.xid: int | None = None

    async def rows(self, query: str, *values: Any) -> list[Row]:
        """Return all rows of a named statement."""
        return await self.session.rows(self._statements[query], *values)

    async def value(self, query: str, *values: Any) -> Any:
        """Return the first value of a named statement, or None."""
        return await self.session.value(self._statements[query], *values)


class Transactions:
    """Makes transactions. One that was committed is known to be, even if the connection breaks at that moment."""

    def __init__(self, address: Address, pool: Pool, statements: Mapping[str, str]) -> None:
        self._address = address
        self._pool = pool
        self._statements = statements
        # A pooled session is shared: what is set once in one's own session is set there in every transaction.
        self.settings = _LOCAL if address.pooled else ""
        self._begin = "BEGIN ISOLATION LEVEL READ COMMITTED;" + self.settings

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Transaction]:
        """Open a transaction, and commit it unless something fails inside: then all of it is rolled back."""
        transaction: Transaction | None = None
        committing = False
        try:
            async with self._pool.session() as session:
                transaction = Transaction(session, self._statements, self._address.lock_class)
                await session.run(self._begin)
                try:
                    yield transaction
                except Exception as error:
                    if isinstance(error, FAULTY) or not isinstance(error, LOST):
                        await session.run("ROLLBACK")
                    raise
                committing = True
                await session.commit()
        except LOST as cause:
            if not committing or transaction is None or transaction.xid is None:
                raise
            if not await self._committed(transaction.xid, transaction.session.life):
                raise translated(str(self._address), cause) from cause

    async def _committed(self, xid: int, life: str | None) -> bool:
        """Find out what became of a transaction: ask until the server answers and knows.

        A server that crashed gives the numbers of what it has forgotten to others: "committed" may be said of theirs.
        So in another life of the server nothing counts as committed. If it was, the retry finds it: inputs are known
        by their ids, instances by their versions, and outputs by who holds them.
        """
        begun = time.monotonic()
        while time.monotonic() - begun < RESOLVE_SECONDS:
            try:
                async with self._pool.session() as session:
                    if life is None or session.life != life:
                        return False
                    status = await session.value(self._statements["outcome"], str(xid))
                    if status != "in progress":
                        return status == "committed"
                    if time.monotonic() - begun > PATIENCE_SECONDS:
                        await session.rows(self._statements["end_transaction"], str(xid))
            except (*LOST, StoreError):
                pass  # the pool waits longer each time before it connects again
            await asyncio.sleep(LOOK_SECONDS)
        raise UnknownOutcomeError(str(self._address))
