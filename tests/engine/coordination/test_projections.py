"""Read models that mainspring keeps: each equals the fold of the feed, whoever fills it and whatever happens."""

import asyncio
import random
from datetime import timedelta
from typing import Any

import pytest

from mainspring import FeedEntry, Mainspring, Received
from mainspring.app.internals import internals_of
from mainspring.errors import NoSuchNameError, StoreUnreachableError, WaitTimeoutError, WiringError
from mainspring.port.projections import Advance
from mainspring.sealing import Compressed
from tests.engine.coordination.family import Adder, BookLeg, Half, Number, PlanTrip, Sum, travel
from tests.engine.coordination.orders_read import Order, by_order, expected, fold, kept, shop
from tests.engine.shop import Charge, Charged, Note, PlaceOrder, Ship, Shop
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.soaking import some_of
from tests.support.waiting import until

ORDERS = 12


def untyped(document: Any, entry: Any) -> Any:
    return document if entry else None


def of_names(document: tuple[str, ...] | None, entry: FeedEntry) -> tuple[str, ...]:
    return (*(document or ()), entry.instance)


async def busy(app: Mainspring, seed: int, count: int = 60) -> None:
    """Send what comes to some orders, in a random order."""
    chance = random.Random(seed)  # noqa: S311  no secret
    for number in range(ORDERS):
        await app.send(PlaceOrder(f"{seed}-{number}", number))
    for number in range(count):
        order = f"{seed}-{chance.randrange(ORDERS)}"
        text = "drop" if chance.random() < 0.05 else f"n{number}"
        message = Charged(order) if chance.random() < 0.1 and number > count // 2 else Note(order, text)
        await app.send(message)


async def busy_thrice(app: Mainspring, seed: int) -> None:
    """Be busy in three parts, each of which is in the read model before the next begins: it moves at least thrice."""
    for part in range(3):
        await busy(app, seed + part, 20)
        await app.projections("orders").caught_up()


def test_a_projection_equals_the_fold_at_every_checkpoint(make_app: MakeApp) -> None:
    async def main() -> None:
        async with shop(make_app()) as app:
            store, seen = internals_of(app).engine.store, list[tuple[int, dict[str, Order]]]()
            advance = store.advance

            async def watched(move: Advance) -> bool:
                moved = await advance(move)
                if moved and move.position >= 0:
                    seen.append((move.position, await kept(app)))
                return moved

            store.advance = watched
            await busy_thrice(app, 10)
            assert len(seen) >= 3
            for position, documents in seen:
                assert documents == await expected(app, position)
            assert await kept(app) == await expected(app) != {}

    run(main)


@pytest.mark.parametrize("side", ["input", "output"])
def test_what_one_instance_sends_to_another_is_counted_once(side: str, make_app: MakeApp) -> None:
    async def main() -> None:
        app = travel(make_app())

        @app.projections.add(key=lambda _: "legs")
        def legs(document: Order | None, entry: FeedEntry) -> Order | None:
            return Order((document or Order(0)).amount + isinstance(getattr(entry, side), BookLeg))

        async with app:
            await (await app.send(PlanTrip("t-1", ("book", "book")))).result()
            await app.projections("legs").caught_up()
            assert await app.projections("legs").get("legs") == Order(2)

    run(main)


@pytest.mark.parametrize("seed", some_of([2, 3], [2]))
def test_a_rebuild_beside_the_live_one_equals_it(make_app: MakeApp, seed: int) -> None:
    async def main() -> None:
        async with shop(make_app()) as app:
            orders = app.projections("orders")
            await busy(app, seed)
            sending = asyncio.create_task(busy(app, seed + 100))
            generation = await orders.rebuild()
            await sending
            await orders.caught_up()
            status = await orders.status()
            assert (status.live and status.live.generation, status.building) == (generation, None)
            assert await kept(app) == await expected(app)
            await until(lambda: _only(app, generation))

    run(main)


async def _only(app: Mainspring, generation: int) -> bool:
    """Tell whether the other generations are cleared away."""
    return [c.generation for c in await internals_of(app).engine.store.checkpoints("orders")] == [generation]


def test_two_workers_on_one_projection_apply_each_event_once(make_app: MakeApp) -> None:
    async def main() -> None:
        async with shop(make_app()) as one, shop(make_app()) as two:
            await asyncio.gather(busy(one, 4), busy(two, 5))
            await asyncio.gather(one.projections("orders").caught_up(), two.projections("orders").caught_up())
            assert await kept(one) == await kept(two) == await expected(one)

    run(main)


