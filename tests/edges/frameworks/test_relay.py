"""The relay: what was posted becomes inputs, once, in its order, and what cannot is kept as a dead letter."""

import asyncio
from typing import Any

import pytest

from mainspring.app.scraping import exposition
from mainspring.port.ids import plain
from mainspring.port.records import Committed, Relayed, Unit
from mainspring.sealing import Compressed
from mainspring.sealing.seals import About
from mainspring.stores.postgres import PostgresStore, relay
from mainspring.stores.postgres.address import Address
from mainspring.stores.postgres.statements import within
from mainspring.stores.sealed import sealed
from mainspring.testing.clock import VirtualClock
from tests.edges.frameworks.support import Place, connected, left_of, orders_of, shop
from tests.support.rows import letters_of
from tests.support.running import run
from tests.support.waiting import until


async def post(url: str, *orders: str, **options: Any) -> None:
    """Post as another program does."""
    app = shop(url, **options)
    async with connected(url) as connection, connection.transaction():
        for order in orders:
            await app.post(Place(order), connection, id=f"m-{order}")


async def ask(url: str, statement: str) -> Any:
    async with connected(url) as connection:
        return await connection.fetchval(within(Address(url).schema, statement))


def test_messages_are_moved_in_their_order_and_no_more_than_are_asked_for(url: str) -> None:
    async def main() -> None:
        store = PostgresStore(url, VirtualClock())
        await store.open()
        await post(url, *"abcde")
        assert [(await store.relay(2)).count for _ in range(4)] == [2, 2, 1, 0]
        worker = await store.register_worker("w", 1_000_000)
        claims = await store.claim(worker, [], ["Orders"], 10)
        assert [row.message_id for row in claims.inputs] == [f"m-{order}" for order in "abcde"]
        await store.close()

    run(main)


