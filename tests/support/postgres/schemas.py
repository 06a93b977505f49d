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
from mainspring.testing.clock import VirtualClock
from tests.support.postgres.server import own_schema, server_url

SMALL_BYTES: Final = 65_536
"""Rows of a smaller table are deleted; a larger one gets new files, which takes longer than that."""

_NUMBERS: Final = count()
# What a test can change: tables, indexes, sequences and their columns, constraints, triggers, functions, migrations.
# It stays in the connection that looks after the schemas, planned once; `is_emptied` does all in one round trip.
_FUNCTIONS: Final = """
CREATE FUNCTION pg_temp.shape_of(schema text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    space oid := (SELECT oid FROM pg_namespace WHERE nspname = schema);
    migrations text;
BEGIN
    EXECUTE format('SELECT string_agg(version::text, %L ORDER BY version) FROM %I.schema_migrations', ',', schema)
    INTO migrations;
    RETURN md5(concat_ws('|',
        migrations,
        (
            SELECT string_agg(
                concat_ws(' ', c.relname, c.relkind, c.reloptions, a.attname, a.atttypid, a.attnotnull),
                ',' ORDER BY c.relname, a.attnum
            )
            FROM pg_class AS c LEFT JOIN pg_attribute AS a ON a.attrelid = c.oid WHERE c.relnamespace = space
        ),
        (SELECT string_agg(conname, ',' ORDER BY conname) FROM pg_constraint WHERE connamespace = space),
        (
            SELECT string_agg(t.tgname, ',' ORDER BY t.tgname)
            FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid WHERE c.relnamespace = space
        ),
        (SELECT string_agg(proname, ',' ORDER BY proname) FROM pg_proc WHERE pronamespace = space)
    ));
END $$;

CREATE FUNCTION pg_temp.is_emptied(schema text, shape text, lock_class bigint, small bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    found record;
BEGIN
    IF pg_temp.shape_of(schema) IS DISTINCT FROM shape THEN
        RETURN false;
    END IF;
    -- Whoever of the last test is still there: its next statement would meet the next test's rows.
    IF EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND classid = lock_class::oid) THEN
        RETURN false;
    END IF;
    FOR found IN
        SELECT oid::regclass AS name, relkind = 'S' AS counts, pg_relation_size(oid) AS size
        FROM pg_class WHERE relnamespace = schema::regnamespace AND relkind IN ('r', 'S')
            AND relname NOT IN ('feed', 'schema_migrations')
    LOOP
        IF found.counts THEN
            PERFORM setval(found.name, 1, false);
        ELSIF found.size >= small THEN
            EXECUTE format('TRUNCATE %s', found.name);
        ELSIF found.size > 0 THEN
            EXECUTE format('DELETE FROM %s', found.name);
        END IF;
    END LOOP;
    EXECUTE format('UPDATE %I.feed SET base = 0, purged = 0', schema);
    RETURN true;
END $$;
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
        # Who has locked a table of a schema keeps it.
        settings = {"lock_timeout": "1s"}
        self._connection: Any = self._runner.run(library.connect(server, server_settings=settings))
        atexit.register(self._close)
        self._runner.run(self._connection.execute(_FUNCTIONS))
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
        return await self._connection.fetchval("SELECT pg_temp.shape_of($1)", Address(url).schema)

    async def _emptied(self, url: str) -> bool:
        address = Address(url)
        asked = (address.schema, self._shape, address.lock_class % 2**32, SMALL_BYTES)
        try:
            return await self._connection.fetchval("SELECT pg_temp.is_emptied($1, $2, $3, $4)", *asked)
        except asyncpg.PostgresError:
            return False

    def _close(self) -> None:
        self._connection.terminate()
        self._runner.close()


async def _make(url: str) -> None:
    store = PostgresStore(url, VirtualClock())
    await store.open()
    await store.close()
