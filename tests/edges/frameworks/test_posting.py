"""Posting: a message in a transaction of somebody else's, through each library that people write their rows with."""
# ruff: noqa: PT012, S608  a transaction that is undone is a block; the tables' names are the test's own

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import asyncpg  # pyright: ignore[reportMissingTypeStubs]  it has none
import psycopg
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from mainspring import Mainspring
from mainspring.app.internals import internals_of
from mainspring.app.posting import Posted
from mainspring.engine.recording.stored_values import read_context
from mainspring.errors import EncodeError, InvalidIdError, OperationError, PostingError, WiringError
from mainspring.frameworks.flask import FlaskMainspring
from mainspring.port.ids import plain
from mainspring.stores.postgres.address import Address
from tests.edges.frameworks.support import Other, Place, connected, dsn_of, left_of, orders_of, rows_of, shop, table_of
from tests.support.postgres.server import postgres_url
from tests.support.rows import letters_of, row_of
from tests.support.running import run
from tests.support.waiting import until


class Undone(Exception):  # noqa: N818  nothing is wrong
    """Ends a transaction without a commit."""


# ---- connections that are awaited


@asynccontextmanager
async def by_asyncpg(url: str) -> AsyncGenerator[tuple[Any, Any]]:
    async with connected(url) as connection, connection.transaction():
        yield connection, lambda order: connection.execute(f"INSERT INTO {table_of(url)} VALUES ($1)", order)


@asynccontextmanager
async def by_psycopg(url: str) -> AsyncGenerator[tuple[Any, Any]]:
    async with await psycopg.AsyncConnection[Any].connect(dsn_of(url)) as connection:
        yield connection, lambda order: connection.execute(f"INSERT INTO {table_of(url)} VALUES (%s)", (order,))  # pyright: ignore[reportArgumentType]  it wants literals


@asynccontextmanager
async def by_psycopg_cursor(url: str) -> AsyncGenerator[tuple[Any, Any]]:
    connecting = await psycopg.AsyncConnection[Any].connect(dsn_of(url), autocommit=True)
    async with connecting as connection, connection.transaction(), connection.cursor() as cursor:
        yield cursor, lambda order: cursor.execute(f"INSERT INTO {table_of(url)} VALUES (%s)", (order,))  # pyright: ignore[reportArgumentType]  as above


@asynccontextmanager
async def by_session(url: str) -> AsyncGenerator[tuple[Any, Any]]:
    engine = create_async_engine(dsn_of(url).replace("postgresql:", "postgresql+asyncpg:"))
    try:
        async with AsyncSession(engine) as session, session.begin():
            yield session, lambda order: session.execute(inserting(url), {"id": order})
    finally:
        await engine.dispose()


@asynccontextmanager
async def by_engine(url: str) -> AsyncGenerator[tuple[Any, Any]]:
    engine = create_async_engine(dsn_of(url).replace("postgresql:", "postgresql+psycopg:"))
    try:
        async with engine.begin() as connection:
            yield connection, lambda order: connection.execute(inserting(url), {"id": order})
    finally:
        await engine.dispose()


def inserting(url: str) -> Any:
    return sqlalchemy.text(f"INSERT INTO {table_of(url)} VALUES (:id)")


# ---- those that are not


@contextmanager
def plain_psycopg(url: str) -> Generator[tuple[Any, Any]]:
    with psycopg.connect(dsn_of(url)) as connection:
        yield connection, lambda order: connection.execute(f"INSERT INTO {table_of(url)} VALUES (%s)", (order,))  # pyright: ignore[reportArgumentType]  as above


@contextmanager
def plain_session(url: str) -> Generator[tuple[Any, Any]]:
    engine = sqlalchemy.create_engine(dsn_of(url).replace("postgresql:", "postgresql+psycopg:"))
    try:
        with Session(engine) as session, session.begin():
            yield session, lambda order: session.execute(inserting(url), {"id": order})
    finally:
        engine.dispose()


@contextmanager
def plain_engine(url: str) -> Generator[tuple[Any, Any]]:
    engine = sqlalchemy.create_engine(dsn_of(url).replace("postgresql:", "postgresql+psycopg:"))
    try:
        with engine.begin() as connection:
            yield connection, lambda order: connection.execute(inserting(url), {"id": order})
    finally:
        engine.dispose()


Waiting = Callable[[str], AbstractAsyncContextManager[tuple[Any, Any]]]
Plain = Callable[[str], AbstractContextManager[tuple[Any, Any]]]


@pytest.mark.parametrize("begun", [by_asyncpg, by_psycopg, by_psycopg_cursor, by_session, by_engine])
def test_a_message_is_sent_if_the_transaction_commits_and_only_then(begun: Waiting, url: str) -> None:
    async def main() -> None:
        app = shop(url)  # which does not run here
        async with begun(url) as (connection, insert):
            await insert("o-1")
            posted = await app.post(Place("o-1"), connection, id="m-1", actor="ann")
            assert posted == Posted("m-1", ("Orders/o-1",))
        with pytest.raises(Undone):
            async with begun(url) as (connection, insert):
                await insert("o-2")
                await app.post(Place("o-2"), connection)
                raise Undone
        await told(url, {"o-1"})

    run(main)


