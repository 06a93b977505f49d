"""PostgreSQL stores opened and closed around a test, and a second opinion on what they did."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg  # pyright: ignore[reportMissingTypeStubs]  it has none

from mainspring.port.clock import Clock
from mainspring.stores.postgres import PostgresStore
from mainspring.stores.postgres.address import Address
from mainspring.stores.postgres.statements import within
from mainspring.stores.postgres.store import Connected
from mainspring.testing.clock import VirtualClock
from tests.support.postgres.server import postgres_url
from tests.support.waiting import until


@asynccontextmanager
async def opened(
    folder: Path, clock: Clock | None = None, url: str = "", **settings: Any
) -> AsyncGenerator[PostgresStore]:
    """Open a store, and close it whatever happens."""
    store = PostgresStore(url or postgres_url(folder), clock or VirtualClock(), **settings)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


def inside(store: PostgresStore) -> Connected:
    """Return what no verb of the port shows."""
    return store._open()  # noqa: SLF001


@asynccontextmanager
async def other_session(folder: Path, url: str = "") -> AsyncGenerator[Any]:
    """Connect past the store, as an operator would."""
    library: Any = asyncpg
    connection = await library.connect(Address(url or postgres_url(folder)).dsn)
    try:
        yield connection
    finally:
        await connection.close()


async def somebody_waits(operator: Any, holder: Any = None) -> None:
    """Wait until a session waits for a lock that a holder has: the operator, or another one who cannot look itself."""
    waits = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid)))"
    await until(lambda: operator.fetchval(waits, (holder or operator).get_server_pid()))


def sql(folder: Path, text: str) -> str:
    """Return a statement that is written for the schema `mainspring` for the test's own."""
    return within(Address(postgres_url(folder)).schema, text)