@pytest.mark.parametrize("lost", ["before", "after"])
def test_a_move_whose_outcome_is_unknown_is_made_once(make_app: MakeApp, lost: str) -> None:
    async def main() -> None:
        app = shop(make_app())
        await app.start()
        store, calls = internals_of(app).engine.store, 0
        advance = store.advance

        async def faulty(move: Advance) -> bool:
            nonlocal calls
            calls += 1
            if calls % 2 == 0:
                return await advance(move)
            if lost == "after":
                await advance(move)
            raise StoreUnreachableError("nowhere", "cut off")

        store.advance = faulty
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("mainspring.engine.projections.projector.PAUSE_AFTER_STORE_ERROR_SECONDS", 0.01)
            await busy_thrice(app, 60)
            assert calls > 3, "of the three moves at least one was lost"
            assert await kept(app) == await expected(app)
            await app.stop()

    run(main)


def test_a_worker_that_dies_leaves_the_rest_to_the_next(make_app: MakeApp) -> None:
    async def main() -> None:
        async with shop(make_app()) as app:
            await busy(app, 7, 30)
            internals_of(app).engine.projector._tasks[0].cancel()  # noqa: SLF001  a death between two moves, wherever that is
            await busy(app, 8, 30)
        async with shop(make_app()) as app:
            await app.projections("orders").caught_up()
            assert await kept(app) == await expected(app)

    run(main)


def test_an_event_that_cannot_be_folded_stops_its_projection_alone_and_is_named(make_app: MakeApp) -> None:
    poisoned = True

    def picky(document: Order | None, entry: FeedEntry) -> Order | None:
        if poisoned and entry.event == Received(Note("o-1", "poison")):
            raise ValueError("I will not")
        return fold(document, entry)

    async def main() -> None:
        nonlocal poisoned
        app = shop(make_app())
        app.projections.add(name="picky", key=by_order)(picky)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("mainspring.engine.projections.projector.FIRST_BACKOFF_SECONDS", 0.01)
            patch.setattr("mainspring.engine.claiming.claimer.POLL_SECONDS", 0.05)  # it hears of nothing before
            async with app:
                for message in (PlaceOrder("o-1", 5), Note("o-1", "fine"), Note("o-1", "poison"), PlaceOrder("o-2", 6)):
                    await app.send(message)
                await app.projections("orders").caught_up()
                await until(lambda: _stopped(app))
                status = await app.projections("picky").status()
                assert status.live is not None
                assert "Shop/o-1 position 6 (Received Note) at" in (status.live.error or "")
                assert "ValueError: I will not" in (status.live.error or "")
                assert await app.projections("picky").get("o-1") == Order(5, ("fine",))
                assert await app.projections("picky").get("o-2") is None
                assert await app.projections("orders").get("o-2") == Order(6)
                with pytest.raises(WaitTimeoutError, match="I will not"):
                    await app.projections("picky").caught_up(timedelta(seconds=0.05))
                poisoned = False
                await app.projections("picky").caught_up()
                assert await app.projections("picky").get("o-2") == Order(6)
                assert not (await app.projections("picky").status()).stopped

    run(main)


async def _stopped(app: Mainspring) -> bool:
    return (await app.projections("picky").status()).stopped


def test_a_new_version_is_built_beside_the_old_one_and_takes_its_place(make_app: MakeApp) -> None:
    async def main() -> None:
        async with shop(make_app()) as old:
            await busy(old, 9, 20)
            await old.projections("orders").caught_up()
            async with shop(make_app(), version=2) as new:
                await new.projections("orders").caught_up()
                status = await new.projections("orders").status()
                assert status.live is not None
                assert (status.live.version, status.live.generation) == (2, 2)
                await busy(old, 10, 20)  # the old code leaves what it does not know alone
                await new.projections("orders").caught_up()
                assert await kept(new) == await expected(new)
                assert [
                    c.version
                    for c in await internals_of(new).engine.store.checkpoints("orders")
                    if c.status != "retired"
                ] == [2]

    run(main)


def test_what_was_purged_is_not_in_a_rebuild(make_app: MakeApp) -> None:
    async def main() -> None:
        async with shop(make_app()) as app:
            await app.send(PlaceOrder("o-1", 1))
            await app.send(PlaceOrder("o-2", 2))
            await app.instance_at("Shop/o-2").cancel()
            orders = app.projections("orders")
            await orders.caught_up()
            store = internals_of(app).engine.store
            await store.purge((await store.purgeable("Shop", store.now_us() + 3_600_000_000, 10)).found, 1_000)
            assert await orders.get("o-2") == Order(2)
            await orders.rebuild()
            await orders.caught_up()
            assert await kept(app) == {"o-1": Order(1)}

    run(main)


def test_documents_are_sealed_like_messages(make_app: MakeApp) -> None:
    async def main() -> None:
        app = make_app()
        sealed = shop(Mainspring(internals_of(app).url, store=internals_of(app).given_store, seal=Compressed()))
        async with sealed:
            await sealed.send(PlaceOrder("o-1", 1))
            await sealed.send(Note("o-1", "x" * 5_000))
            await sealed.projections("orders").caught_up()
            assert await sealed.projections("orders").get("o-1") == Order(1, ("x" * 5_000,))
            plain: Any = internals_of(sealed).engine.store
            (document,) = await plain._store.documents("orders", ["o-1"])  # noqa: SLF001  under the seal
            assert len(document.body) < 500

    run(main)