@pytest.mark.parametrize("begun", [plain_psycopg, plain_session, plain_engine])
def test_the_same_without_await(begun: Plain, url: str) -> None:
    app = shop(url)
    with begun(url) as (connection, insert):
        insert("o-1")
        assert app.post.blocking(Place("o-1"), connection, id="m-1").instances == ("Orders/o-1",)
    with pytest.raises(Undone), begun(url) as (connection, insert):
        insert("o-2")
        app.post.blocking(Place("o-2"), connection)
        raise Undone
    run(lambda: told(url, {"o-1"}))


async def told(url: str, expected: set[str]) -> None:
    """See that a worker carries out what was posted, and nothing else, and that the rows are the same."""
    async with shop(url) as worker:
        await until(lambda: same(worker, expected))
        assert await left_of(url) == 0
        assert await orders_of(worker) == await rows_of(url) == expected


async def same(app: Mainspring, expected: set[str]) -> bool:
    return await orders_of(app) >= expected


def test_a_worker_that_runs_hears_of_it_at_once_and_takes_what_was_posted_in_its_order(url: str) -> None:
    async def main() -> None:
        async with shop(url) as app, connected(url) as connection:
            async with connection.transaction():
                for number in range(20):
                    await app.post(Place(f"o-{number:02}"), connection)
            await until(lambda: same(app, {"o-19"}))
            heard = [row.id for row in await app.instances(workflow="Orders", limit=100)]
        assert heard == [f"o-{number:02}" for number in range(20)]

    run(main)


def test_what_is_published_goes_to_all_who_want_it_or_to_nobody(url: str) -> None:
    async def main() -> None:
        app = shop(url)
        app.add(Other())
        async with connected(url) as connection, connection.transaction():
            with pytest.raises(WiringError, match="taken by several"):
                await app.post(Place("o-1"), connection)
            posted = await app.post(Place("o-1"), connection, publish=True, correlation_id="visit-7")
            assert posted.instances == ("Orders/o-1", "Other/o-1")
        async with app:
            await until(lambda: same(app, {"o-1"}))
            assert await app.instance(Other, "o-1").result() is not None
            for identity in posted.instances:
                assert read_context((await row_of(app, app.instance_at(identity))).context).correlation_id == "visit-7"

    run(main)


def test_the_same_id_counts_once_and_another_message_under_it_becomes_a_dead_letter(url: str) -> None:
    async def main() -> None:
        app = shop(url)
        async with connected(url) as connection, connection.transaction():
            for amount in (1, 1, 2):
                await app.post(Place("o-1", amount), connection, id="m-1")
            await app.post(Place("o-2"), connection)
        async with app:
            await until(lambda: same(app, {"o-1", "o-2"}))
            (letter,) = await letters_of(app)
            assert (plain(letter.message_id), letter.body) == ("m-1", b'{"order":"o-1","amount":2}')
            assert letter.reason == "its message id was used before, for another message"
            assert len([e for e in await app.instance_at("Orders/o-1").stream() if e.message_id == "m-1"]) == 1

    run(main)


@pytest.mark.parametrize(
    ("message", "options", "error"),
    [
        (Place("o-1", "many"), {}, EncodeError),  # pyright: ignore[reportArgumentType]  what no type checker would allow
        (Place(""), {}, OperationError),
        ("a text", {}, WiringError),
        (Place("o-1"), {"id": "a\nb"}, InvalidIdError),
        (Place("o-1"), {"actor": ""}, InvalidIdError),
    ],
)
def test_what_is_wrong_with_a_message_is_said_where_it_is_posted(
    message: Any, options: dict[str, Any], error: type[Exception], url: str
) -> None:
    with pytest.raises(error):
        shop(url).post.blocking(message, connection=None, **options)


@pytest.mark.parametrize("of", ["asyncpg", "psycopg", "sqlalchemy"])
def test_a_connection_without_a_transaction_is_refused(of: str, url: str) -> None:
    async def main() -> None:
        app = shop(url)
        with pytest.raises(PostingError, match="has no transaction"):
            if of == "asyncpg":
                async with connected(url) as connection:
                    await app.post(Place("o-1"), connection)
            elif of == "psycopg":
                with psycopg.connect(dsn_of(url), autocommit=True) as connection:
                    app.post.blocking(Place("o-1"), connection)
            else:
                address = dsn_of(url).replace("postgresql:", "postgresql+psycopg:")
                engine = sqlalchemy.create_engine(address, isolation_level="AUTOCOMMIT")
                try:
                    with engine.connect() as connection:
                        app.post.blocking(Place("o-1"), connection)
                finally:
                    engine.dispose()
        assert await left_of(url) == 0

    run(main)


