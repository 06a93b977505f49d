"""What goes wrong in a transaction of one's own is said in mainspring's errors, on every store that has a database."""

import os
from collections.abc import Awaitable, Callable, Generator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from mainspring import Mainspring
from mainspring.app.transactions import Transaction
from mainspring.errors import (
    LendingError,
    MainspringError,
    StatementError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnreachableError,
)
from tests.stores.postgres_support import other_session
from tests.support.postgres.schemas import clean_schema
from tests.support.running import run

INSERT = "INSERT INTO seats (id, who) VALUES ($1, $2)"


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[str]:
    with clean_schema() if request.param == "postgres" else nullcontext(f"sqlite:///{tmp_path / 'test.db'}") as url:
        yield url


@pytest.fixture
def postgres() -> Generator[str]:
    with clean_schema() as url:
        yield url


def _table(url: str) -> str:
    """Return what makes a table that is rolled back. SQLite lets nobody make temporary ones there."""
    temporary = "" if url.startswith("sqlite") else "TEMPORARY "
    return f"CREATE {temporary}TABLE seats (id integer PRIMARY KEY, who text NOT NULL)"


@pytest.mark.parametrize(
    "statement",
    ["COMMIT", "rollback", " -- so\n END", "/* so */ ABORT", "; COMMIT AND CHAIN", "PREPARE TRANSACTION 'a'"],
)
def test_a_statement_that_would_end_it_is_refused_and_nothing_of_it_is_kept(url: str, statement: str) -> None:
    async def work(transaction: Transaction) -> None:
        await transaction.execute("CREATE TABLE ended_too_early (id integer)")  # fails where one was kept
        await transaction.execute(statement)

    async def main() -> None:
        async with Mainspring(url) as app:
            for _ in range(2):
                error = await failed(app, work)
                assert isinstance(error, LendingError)
                assert "would end the transaction before its time. Leave it out" in str(error)

    run(main)


async def failed(app: Mainspring, work: Callable[[Transaction], Awaitable[None]]) -> MainspringError:
    """Return how a transaction fails in which something is done."""
    try:
        async with app.transaction() as transaction:
            await work(transaction)
    except MainspringError as error:
        return error
    raise AssertionError("it was committed")


@pytest.mark.parametrize(
    ("statement", "values", "refused"),
    [
        (INSERT, (1, "ann"), True),
        (INSERT, (2, None), True),
        (INSERT, (2,), False),
        (INSERT, (2, object()), False),
        ("INSERT INTO nowhere VALUES (1)", (), False),
        ("SELEC 1", (), False),
    ],
    ids=["repeated", "missing", "too few", "no value", "no table", "no statement"],
)
def test_a_statement_that_fails_is_named(url: str, statement: str, values: tuple[Any, ...], *, refused: bool) -> None:
    async def work(transaction: Transaction) -> None:
        await transaction.execute(_table(url))
        await transaction.execute(INSERT, 1, "ann")
        with pytest.raises(StatementError) as raised:
            await transaction.execute(statement, *values)
        error = raised.value
        assert (error.statement, error.refused) == (statement, refused)
        assert type(error.__cause__).__name__ in str(error)

    async def main() -> None:
        async with Mainspring(url) as app:
            error = await failed(app, work)
            assert isinstance(error, LendingError)
            assert "so nothing of this transaction can be kept" in str(error)

    run(main)


def test_several_rows_at_once_fail_the_same_way(url: str) -> None:
    async def work(transaction: Transaction) -> None:
        await transaction.execute(_table(url))
        await transaction.executemany(INSERT, [(1, "ann"), (1, "ben")])

    async def main() -> None:
        async with Mainspring(url) as app:
            error = await failed(app, work)
            assert isinstance(error, StatementError)
            assert error.refused

    run(main)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("40P01", StoreBusyError),
        ("40001", StoreBusyError),
        ("53100", StoreFullError),
        ("53200", StoreError),
        ("25006", StoreReadOnlyError),
        ("57014", StoreError),
        ("42501", StatementError),
        ("55P03", StatementError),
        ("23514", StatementError),
        ("P0001", StatementError),
    ],
)
def test_what_the_server_is_in_trouble_with_is_the_stores(
    postgres: str, code: str, kind: type[MainspringError]
) -> None:
    async def work(transaction: Transaction) -> None:
        await transaction.execute(f"DO $$ BEGIN RAISE EXCEPTION 'so' USING ERRCODE = '{code}'; END $$")

    async def main() -> None:
        async with Mainspring(postgres) as app:
            assert type(await failed(app, work)) is kind
            async with app.transaction() as transaction:
                assert await transaction.fetchval("SELECT 1") == 1

    run(main)


def test_a_connection_that_is_cut_meanwhile_is_the_stores(postgres: str) -> None:
    async def main() -> None:
        async with other_session(Path(), postgres) as operator, Mainspring(postgres) as app:

            async def work(transaction: Transaction) -> None:
                pid = await transaction.fetchval("SELECT pg_backend_pid()")
                await operator.fetchval("SELECT pg_terminate_backend($1, 5000)", pid)
                await transaction.fetchval("SELECT 1")

            assert type(await failed(app, work)) is StoreUnreachableError

    run(main)


def test_a_constraint_that_is_checked_at_the_commit_is_the_statements(postgres: str) -> None:
    table = f"seats_{os.getpid()}"

    async def work(transaction: Transaction) -> None:
        await transaction.executemany(f"INSERT INTO {table} VALUES ($1)", [(1,), (1,)])  # noqa: S608  its name is ours

    async def main() -> None:
        async with other_session(Path(), postgres) as operator, Mainspring(postgres) as app:
            await operator.execute(f"CREATE TABLE {table} (id integer UNIQUE DEFERRABLE INITIALLY DEFERRED)")
            try:
                error = await failed(app, work)
            finally:
                await operator.execute(f"DROP TABLE {table}")
            assert isinstance(error, StatementError)
            assert (error.statement, error.refused) == ("COMMIT", True)

    run(main)
