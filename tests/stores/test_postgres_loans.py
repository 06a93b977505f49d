"""Loans on PostgreSQL: the connection goes back as it came, whatever a handler did with it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from mainspring.errors import LendingError
from mainspring.port.records import Committed, Unit
from mainspring.stores.postgres import PostgresStore
from mainspring.testing.store_contract.rig import accept
from tests.stores.postgres_support import inside, opened, other_session
from tests.support.running import run

LIMIT_SECONDS = 60.0
SHOWN = ("synchronous_commit", "enable_seqscan", "statement_timeout", "search_path", "role", "plan_cache_mode")


async def settings(store: PostgresStore) -> list[Any]:
    """Return what is set in the connection that is used next."""
    async with inside(store).pool.session() as session:
        return [await session.value(f"SHOW {name}") for name in SHOWN]


async def lent(store: PostgresStore, *statements: str) -> None:
    """Commit statements as a handler would."""
    loan = await store.lend(0, LIMIT_SECONDS)
    for statement in statements:
        await loan.connection.execute(statement)
    assert isinstance(await loan.commit(accept(f"m-{statements}")), Committed)


@pytest.mark.parametrize(
    "statement",
    [
        "SET synchronous_commit = off",
        "SET search_path = pg_catalog",
        "SET statement_timeout = 0",
        "SET enable_seqscan = on",
        "SET SESSION plan_cache_mode = force_custom_plan",
        "SELECT set_config('synchronous_commit', 'off', false)",
    ],
)
def test_what_a_handler_sets_ends_with_its_transaction(statement: str, tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store:
            before = await settings(store)
            await lent(store, statement)
            assert await settings(store) == before

    run(body)


@pytest.mark.parametrize("local", ["", "LOCAL"])
def test_a_handler_that_takes_another_role_has_its_result_recorded(local: str, tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store, other_session(tmp_path) as operator:
            if not await operator.fetchval("SELECT rolsuper FROM pg_roles WHERE rolname = current_user"):
                pytest.skip("the user of the tests may not take another role")
            before = await settings(store)
            await lent(store, f"SET {local} ROLE pg_monitor")
            assert await settings(store) == before

    run(body)


def test_a_temporary_table_is_gone_with_its_transaction(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store:
            await lent(store, "CREATE TEMP TABLE seats (id integer)")
            await lent(store, "CREATE TEMP TABLE seats (id integer)", "INSERT INTO seats VALUES (1)")

    run(body)


def test_a_statement_that_nobody_awaits_is_told(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store:
            loan = await store.lend(0, LIMIT_SECONDS)
            careless = asyncio.ensure_future(loan.connection.execute("SELECT pg_sleep(60)"))
            await asyncio.sleep(0)
            with pytest.raises(LendingError, match="still under way"):
                await loan.commit(Unit("", ""))
            await asyncio.wait((careless,))
            careless.exception()
            await lent(store, "SELECT 1")

    run(body)


def test_many_rows_are_written_and_none_are_too(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store:
            loan = await store.lend(0, LIMIT_SECONDS)
            await loan.connection.execute("CREATE TEMP TABLE seats (id integer)")
            for count in (1_000, 1, 0):
                await loan.connection.executemany("INSERT INTO seats VALUES ($1)", [(n,) for n in range(count)])
            assert await loan.connection.fetchval("SELECT count(*) FROM seats") == 1_001
            await loan.roll_back()

    run(body)