def test_in_a_pipeline_of_psycopg_the_servers_answer_is_waited_for(url: str) -> None:
    async def main() -> None:
        async with shop(url):
            pass  # the tables are there
        app = shop(url)
        async with await psycopg.AsyncConnection[Any].connect(dsn_of(url)) as connection, connection.pipeline():
            await app.post(Place("o-1"), connection)
        with psycopg.connect(dsn_of(url)) as connection, connection.pipeline():
            app.post.blocking(Place("o-2"), connection)
        assert await left_of(url) == 2
        async with await psycopg.AsyncConnection[Any].connect(dsn_of(url)) as connection, connection.pipeline():
            with pytest.raises(PostingError, match="another database"):
                await shop(url.replace(f"/{Address(url).database}?", "/elsewhere?")).post(Place("o-3"), connection)
        assert await left_of(url) == 2

    run(main)


def test_the_wrong_way_to_wait_is_named(url: str) -> None:
    app = shop(url)

    async def main() -> None:
        async with connected(url) as connection:
            with pytest.raises(PostingError, match=r"Use await app\.post"):
                app.post.blocking(Place("o-1"), connection)
        with psycopg.connect(dsn_of(url)) as plain, pytest.raises(PostingError, match=r"Use app\.post\.blocking"):
            await app.post(Place("o-1"), plain)

    run(main)


def test_a_connection_to_another_database_is_refused(url: str) -> None:
    async def main() -> None:
        # The same connection; but the app means a database that it does not lead to.
        app = shop(url.replace(f"/{Address(url).database}?", "/elsewhere?"))
        assert internals_of(app).url != url
        async with connected(url) as connection, connection.transaction():
            with pytest.raises(PostingError, match="leads to another database than the app's, which is 'elsewhere'"):
                await app.post(Place("o-1"), connection)
        assert await left_of(url) == 0

    run(main)


def test_a_database_without_the_tables_is_named(tmp_path: Path) -> None:
    url = postgres_url(tmp_path)

    async def main() -> None:
        async with connected(url) as connection:
            with pytest.raises(PostingError, match="start a worker once"):
                async with connection.transaction():
                    await shop(url).post(Place("o-1"), connection)

    run(main)


@pytest.mark.parametrize("url_of", ["sqlite:///shop.db", "memory://"])
def test_where_nobody_can_post_that_is_said(url_of: str) -> None:
    with pytest.raises(PostingError, match="No posting to"):
        shop(url_of).post.blocking(Place("o-1"), connection=None)


def test_a_connection_of_another_library_is_named(url: str) -> None:
    app = shop(url)
    engine = sqlalchemy.create_engine("sqlite://")
    with (
        closing(sqlite3.connect(":memory:")) as connection,
        pytest.raises(PostingError, match="cannot be posted to SQLite"),
    ):
        app.post.blocking(Place("o-1"), connection)
    with pytest.raises(PostingError, match="no connection that is known here"):
        app.post.blocking(Place("o-1"), connection=object())
    with engine.connect() as connection, pytest.raises(PostingError, match="leads to sqlite"):
        app.post.blocking(Place("o-1"), connection)
    engine.dispose()
    engine.dispose()


def test_who_may_not_insert_is_told_what_to_grant(url: str) -> None:
    async def main() -> None:
        async with connected(url) as connection:
            if not await connection.fetchval("SELECT rolsuper FROM pg_roles WHERE rolname = current_user"):
                pytest.skip("the user of the tests may not take another role")
            with pytest.raises(PostingError, match="GRANT INSERT ON"):
                async with connection.transaction():
                    await connection.execute("SET LOCAL ROLE pg_monitor")
                    await shop(url).post(Place("o-1"), connection)

    run(main)


async def one_order(app: Mainspring, pool: Any, number: int) -> None:
    """Write an order and its message, and give up every third time."""
    async with pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute(f"INSERT INTO {table_of(internals_of(app).url)} VALUES ($1)", f"o-{number}")
        await app.post(Place(f"o-{number}"), connection)
        await (transaction.rollback() if number % 3 == 0 else transaction.commit())


def test_of_a_thousand_requests_at_once_every_row_has_its_message_and_every_message_its_row(url: str) -> None:
    async def main() -> None:
        library: Any = asyncpg
        async with shop(url) as one, shop(url) as two, library.create_pool(dsn_of(url), max_size=10) as pool:
            apps = (one, two, shop(url))
            await asyncio.gather(*(one_order(apps[n % 3], pool, n) for n in range(1_000)))
            expected = {f"o-{n}" for n in range(1_000) if n % 3}
            await until(lambda: same(two, expected))
            assert await left_of(url) == 0
            assert await orders_of(one) == await rows_of(url) == expected
            assert await one.dead_letters() == []

    run(main)


def test_all_that_may_be_said_of_a_posted_message_may_be_said_to_flask() -> None:
    app = shop("postgresql://db.example/shop")
    flask = FlaskMainspring(app, SimpleNamespace(extensions={}))

    with pytest.raises(PostingError, match="no connection that is known"):
        flask.post(Place("o-1"), object(), workflow="Orders", publish=False)
