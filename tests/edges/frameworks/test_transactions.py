"""A transaction of the app's own: rows and messages together, on every store that has a database."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from mainspring import Mainspring
from mainspring.app.internals import internals_of
from mainspring.engine.handlers.handler import LONGEST_TRANSACTION
from mainspring.engine.recording.stored_values import read_context
from mainspring.errors import (
    DuplicateIdError,
    EncodeError,
    LendingError,
    OperationError,
    SettingError,
    StoreError,
    WiringError,
)
from mainspring.sealing.seals import About
from mainspring.stores.postgres.address import DEFAULT_CONNECTIONS
from tests.edges.frameworks.support import Other, Place, Placed, orders_of, shop, table_of
from tests.support.rows import row_of
from tests.support.running import run
from tests.support.waiting import until

MakeShop = Callable[[], Mainspring]


@pytest.fixture(params=["sqlite", "postgres"])
def make_shop(request: pytest.FixtureRequest, tmp_path: Path) -> MakeShop:
    if request.param == "postgres":
        url: str = request.getfixturevalue("url")
        return lambda: shop(url)
    file = f"sqlite:///{tmp_path / 'shop.db'}"

    async def create() -> None:
        async with shop(file) as app, app.transaction() as transaction:
            await transaction.execute("CREATE TABLE shop_orders (id text PRIMARY KEY)")

    run(create)
    return lambda: shop(file)


class Wrong(Exception):  # noqa: N818  a test's own
    """What an endpoint may raise."""


async def place(app: Mainspring, transaction: Any, order: str, **options: Any) -> Any:
    await transaction.execute(f"INSERT INTO {table_of(internals_of(app).url)} (id) VALUES ($1)", order)  # noqa: S608  our own name
    return transaction.send(Place(order), **options)


async def rows(app: Mainspring) -> set[str]:
    async with app.transaction() as transaction:
        found = await transaction.fetch(f"SELECT id FROM {table_of(internals_of(app).url)}")  # noqa: S608  our own name
    return {row["id"] for row in found}


def test_rows_and_messages_are_committed_together(make_shop: MakeShop) -> None:
    async def main() -> None:
        async with make_shop() as app:
            async with app.transaction() as transaction:
                receipt = await place(app, transaction, "o-1", id="m-1", actor="ann")
                assert receipt.status == "pending"
                assert await app.stats() is not None
            assert (receipt.status, receipt.message_id, str(receipt)) == ("accepted", "m-1", "Orders/o-1")
            assert (await receipt.result()).order == "o-1"
            assert await rows(app) == await orders_of(app) == {"o-1"}

    run(main)


def test_an_error_undoes_both(make_shop: MakeShop) -> None:
    async def main() -> None:
        async with make_shop() as app:
            with pytest.raises(Wrong):
                await fails(app)
            assert await rows(app) == set()
            # What is sent later is done: so whatever there was before it would be there.
            await (await app.send(Place("o-2"))).result()
            assert [row.id for row in await app.instances()] == ["o-2"]
            assert (await app.stats()).inbox == 0

    async def fails(app: Mainspring) -> None:
        async with app.transaction() as transaction:
            await place(app, transaction, "o-1")
            raise Wrong

    run(main)


def test_a_process_that_only_sends_can_do_it_too(make_shop: MakeShop) -> None:
    async def main() -> None:
        sender = make_shop()
        await sender.start(work=False)
        async with sender.transaction() as transaction:
            await place(sender, transaction, "o-1")
        assert (await sender.stats()).inbox == 1
        await sender.stop()
        async with make_shop() as worker:
            await until(lambda: has(worker, {"o-1"}))

    run(main)


async def has(app: Mainspring, orders: set[str]) -> bool:
    return await orders_of(app) == orders


def test_the_same_id_is_no_obstacle_and_another_message_under_it_is(make_shop: MakeShop) -> None:
    async def main() -> None:
        async with make_shop() as app:
            await app.send(Place("o-1"), id="m-1")
            async with app.transaction() as transaction:
                receipt = await place(app, transaction, "o-1", id="m-1")
            assert receipt.status == "duplicate"
            with pytest.raises(DuplicateIdError):
                await again(app)
            assert await rows(app) == {"o-1"}

    async def again(app: Mainspring) -> None:
        async with app.transaction() as transaction:
            await place(app, transaction, "o-2")
            transaction.send(Place("o-1", 2), id="m-1")

    run(main)


def test_what_is_wrong_with_a_message_is_said_at_its_line(make_shop: MakeShop) -> None:
    async def main() -> None:
        async with make_shop() as app:
            async with app.transaction() as transaction:
                with pytest.raises(EncodeError):
                    transaction.send(Place("o-1", "many"))  # pyright: ignore[reportArgumentType]  as a user might
                with pytest.raises(WiringError, match="No workflow takes"):
                    transaction.send("a text")  # pyright: ignore[reportArgumentType]  as above
                await place(app, transaction, "o-2")
            await until(lambda: has(app, {"o-2"}))

    run(main)


def test_what_is_published_goes_to_all_who_want_it(make_shop: MakeShop) -> None:
    async def main() -> None:
        app = make_shop()
        app.add(Other())
        async with app:
            async with app.transaction() as transaction:
                receipts = transaction.publish(Place("o-1"), correlation_id="visit-7")
            assert [str(receipt) for receipt in receipts] == ["Orders/o-1", "Other/o-1"]
            assert [await receipt.result() for receipt in receipts] == [Placed("o-1"), Placed("o-1")]
            rows = [await row_of(app, receipt) for receipt in receipts]
            assert {read_context(row.context).correlation_id for row in rows} == {"visit-7"}

    run(main)


def test_one_that_takes_too_long_is_undone_and_others_go_on(make_shop: MakeShop) -> None:
    async def main() -> None:
        async with make_shop() as app:
            with pytest.raises(LendingError, match=r"took more than 0\.1 s"):
                await slow(app)
            await (await app.send(Place("o-2"))).result()
            assert await rows(app) == set()
            assert await orders_of(app) == {"o-2"}

    async def slow(app: Mainspring) -> None:
        async with app.transaction(timedelta(seconds=0.1)) as transaction:
            await place(app, transaction, "o-1")
            await asyncio.sleep(0.3)  # longer than it may take

    run(main)


def test_one_whose_turn_does_not_come_is_told_so(make_shop: MakeShop, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        app = make_shop()
        async with app, AsyncExitStack() as before:
            # As many as there may be at once: one on SQLite, all but two connections on PostgreSQL.
            for _ in range(1 if internals_of(app).url.startswith("sqlite") else 3):
                await before.enter_async_context(app.transaction())
            with monkeypatch.context() as patch:
                patch.setattr("mainspring.app.transactions.TURN_SECONDS", 0.05)
                with pytest.raises(LendingError, match="Others have been before"):
                    await app.transaction().__aenter__()
            await before.aclose()
            async with app.transaction() as transaction:
                await place(app, transaction, "o-1")
            await until(lambda: has(app, {"o-1"}))

    run(main)


def test_who_is_cancelled_while_it_commits_leaves_nothing_half_done(make_shop: MakeShop) -> None:
    async def main() -> None:
        async with make_shop() as app:
            for moment in ("waiting", "writing", "committing"):
                with pytest.raises(asyncio.CancelledError):
                    await asyncio.create_task(one(app, moment))
            await app.send(Place("last"))
            await until(lambda: settled(app))
            assert await orders_of(app) - {"last"} == await rows(app) == {"committing"}

    async def one(app: Mainspring, moment: str) -> None:
        """Be cancelled at a moment: it is heard of where this waits next, with what it waits for on its way."""
        itself = asyncio.current_task()
        assert itself is not None
        if moment == "waiting":
            itself.cancel()
        async with app.transaction() as transaction:
            if moment == "writing":
                itself.cancel()
            await place(app, transaction, moment)
            if moment == "committing":
                itself.cancel()

    async def settled(app: Mainspring) -> bool:
        return (await app.stats()).inbox == 0 and "last" in await orders_of(app)

    run(main)


def test_without_an_event_loop(make_shop: MakeShop) -> None:
    app = make_shop()
    table = table_of(internals_of(app).url)
    with app.blocking() as blocking:
        with blocking.transaction() as transaction:
            transaction.execute(f"INSERT INTO {table} (id) VALUES ($1)", "o-1")  # noqa: S608  our own name
            receipt = transaction.send(Place("o-1"))
        assert receipt.result().order == "o-1"
        with pytest.raises(Wrong), blocking.transaction() as transaction:  # noqa: PT012  it is undone as a whole
            transaction.send(Place("o-2"))
            raise Wrong
        with blocking.transaction() as transaction:
            assert [row["id"] for row in transaction.fetch(f"SELECT id FROM {table}")] == ["o-1"]  # noqa: S608  as above
        assert [row.id for row in blocking.instances()] == ["o-1"]


def test_nobody_waits_for_what_was_not_committed(make_shop: MakeShop) -> None:
    async def main() -> None:
        async with make_shop() as app:
            with pytest.raises(Wrong):
                await fails(app)
            with pytest.raises(OperationError, match="has not committed"):
                await receipts[0].result()

    async def fails(app: Mainspring) -> None:
        async with app.transaction() as transaction:
            receipts.append(transaction.send(Place("o-1")))
            with pytest.raises(OperationError, match=r"Orders/o-1 was sent .* behind the transaction's block"):
                await receipts[0].result()
            raise Wrong

    receipts: list[Any] = []
    run(main)


def test_memory_says_that_it_has_no_database() -> None:
    async def main() -> None:
        async with shop("memory://") as app:
            with pytest.raises(LendingError, match="no database in memory"):
                async with app.transaction():
                    pass

    run(main)


def test_a_limit_that_would_hold_everybody_up_is_refused() -> None:
    with pytest.raises(SettingError, match="at most 10 s"):
        shop("memory://").transaction(timedelta(minutes=1))


def test_a_transaction_is_used_once_and_inside_its_block(make_shop: MakeShop) -> None:
    async def main() -> None:
        async with make_shop() as app:
            transaction = app.transaction()
            with pytest.raises(LendingError, match="has not begun"):
                await transaction.execute("SELECT 1")
            async with transaction:
                pass
            with pytest.raises(LendingError, match="is over"):
                transaction.send(Place("o-1"))
            with pytest.raises(LendingError, match="begun before"):
                await transaction.__aenter__()

    run(main)


class Forgetful:
    """A seal that has no key for one order."""

    def close(self, body: bytes, about: About) -> bytes:
        if about.instance == "o-2":
            raise KeyError(about.instance)
        return body

    def open(self, stored: bytes, about: About) -> bytes:
        return stored


def test_a_message_that_cannot_be_sealed_undoes_it_and_keeps_nobody_waiting(make_shop: MakeShop) -> None:
    async def main() -> None:
        app = shop(internals_of(make_shop()).url, seal=Forgetful())
        async with app:
            for _ in range(2 * DEFAULT_CONNECTIONS):  # more than there are connections to be lent
                with pytest.raises(StoreError, match=r"Orders/o-2 cannot be sealed .*Correct the seal"):
                    await fails(app)
            assert await rows(app) == set()

    async def fails(app: Mainspring) -> None:
        async with app.transaction(LONGEST_TRANSACTION) as transaction:
            await place(app, transaction, "o-1")
            await place(app, transaction, "o-2")

    run(main)


class Keyed(Forgetful):
    """Under another key the same body has other bytes."""

    def __init__(self, key: bytes) -> None:
        self.key = key

    def close(self, body: bytes, about: About) -> bytes:
        return b"#" + self.key + body

    def open(self, stored: bytes, about: About) -> bytes:
        return stored[2:] if stored.startswith(b"#") else stored


def test_the_same_message_under_a_newer_key_is_not_called_another_one(make_shop: MakeShop) -> None:
    async def main() -> None:
        async with shop(internals_of(make_shop()).url, seal=Keyed(b"1")) as app:
            await app.send(Place("o-1"), id="m-1")
        async with shop(internals_of(app).url, seal=Keyed(b"2")) as app:
            with pytest.raises(LendingError, match=r"has the message m-1 already, .* without this message"):
                await sends(app, 1)
            with pytest.raises(DuplicateIdError):
                await sends(app, 2)
            assert await rows(app) == set()

    async def sends(app: Mainspring, amount: int) -> None:
        async with app.transaction() as transaction:
            await place(app, transaction, "o-9")
            transaction.send(Place("o-1", amount), id="m-1")

    run(main)