def test_keys_are_listed_by_prefix_in_their_order(make_app: MakeApp) -> None:
    async def main() -> None:
        async with shop(make_app()) as app:
            ids = ["a", "a-1", "a-2", "a-é", "b", "🙂", "Z"]
            for id in ids:
                await app.send(PlaceOrder(id, 1))
            orders = app.projections("orders")
            await orders.caught_up()
            assert [key for key, _ in await orders.list()] == sorted(ids)
            assert [key for key, _ in await orders.list(prefix="a-", limit=2)] == ["a-1", "a-2"]
            assert [key for key, _ in await orders.list(prefix="a-", after="a-2")] == ["a-é"]
            assert [key for key, _ in await orders.list(prefix="🙂")] == ["🙂"]

    run(main)


def test_the_lag_is_shown_and_grows_without_a_worker(make_app: MakeApp) -> None:
    async def main() -> None:
        async with shop(make_app()) as app:
            await app.send(PlaceOrder("o-1", 1))
            await app.projections("orders").caught_up()
        client = shop(make_app())
        await client.start(work=False)
        await client.send(PlaceOrder("o-2", 1))
        (status,) = await client.projections.list()
        assert status.live is not None
        assert (status.live.events, status.live.seconds >= 0, status.stopped) == (4, True, False)
        await client.stop()

    run(main)


def test_an_app_without_projections_has_no_task_and_no_query_for_them(make_app: MakeApp) -> None:
    async def main() -> None:
        app = make_app()
        app.add(Shop())
        app.external(Charge, Ship)
        async with app:
            names = [task.get_name() for task in asyncio.all_tasks()]
            assert not [name for name in names if "projection" in name]
            assert internals_of(app).engine.committer._heard is None  # noqa: SLF001
            assert await app.projections.list() == []

    run(main)


@pytest.mark.parametrize(
    ("options", "function", "problem"),
    [
        ({"key": by_order, "name": "x" * 61}, fold, "is not a text of 1 to 60"),
        ({"key": by_order, "version": 0}, fold, "version=0"),
        ({"key": by_order, "create": "CREATE TABLE {table} (id TEXT)"}, fold, "mainspring keeps its documents"),
        ({}, fold, r"async def fold\(entry, connection\)"),
        ({"key": by_order}, lambda *_: None, "cannot be shown"),
        ({"key": by_order, "name": "a"}, untyped, "which documents it keeps"),
        ({"key": by_order}, of_names, r"of tuple\[str, ...\], which is no class. Use a frozen dataclass"),
        ({"key": by_order, "workflows": [7]}, fold, "7 is not a workflow"),
        ({"key": by_order, "transaction": timedelta(hours=1)}, fold, "transaction="),
    ],
)
def test_a_projection_that_could_not_work_is_refused(options: dict[str, Any], function: Any, problem: str) -> None:
    with pytest.raises(WiringError, match=problem):
        Mainspring("memory://").projections.add(**options)(function)


def test_wiring_names_what_is_missing() -> None:
    async def main() -> None:
        app = shop(Mainspring("memory://"))
        with pytest.raises(WiringError, match="Two projections are named 'orders'"):
            app.projections.add(name="orders", key=by_order)(fold)
        app.projections.add(name="others", key=by_order, workflows=["Others"])(fold)
        with pytest.raises(WiringError, match="others follows Others"):
            await app.start()
        own = Mainspring("memory://")

        @own.projections.add
        async def rows(entry: FeedEntry, connection: Any) -> None: ...

        with pytest.raises(WiringError, match="no database in memory"):
            await own.start()
        async with shop(Mainspring("memory://")) as shown:
            with pytest.raises(NoSuchNameError, match="nothing is not declared here"):
                await shown.projections("nothing").get("a")
            with pytest.raises(NoSuchNameError, match="does not exist"):
                await shown.projections("nothing").status()

    run(main)


def test_what_the_engine_began_for_itself_is_in_no_projection_that_names_no_workflows(make_app: MakeApp) -> None:
    async def main() -> None:
        app = make_app()
        app.add(Adder())

        @app.handler
        async def half(command: Half) -> Number:
            return Number(command.number // 2)

        @app.projections.add(key=lambda entry: entry.workflow)
        def seen(document: Order | None, entry: FeedEntry) -> Order | None:
            return Order((document or Order(0)).amount + 1)

        app.schedules.add("nightly", message=Sum("s-2", ()), cron="0 3 * * *")
        async with app:
            await (await app.send(Sum("s-1", (2, 4)))).result()
            await app.projections("seen").caught_up()
            assert [key for key, _ in await app.projections("seen").list()] == ["Adder"]

    run(main)
