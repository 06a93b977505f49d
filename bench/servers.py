"""The PostgreSQL server that a bench measures: its own from a wheel's binaries, or one that is named."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg  # pyright: ignore[reportMissingTypeStubs]  it has none
from msgspec import structs

from bench.measure import parent_of
from bench.settings import Settings
from mainspring.stores.postgres.address import Address
from mainspring.stores.postgres.session import SETTINGS
from mainspring.stores.postgres.statements import quoted
from tests.support.postgres.server import VARIABLE, Server, Unavailable

# What a server has by default, said here because tests may want otherwise.
DEFAULTS = {"autovacuum": "on", "fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
MUST_BE_ON = ("fsync", "synchronous_commit", "full_page_writes")


def own_server(parent: Path | None = None) -> Server:
    """Return a server of one's own that runs with default durability. It is to be removed by the caller."""
    try:
        server = Server(settings=DEFAULTS, parent=parent)
        server.start()
    except Unavailable as reason:
        raise SystemExit(f"No PostgreSQL: {reason}. Name a server with --url.") from None
    return server


@contextmanager
def measured_server(settings: Settings, url: str | None) -> Generator[Settings]:
    """Return the settings with a server: the one named, or a fresh one in the settings' folder until this is left."""
    if settings.store != "postgres":
        yield settings
    elif given := url or os.environ.get(VARIABLE):
        yield asyncio.run(_checked(structs.replace(settings, server=given)))
    else:
        server = own_server(settings.path)
        try:
            pid = server.process.pid if server.process else None
            yield structs.replace(settings, server=server.url, server_pid=pid)
        finally:
            server.remove()


@asynccontextmanager
async def connection(settings: Settings) -> AsyncGenerator[Any]:
    """Return a bare connection in a session that is set up as the engine's are."""
    address = Address(settings.url)
    library: Any = asyncpg
    opened = await library.connect(
        address.dsn, server_settings=SETTINGS, max_cached_statement_lifetime=0, max_cacheable_statement_size=0
    )
    try:
        yield opened
    finally:
        await opened.close()


@contextmanager
def own_schema(settings: Settings) -> Generator[Settings]:
    """Return the settings with a schema of their own, dropped at the end. What others wrote is on the disk before."""
    if not settings.server:
        yield settings
        return
    own = structs.replace(settings, schema=f"bench_{uuid4().hex[:12]}")
    asyncio.run(checkpoint(own))
    try:
        yield own
    except BaseException:
        # What ended the run may have ended the server too.
        with suppress(asyncpg.PostgresError, OSError):
            asyncio.run(drop_schema(own))
        raise
    asyncio.run(drop_schema(own))


async def checkpoint(settings: Settings) -> None:
    """Let the server write what it has in memory, where it lets us: or it would do so in the middle of a run."""
    with suppress(asyncpg.InsufficientPrivilegeError):
        await _run(settings, "CHECKPOINT")


async def drop_schema(settings: Settings) -> None:
    """Remove all that a run has written."""
    await _run(settings, f"DROP SCHEMA IF EXISTS {quoted(Address(settings.url).schema)} CASCADE")


async def stored_bytes(settings: Settings) -> int:
    """Return the bytes of all tables and indexes of a schema."""
    sizes = """
        SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
        FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE n.nspname = $1 AND c.relkind = 'r'
    """
    async with connection(settings) as opened:
        return await opened.fetchval(sizes, settings.schema)


async def _checked(settings: Settings) -> Settings:
    """Refuse a server that is not durable: what it does faster does not count."""
    async with connection(settings) as opened:
        for name in MUST_BE_ON:
            if (value := await opened.fetchval("SELECT current_setting($1)", name)) != "on":
                raise SystemExit(f"The server has {name}={value}, where durable costs less. Set it to on.")
        # Only where it is a process of this machine.
        local = await opened.fetchval("SELECT inet_server_addr() = inet_client_addr() OR inet_server_addr() IS NULL")
        pid = parent_of(await opened.fetchval("SELECT pg_backend_pid()")) if local else None
    return structs.replace(settings, server_pid=pid)


async def _run(settings: Settings, statement: str) -> None:
    async with connection(settings) as opened:
        await opened.execute("SET statement_timeout = 0")
        await opened.execute(statement)