def test_large_ones_are_moved_a_few_at_a_time(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        store = PostgresStore(url, VirtualClock())
        await store.open()
        await post(url, *"abcde")
        monkeypatch.setattr(relay, "BYTES_AT_ONCE", len(b'{"order":"a","amount":1}') + 1)
        assert [(await store.relay(10)).count for _ in range(4)] == [2, 2, 1, 0]
        await post(url, "f")
        monkeypatch.setattr(relay, "BYTES_AT_ONCE", 1)
        assert (await store.relay(10)).count == 1
        await store.close()

    run(main)


def test_what_was_posted_counts_as_waiting(url: str) -> None:
    async def main() -> None:
        store = PostgresStore(url, VirtualClock())
        await store.open()
        await post(url, "a", "b", "c")
        assert (await store.stats()).inbox == 3
        await store.relay(2)
        assert (await store.stats()).inbox == 3
        await store.close()

    run(main)


def test_a_claim_tells_that_something_was_posted(url: str) -> None:
    async def main() -> None:
        store = PostgresStore(url, VirtualClock())
        await store.open()
        worker = await store.register_worker("w", 1_000_000)
        assert not (await store.claim(worker, [], ["Orders"], 10)).posted
        await post(url, "a")
        assert (await store.claim(worker, [], ["Orders"], 10)).posted
        await store.close()

    run(main)


def test_while_somebody_moves_them_nobody_else_does(url: str) -> None:
    async def main() -> None:
        store = PostgresStore(url, VirtualClock())
        await store.open()
        await post(url, "a")
        async with connected(url) as other:
            transaction = other.transaction()
            await transaction.start()
            await other.execute("SELECT pg_advisory_xact_lock($1::int, -3)", Address(url).lock_class)
            assert await store.relay(10) == Relayed(0)
            await transaction.rollback()
        assert (await store.relay(10)).count == 1
        await store.close()

    run(main)


def test_a_transaction_that_is_still_open_holds_nobody_up(url: str) -> None:
    async def main() -> None:
        app = shop(url)
        async with app, connected(url) as slow:
            transaction = slow.transaction()
            await transaction.start()
            await app.post(Place("slow"), slow)
            await post(url, "quick")
            await until(lambda: completed(app, "quick"))
            assert await orders_of(app) == {"quick"}
            await transaction.commit()
            await until(lambda: completed(app, "slow"))

    run(main)


async def completed(app: Any, order: str) -> bool:
    return order in await orders_of(app)


def test_a_damaged_one_becomes_a_dead_letter_and_the_others_flow_on(url: str) -> None:
    async def main() -> None:
        app = shop(url)
        app.observe(metrics=True)
        await post(url, "a", "b")
        await ask(url, "UPDATE mainspring.posted SET body = 'xyz' WHERE message_id = 'm-a'")
        async with app:
            await until(lambda: completed(app, "b"))
            assert b'mainspring_dead_letters_made_total{workflow="Orders"} 1.0' in (await exposition(app))[0]
            (letter,) = await letters_of(app)
            assert (plain(letter.message_id), letter.instance, letter.body) == ("m-a", "a", b"xyz")
            assert letter.reason == "it was damaged after it was posted (position 1)"
        assert await left_of(url) == 0

    run(main)


REFUSES = """
CREATE FUNCTION mainspring.refuses() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'never' USING ERRCODE = '{}'; END $$;
CREATE TRIGGER refuses BEFORE INSERT ON mainspring.inbox FOR EACH ROW WHEN (NEW.message_id = 'm-b')
EXECUTE FUNCTION mainspring.refuses();
"""


@pytest.mark.parametrize("code", ["data_exception", "unique_violation"])
def test_one_that_the_database_refuses_becomes_a_dead_letter_and_the_others_flow_on(code: str, url: str) -> None:
    async def main() -> None:
        app = shop(url)
        await post(url, "a", "b", "c")
        async with connected(url) as operator:
            await operator.execute(within(Address(url).schema, REFUSES.format(code)))
        async with app:
            await until(lambda: completed(app, "c"))
            assert await orders_of(app) == {"a", "c"}
            (letter,) = await app.dead_letters()
            assert (letter.message_id, letter.reason) == ("m-b", "the database refuses it: never")
        assert await left_of(url) == 0

    run(main)


def test_what_is_posted_is_sealed_like_all_the_rest(url: str) -> None:
    async def main() -> None:
        seal = Backwards()
        await post(url, "a", seal=seal)
        assert await ask(url, "SELECT body FROM mainspring.posted") == Backwards().close(b'{"order":"a","amount":1}')
        app = shop(url, seal=seal)
        async with app:
            await until(lambda: completed(app, "a"))
            assert [str(entry.event) for entry in await app.instance_at("Orders/a").stream() if entry.message_id] == [
                "InitiatedBy(message=Place(order='a', amount=1))"
            ]

    run(main)


class Backwards:
    """A seal that everybody can see through. Under another key the same body has other bytes."""

    def __init__(self, key: bytes = b"1") -> None:
        self.key = key

    def close(self, body: bytes, about: About | None = None) -> bytes:
        return b"sealed" + self.key + body[::-1]

    def open(self, stored: bytes, about: About) -> bytes:
        return stored[7:][::-1] if stored.startswith(b"sealed") else stored


def test_the_same_message_under_a_newer_key_is_still_a_duplicate(url: str) -> None:
    async def main() -> None:
        await post(url, "a", seal=Backwards(b"1"))
        store = sealed(PostgresStore(url, VirtualClock()), Backwards(b"2"))
        await store.open()
        assert (await store.relay(10)).count == 1
        await post(url, "a", seal=Backwards(b"2"))
        assert await store.relay(10) == Relayed(1)  # nobody is told of a dead letter
        assert await store.dead_letters(10) == []
        await store.close()

    run(main)


def test_another_message_under_a_newer_key_is_a_dead_letter(url: str) -> None:
    async def main() -> None:
        await post(url, "a", seal=Backwards(b"1"))
        store = sealed(PostgresStore(url, VirtualClock()), Backwards(b"2"))
        await store.open()
        app = shop(url, seal=Backwards(b"2"))
        async with connected(url) as connection, connection.transaction():
            await app.post(Place("a", 2), connection, id="m-a")
        assert (await store.relay(10)).count == 2
        assert [letter.body for letter in await store.dead_letters(10)] == [b'{"order":"a","amount":2}']
        await store.close()

    run(main)


def test_a_store_in_trouble_costs_nothing_but_time(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        app = shop(url)
        failures = 0
        relay = PostgresStore.relay

        async def failing(store: PostgresStore, limit: int) -> Relayed:
            nonlocal failures
            failures += 1
            if failures == 1:
                raise OSError("gone")
            return await relay(store, limit)

        monkeypatch.setattr("mainspring.engine.claiming.relay.PAUSE_AFTER_STORE_ERROR_SECONDS", 0.05)
        monkeypatch.setattr(PostgresStore, "relay", failing)
        async with app:
            await post(url, "a")
            await until(lambda: completed(app, "a"))
        assert failures > 1

    run(main)


def test_compressed_bodies_are_posted_too(url: str) -> None:
    async def main() -> None:
        long = "o" * 900
        await post(url, long, seal=Compressed(least_bytes=10))
        assert await ask(url, "SELECT octet_length(body) FROM mainspring.posted") < len(long) // 2
        app = shop(url, seal=Compressed(least_bytes=10))
        async with app:
            await until(lambda: completed(app, long))

    run(main)


def test_workers_that_come_and_go_move_each_message_once(url: str) -> None:
    async def main() -> None:
        stores = [PostgresStore(url, VirtualClock()) for _ in range(4)]
        for store in stores:
            await store.open()
        await post(url, *(f"o-{number:03}" for number in range(200)))
        counts = await asyncio.gather(*(relayed(store) for store in stores))
        assert sum(counts) == 200
        assert (await stores[0].stats()).inbox == 200
        assert isinstance((await stores[0].commit(0, [Unit("", "")]))[0], Committed)
        for store in stores:
            await store.close()

    run(main)


async def relayed(store: PostgresStore) -> int:
    """Move what there is, as often as there is some, and return how much this store has moved."""
    total, worker = 0, await store.register_worker("w", 1_000_000)
    while (await store.claim(worker, [], [], 1)).posted:
        total += (await store.relay(17)).count
    return total
