"""What cannot be taken becomes a dead letter with its bytes, once; the others flow on; it can be made good."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mainspring import Mainspring
from mainspring.app.undelivered import undelivered_in
from mainspring.brokers import Outgoing
from mainspring.brokers import memory as memory_broker
from mainspring.brokers.memory import MemoryBroker
from mainspring.codec import BODY_LIMIT_BYTES
from mainspring.errors import DecodeError, OperationError, WiringError
from mainspring.port.ids import plain
from mainspring.sealing import Compressed, Encrypted, FileKeys
from tests.edges.brokers.orders_and_payments import Orders, PlaceOrder, Remark, drained, memory, message, orders
from tests.support.postgres.server import postgres_url
from tests.support.rows import letters_of

STORES = ("memory", "sqlite", "postgres", "compressed", "encrypted")

Body = Callable[[Mainspring, MemoryBroker], Awaitable[None]]


def run(store: str, tmp_path: Path, body: Body) -> None:
    async def main() -> None:
        seal = None
        if store == "encrypted":
            seal = Encrypted(FileKeys(tmp_path / "keys"))
        elif store == "compressed":
            seal = Compressed()
        url = {"memory": "memory://", "postgres": ""}.get(store, f"sqlite:///{tmp_path}/orders.db")
        broker = memory()
        shop, _ = orders(url or postgres_url(tmp_path), broker, seal=seal)
        async with shop:
            await body(shop, broker)

    asyncio.run(main())


@pytest.mark.parametrize("store", STORES)
def test_each_becomes_a_letter_with_its_bytes_and_headers_and_the_others_flow_on(store: str, tmp_path: Path) -> None:
    async def body(shop: Mainspring, broker: MemoryBroker) -> None:
        good = PlaceOrder("o-1", 1)
        wrong = {
            "it cannot be read": message("orders.in", "1", b'{"order_id": '),
            "nothing here takes it": message("orders.in", "2", good, "Unknown"),
            "its workflow could not route it": message("orders.in", "3", PlaceOrder("broken", 1)),
            "its id was used before, for another message": message("orders.in", "7", PlaceOrder("o-1", 2)),
            "its id, or its instance's, cannot be stored": message("orders.in", "5", PlaceOrder("\t", 1)),
        }
        binary = message("orders.in", "6", bytes(range(256)), note="ö\0".encode().decode())
        await broker.publish([message("orders.in", "7", good), *wrong.values(), binary])
        await broker.publish([message("orders.in", "8", Remark("o-1", "after all that"), "Remark")])
        await drained(broker, "orders.in")
        assert (await shop.instance(Orders, "o-1").state()).remarks == ("after all that",)
        letters = {plain(letter.message_id): letter for letter in await letters_of(shop)}
        kept = {letter.reason: undelivered_in(letter).bytes for letter in letters.values() if letter.type != "x"}
        for reason, sent in wrong.items():
            if reason != "it cannot be read":
                assert kept[reason] == sent.body
        assert undelivered_in(letters["/door#1"]).bytes == b'{"order_id": '
        assert undelivered_in(letters["/door#6"]).bytes == bytes(range(256))
        assert undelivered_in(letters["/door#6"]).headers["ce-source"] == "/door"
        assert {letter.workflow for letter in letters.values()} == {"mainspring.Edge"}
        assert len(letters) == 6
        assert [(letter.headers or {})["ce-source"] for letter in await shop.dead_letters()] == ["/door"] * 6

    run(store, tmp_path, body)


def test_of_the_headers_only_those_are_kept_by_which_a_message_is_read(tmp_path: Path) -> None:
    async def body(shop: Mainspring, broker: MemoryBroker) -> None:
        sent = message("orders.in", "1", b"{")
        names = ("x-jwt", "x-vendor-key", "x-hub-sig", "authorization", "ce-token", "cookie", "anything")
        headers = {**sent.headers, "content-type": "application/json", **dict.fromkeys(names, "secret")}
        await broker.publish([replace(sent, headers=headers)])
        await drained(broker, "orders.in")
        (letter,) = await letters_of(shop)
        assert b"secret" not in letter.body
        assert {"content-type", "ce-type", "ce-id", "ce-source"} <= undelivered_in(letter).headers.keys()
        # What is kept is enough to take it after all.
        await shop.retry_dead_letter(letter.id, PlaceOrder("o-1", 1))
        assert (await shop.instance(Orders, "o-1").row()).status == "running"

    run("sqlite", tmp_path, body)


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_what_is_far_too_large_is_kept_too_and_the_others_flow_on(store: str, tmp_path: Path) -> None:
    async def body(shop: Mainspring, broker: MemoryBroker) -> None:
        large = message("orders.in", "1", bytes(3 * BODY_LIMIT_BYTES))
        named = message("orders.in", "i" * 3_900, PlaceOrder("o-1", 1))
        typed = message("orders.in", "2", PlaceOrder("o-1", 1), "T" * 3_900)
        await broker.publish([large, named, typed, message("orders.in", "3", PlaceOrder("o-1", 1))])
        await drained(broker, "orders.in")
        assert len(await shop.instance(Orders, "o-1").stream())
        kept = sorted(len(undelivered_in(letter).bytes) for letter in await letters_of(shop))
        assert kept == sorted((len(large.body), len(named.body), len(typed.body)))

    run(store, tmp_path, body)


def test_a_poisoned_message_that_comes_again_makes_no_second_letter(tmp_path: Path) -> None:
    async def body(shop: Mainspring, broker: MemoryBroker) -> None:
        twice = [message("orders.in", "1", b"{", more=more) for more in ("once", "twice")]
        await broker.publish([replace(each, id=each.headers["ce-more"]) for each in twice])
        await drained(broker, "orders.in")
        (letter,) = await shop.dead_letters()
        await broker.publish([message("orders.in", "1", b"{", more="another delivery, the same message")])
        broker.redeliver("orders.in", "shop")
        await drained(broker, "orders.in")
        assert await shop.dead_letters() == [letter]
        await shop.discard_dead_letter(letter.id)
        broker.redeliver("orders.in", "shop")
        await drained(broker, "orders.in")
        assert await shop.dead_letters() == []

    run("memory", tmp_path, body)


def test_equal_messages_without_any_id_are_a_letter_each_and_a_redelivery_makes_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = memory_broker._MemorySubscription._delivery  # noqa: SLF001  as a queue of AMQP, which names nothing

    def nameless(self: Any, position: int, outgoing: Any) -> Any:
        return replace(named(self, position, outgoing), identity=None)

    monkeypatch.setattr("mainspring.brokers.memory._MemorySubscription._delivery", nameless)

    async def body(shop: Mainspring, broker: MemoryBroker) -> None:
        bare = [Outgoing("orders.in", str(n), b'{"order_id":"o-1","amount":1}') for n in range(3)]
        await broker.publish(bare[:2])
        await drained(broker, "orders.in")
        await broker.publish(bare[2:])
        await drained(broker, "orders.in")
        letters = await shop.dead_letters()
        assert len({letter.message_id for letter in letters}) == 3
        broker.redeliver("orders.in", "shop")
        await drained(broker, "orders.in")
        assert await shop.dead_letters() == letters

    run("memory", tmp_path, body)


def test_a_letter_is_taken_as_it_is_once_somebody_can_take_it(tmp_path: Path) -> None:
    async def main() -> None:
        url, broker = f"sqlite:///{tmp_path}/orders.db", memory()
        narrow, brokers = orders(url, broker)
        brokers.endpoint("more", "main", "orders.more")
        brokers.receive("more", Remark)
        async with narrow:
            await broker.publish([message("orders.more", "1", PlaceOrder("o-1", 1))])
            await drained(broker, "orders.more")
            (letter,) = await narrow.dead_letters()
            with pytest.raises(WiringError, match="Nothing takes PlaceOrder here"):
                await narrow.retry_dead_letter(letter.id)
            assert await narrow.dead_letters() == [letter]
        wide, brokers = orders(url, broker)
        brokers.endpoint("more", "main", "orders.more")
        brokers.receive("more", Remark, PlaceOrder)
        async with wide:
            await wide.retry_dead_letter(letter.id)
            assert await wide.dead_letters() == []
            assert (await wide.instance(Orders, "o-1").stream())[1].message_id == "/door#1"

    asyncio.run(main())


def test_a_corrected_message_is_taken_in_the_place_of_its_letter(tmp_path: Path) -> None:
    async def body(shop: Mainspring, broker: MemoryBroker) -> None:
        twice = message("orders.in", "2", PlaceOrder("o-2", 2))
        await broker.publish([message("orders.in", "1", b"{"), message("orders.in", "2", PlaceOrder("o-2", 1)), twice])
        await drained(broker, "orders.in")
        # Those of one batch come in any order.
        letters = {letter.reason: letter for letter in await shop.dead_letters()}
        unreadable, conflicting = letters["it cannot be read"], letters["its id was used before, for another message"]
        with pytest.raises(DecodeError):
            await shop.retry_dead_letter(unreadable.id)
        await shop.retry_dead_letter(unreadable.id, PlaceOrder("o-1", 1), actor="ann")
        assert [entry.actor for entry in await shop.instance(Orders, "o-1").stream()][1] == "ann"
        # Its own id belongs to another message.
        await shop.retry_dead_letter(conflicting.id, Remark("o-2", "two"))
        assert (await shop.instance(Orders, "o-2").state()).remarks == ("two",)
        assert await shop.dead_letters() == []

    run("memory", tmp_path, body)


def test_a_letter_of_an_edge_that_is_no_part_of_this_app_stays(tmp_path: Path) -> None:
    async def main() -> None:
        url, broker = f"sqlite:///{tmp_path}/orders.db", memory()
        shop, _ = orders(url, broker)
        async with shop:
            await broker.publish([message("orders.in", "1", b"{")])
            await drained(broker, "orders.in")
            (letter,) = await shop.dead_letters()
        plain = Mainspring(url)
        plain.add(Orders())
        await plain.start(work=False)
        with pytest.raises(OperationError, match="came through orders, which is not part of this app"):
            await plain.retry_dead_letter(letter.id)
        assert await plain.dead_letters() == [letter]
        await plain.stop()

    asyncio.run(main())


def test_two_different_messages_under_one_id_that_cannot_be_taken_are_both_kept(tmp_path: Path) -> None:
    async def body(shop: Mainspring, broker: MemoryBroker) -> None:
        bodies = {b'{"order_id": ', b'{"amount": '}
        await broker.publish([message("orders.in", "1", body) for body in bodies])
        await drained(broker, "orders.in")
        assert {undelivered_in(letter).bytes for letter in await letters_of(shop)} == bodies

    run("memory", tmp_path, body)
