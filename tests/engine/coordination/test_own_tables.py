"""Read models in the author's own tables: written in the transaction that moves the checkpoint."""
# ruff: noqa: S608  the tables' names are the test's own

import asyncio
from pathlib import Path
from typing import Any

import pytest

from mainspring import Connection, FeedEntry, Mainspring, Received
from mainspring.app.internals import internals_of
from mainspring.errors import OperationError, WiringError
from mainspring.port.records import Unit
from tests.engine.shop import Charge, Note, PlaceOrder, Ship, Shop
from tests.support.postgres.server import Unavailable, postgres_url
from tests.support.running import run
from tests.support.waiting import until

CREATE = "CREATE TABLE {table} (id TEXT PRIMARY KEY, notes INTEGER NOT NULL)"


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'test.db'}"
    try:
        return postgres_url(tmp_path)
    except Unavailable as reason:
        pytest.skip(str(reason))


async def write(entry: FeedEntry, connection: Connection, table: str) -> None:
    match entry.event:
        case Received(PlaceOrder(order_id)):
            await connection.execute(f"INSERT INTO {table} (id, notes) VALUES ($1, 0)", order_id)
        case Received(Note(order_id)):
            await connection.execute(f"UPDATE {table} SET notes = notes + 1 WHERE id = $1", order_id)
        case _:
            pass


def shop(url: str, name: str = "orders", **options: Any) -> Mainspring:
    app = Mainspring(url)
    app.add(Shop())
    app.external(Charge, Ship)
    app.projections.add(name=f"{name}_{tail(url)}", create=CREATE, **options)(write)
    return app


def tail(url: str) -> str:
    """Return what tells the tests' tables apart: those of PostgreSQL share a schema."""
    return "".join(character for character in url[-12:].lower() if character.isalnum())


async def ask(app: Mainspring, statement: str) -> list[tuple[Any, ...]]:
    loan = await internals_of(app).engine.store.lend(0, 5)
    try:
        return [tuple(row) for row in await loan.connection.fetch(statement)]
    finally:
        await loan.roll_back()


async def rows(app: Mainspring) -> list[tuple[Any, ...]]:
    return await ask(app, f"SELECT id, notes FROM orders_{tail(internals_of(app).url)} ORDER BY id")


async def busy(app: Mainspring, begin: int, count: int = 10) -> None:
    for number in range(begin, begin + count):
        await app.send(PlaceOrder(f"o-{number:03}"))
        for text in range(number % 3):
            await app.send(Note(f"o-{number:03}", str(text)))


def expected(count: int) -> list[tuple[str, int]]:
    return [(f"o-{number:03}", number % 3) for number in range(count)]


def test_two_workers_write_each_event_once_and_a_rebuild_equals_live(url: str) -> None:
    async def main() -> None:
        async with shop(url) as one, shop(url) as two:
            orders = one.projections(f"orders_{tail(url)}")
            await asyncio.gather(busy(one, 0), busy(two, 10))
            await orders.caught_up()
            assert await rows(one) == expected(20)
            sending = asyncio.create_task(busy(two, 20))
            assert await orders.rebuild() == 2
            await sending
            await orders.caught_up()
            assert await rows(one) == expected(30)
            await until(lambda: _is_gone(one, f"orders_{tail(url)}_1"))
            with pytest.raises(OperationError, match="writes to tables of its own"):
                await orders.get("o-000")

    run(main)


async def _is_gone(app: Mainspring, table: str) -> bool:
    try:
        await ask(app, f"SELECT count(*) FROM {table}")
    except Exception:  # noqa: BLE001  each driver has its own error for a table that is not there
        return True
    return False


def test_what_there_was_no_time_for_is_written_with_the_next_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mainspring.engine.projections.folding.SECONDS_PER_PIECE", -1.0)  # one event in each

    async def main() -> None:
        async with shop(f"sqlite:///{tmp_path / 'test.db'}") as app:
            await busy(app, 0, 3)
            await app.projections(f"orders_{tail(internals_of(app).url)}").caught_up()
            assert await rows(app) == expected(3)

    run(main)


