"""The schema as the sum of its forward migrations, each run once, in one transaction of its own."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from mainspring.errors import NewerSchemaError, StoreError
from mainspring.stores.postgres.address import Address
from mainspring.stores.postgres.session import FOREVER_SECONDS, Session
from mainspring.stores.postgres.statements import quoted, within
from mainspring.stores.sql.migrations import Migration, shipped

OLDEST_SERVER: Final = 14
# The advisory lock under which migrations run: its second number. Those of workers are positive.
MIGRATING: Final = -1
_BEGIN: Final = "BEGIN; SET LOCAL lock_timeout = '60s'; SET LOCAL statement_timeout = 0"
_LEDGER: Final = """
CREATE TABLE mainspring.schema_migrations (
    version bigint PRIMARY KEY,
    applied_us bigint NOT NULL,
    name text COLLATE "C" NOT NULL
)
"""


def migrations() -> list[Migration]:
    """Return all migrations that this release knows, in order.

    >>> [m.version for m in migrations()][:1]
    [1]
    """
    return shipped("mainspring.stores.postgres")


@cache
def newest_known() -> int:
    """Return the newest version that this release knows.

    >>> newest_known() == len(migrations())
    True
    """
    return len(migrations())


class Schema:
    """A schema on its way to the newest version."""

    def __init__(self, session: Session, address: Address, statements: Mapping[str, str]) -> None:
        self._session = session
        self._address = address
        self._statements = statements

    async def check_server(self) -> None:
        """Refuse a server that would lose what it has acknowledged, or that this store does not know."""
        ((version, forgets, encoding),) = await self._session.rows(self._statements["server"])
        store = str(self._address)
        if version < OLDEST_SERVER:
            raise StoreError(store, f"is PostgreSQL {version}", f"Use PostgreSQL {OLDEST_SERVER} or newer.")
        if forgets:
            raise StoreError(
                store,
                "has synchronous_commit=off: a crash of the server would lose what it has acknowledged",
                "Set it to on for this user or database: ALTER DATABASE … SET synchronous_commit = on.",
            )
        if encoding != "UTF8":
            raise StoreError(store, f"has the encoding {encoding}", "Use a database with the encoding UTF8.")

    async def migrate(self) -> None:
        """Bring it up to date. Safe when several processes do so at once, and when one is killed at any moment.

        Each migration is a transaction: all of it and its entry in the ledger, or nothing.
        """
        known = migrations()
        while (version := await self._version()) < len(known):
            await self._session.run(_BEGIN)
            try:
                self._session.answer_seconds = FOREVER_SECONDS  # others migrate before, and a large table takes long
                lock = "SELECT pg_advisory_xact_lock($1::integer, $2::integer)"
                await self._session.rows(lock, self._address.lock_class, MIGRATING)
                if await self._is_still(version):
                    await self._apply(known[version])
                await self._session.run("COMMIT")
            except Exception:
                if not self._session.closed:
                    await self._session.run("ROLLBACK")
                raise
            finally:
                self._session.answer_seconds = None
        if version > len(known):
            raise NewerSchemaError(str(self._address), version, len(known))
        if await self._session.value(self._statements["feed_is_ahead"]):
            await self._session.rows(self._statements["move_feed"])

    async def _apply(self, migration: Migration) -> None:
        schema = self._address.schema
        if migration.version == 1:
            # Only if it is not there: creating needs a right that an application's user may not have.
            if not await self._session.value(self._statements["has_schema"], schema):
                await self._session.run(f"CREATE SCHEMA {quoted(schema)}")
            await self._session.run(within(schema, _LEDGER))
        await self._session.run(within(schema, migration.sql))
        await self._session.rows(self._statements["record_migration"], migration.version, migration.name)

    async def _version(self) -> int:
        return await self._session.value(self._statements["schema_version"]) if await self._exists() else 0

    async def _is_still(self, version: int) -> bool:
        """Return True if no other was first. Of another's new tables this transaction sees only that they exist."""
        if version == 0:
            return not await self._exists()
        return await self._version() == version

    async def _exists(self) -> bool:
        return await self._session.value(self._statements["has_ledger"], self._address.schema)
