"""Schemas that are emptied and used again: to make one takes longer than most tests.

`clean_schema()` is for tests that look at a store through its verbs. What a test has added, changed or left locked in
its schema is found before the next one has it, and that schema is then used no more.
"""

from __future__ import annotations

import asyncio
import atexit
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, Final

import asyncpg  # pyright: ignore[reportMissingTypeStubs]  it has none

from mainspring.stores.postgres import PostgresStore
from mainspring.stores.postgres.address import Address
from mainspring.stores.postgres.sql import quoted
from mainspring.testing.clock import VirtualClock
from tests.support.postgres.server import own_schema, server_url

SMALL_BYTES: Final = 65_536
"""Rows of a smaller table are deleted; a larger one gets new files, which takes longer than that."""

_NUMBERS: Final = count()
# What a test can change: tables, indexes, sequences and their columns, constraints, triggers, functions, migrations.
_SHAPE: Final = """
SELECT md5(concat_ws('|',
    (
        SELECT string_agg(concat_ws(' ', c.relname, c.relkind, c.reloptions, a.attname, a.atttypid, a.attnotnull),
            ',' ORDER BY c.relname, a.attnum)
        FROM pg_class AS c LEFT JOIN pg_attribute AS a ON a.attrelid = c.oid WHERE c.relnamespace = n.oid
    ),
    (SELECT string_agg(conname, ',' ORDER BY conname) FROM pg_constraint WHERE connamespace = n.oid),
    (
        SELECT string_agg(t.tgname, ',' ORDER BY t.tgname)
        FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid WHERE c.relnamespace = n.oid
    ),
    (SELECT string_agg(proname, ',' ORDER BY proname) FROM pg_proc WHERE pronamespace = n.oid),
    (SELECT string_agg(version::text, ',' ORDER BY version) FROM {schema}.schema_migrations)
)) FROM pg_namespace AS n WHERE n.nspname = $1
"""
# Whoever of the last test is still there: its next statement would meet the next test's rows.
_STILL_USED: Final = "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND classid = $1::bigint::oid)"
_TABLES: Final = """
SELECT relname, pg_relation_size(oid) FROM pg_class
WHERE relnamespace = $1::text::regnamespace AND relkind = 'r' AND pg_relation_size(oid) > 0
    AND relname NOT IN ('feed', 'schema_migrations')
"""
_FROM_THE_START: Final = """
SELECT setval(oid::regclass, 1, false) FROM pg_class WHERE relnamespace = $1::text::regnamespace AND relkind = 'S'
"""


@contextmanager
def clean_schema() -> Generator[str]:
    """Give the URL of a schema in which nothing is, and which nobody else uses meanwhile."""
    server = server_url()
    url = _schemas(server).take()
    yield url
    _schemas(server).free.append(url)


@cache
def _schemas(server: str) -> Schemas:
    return Schemas(server)


class Schemas:
    """Those of one server, and a connection that looks after them."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._runner = asyncio.Runner()
        library: Any = asyncpg
        self._connection: Any = self._runner.run(library.connect(server))
        atexit.register(self._close)
        self.free = deque([self._made()])
        self._shape = self._runner.run(self._shape_of(self.free[0]))

    def take(self) -> str:
        """Return the first of those that wait and are as they were made, else a new one."""
        while self.free:
            url = self.free.popleft()
            if self._runner.run(self._emptied(url)):
                return url
        return self._made()

    def _made(self) -> str:
        url = own_schema(self._server, Path(f"clean-{next(_NUMBERS)}"))
        self._runner.run(_make(url))
        return url

    async def _shape_of(self, url: str) -> str:
        schema = Address(url).schema
        return await self._connection.fetchval(_SHAPE.format(schema=quoted(schema)), schema)

    async def _emptied(self, url: str) -> bool:
        address = Address(url)
        ask, schema = self._connection.fetch, quoted(address.schema)
        try:
            await ask("SET lock_timeout = '1s'")
            if await self._shape_of(url) != self._shape:
                return False
            if await self._connection.fetchval(_STILL_USED, address.lock_class % 2**32):
                return False
            for name, size in await ask(_TABLES, schema):
                await ask(f"{'DELETE FROM' if size < SMALL_BYTES else 'TRUNCATE'} {schema}.{quoted(name)}")
            await ask(_FROM_THE_START, schema)
            await ask(f"UPDATE {schema}.feed SET base = 0, purged = 0")  # noqa: S608  our own name
        except asyncpg.PostgresError:
            return False
        return True

    def _close(self) -> None:
        self._connection.terminate()
        self._runner.close()


async def _make(url: str) -> None:
    store = PostgresStore(url, VirtualClock())
    await store.open()
    await store.close()