def test_a_failure_in_the_middle_leaves_nothing_half_written(url: str) -> None:
    failing = True

    async def picky(entry: FeedEntry, connection: Connection, table: str) -> None:
        await write(entry, connection, table)
        if failing and entry.event == Received(Note("o-002", "1")):
            raise ValueError("after the statement")

    async def main() -> None:
        nonlocal failing
        app = Mainspring(url)
        app.add(Shop())
        app.external(Charge, Ship)
        name = f"orders_{tail(url)}"
        app.projections.add(name=name, create=CREATE)(picky)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("mainspring.engine.projections.projector.FIRST_BACKOFF_SECONDS", 0.01)
            patch.setattr("mainspring.engine.claiming.claimer.POLL_SECONDS", 0.05)  # it hears of nothing before
            async with app:
                await busy(app, 0)
                await until(lambda: _stopped(app, name))
                assert await rows(app) == [("o-000", 0), ("o-001", 1), ("o-002", 1)]
                status = await app.projections(name).status()
                assert status.live is not None
                assert "Shop/o-002 position 6 (Received Note)" in (status.live.error or "")
                failing = False
                await app.projections(name).caught_up()
                assert await rows(app) == expected(10)

    run(main)


async def _stopped(app: Mainspring, name: str) -> bool:
    return (await app.projections(name).status()).stopped


def test_a_table_that_cannot_be_created_is_shown(url: str) -> None:
    async def main() -> None:
        app = Mainspring(url)
        app.add(Shop())
        app.external(Charge, Ship)
        name = f"broken_{tail(url)}"
        app.projections.add(name=name, create="CREATE TABEL {table} (id TEXT)")(write)
        async with app:
            await until(lambda: _stopped(app, name))
            live = (await app.projections(name).status()).live
            assert "its table cannot be created" in ((live and live.error) or "")

    run(main)


def test_tables_of_ones_own_are_reset_in_place(url: str) -> None:
    table = f"places_{tail(url)}"

    async def places(entry: FeedEntry, connection: Connection) -> None:
        if isinstance(entry.input, PlaceOrder):
            await connection.execute(f"INSERT INTO {table} (id) VALUES ($1)", entry.instance)

    async def empty(connection: Connection) -> None:
        await connection.execute(f"DELETE FROM {table}")

    def make(**options: Any) -> Mainspring:
        app = Mainspring(url)
        app.add(Shop())
        app.external(Charge, Ship)
        app.projections.add(workflows=[Shop], **options)(places)
        return app

    async def main() -> None:
        app = make()
        await app.start(work=False)
        loan = await internals_of(app).engine.store.lend(0, 5)
        await loan.connection.execute(f"CREATE TABLE {table} (id TEXT PRIMARY KEY)")
        await loan.commit(Unit("", ""))
        await app.stop()
        async with make() as app:
            await busy(app, 0)
            await app.projections("places").caught_up()
            with pytest.raises(OperationError, match="tables that only you know"):
                await app.projections("places").rebuild()
        async with make(version=2, reset=empty) as app:
            await app.projections("places").caught_up()
            found = await ask(app, f"SELECT id FROM {table} ORDER BY id")
            assert found == [(id,) for id, _ in expected(10)]
            status = await app.projections("places").status()
            assert status.live is not None
            assert (status.live.version, status.live.generation) == (2, 2)

    run(main)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"create": "CREATE TABLE orders (id TEXT)"}, "same in each generation"),
        ({"create": CREATE, "name": "my orders"}, "no name for a table"),
        ({"create": CREATE, "reset": write}, "both `create` and `reset`"),
        ({"version": 2}, "cannot be filled anew"),
        ({}, r"async def write\(entry, connection\)"),
    ],
)
def test_what_could_not_be_rebuilt_is_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(WiringError, match=problem):
        Mainspring("sqlite:///unused.db").projections.add(**options)(write)
