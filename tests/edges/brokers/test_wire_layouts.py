"""Brokers seen from outside: what is put there by hand is taken, what mainspring puts there is what the page says."""

from __future__ import annotations

import asyncio
import shlex
from base64 import b64encode
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from msgspec import json

from mainspring import Decisions, Event, Mainspring, Publish, Reply, Send, Workflow
from mainspring.brokers import Brokers
from tests.edges.brokers.outside import (
    Outside,
    OutsideKafka,
    OutsideNats,
    OutsideRabbit,
    OutsideRedis,
    OutsideSqs,
    Parts,
)
from tests.edges.brokers.queues import KEYS, REGION
from tests.edges.brokers.rabbit import rabbit_url
from tests.edges.brokers.servers import nats_url, sqs_endpoint
from tests.edges.brokers.wire_page import Place, commands, examples, filled, ids, names, places, written
from tests.support.waiting import until

ALL = [OutsideRedis, OutsideNats, OutsideRabbit, OutsideKafka, OutsideSqs]
PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
# What names it must be percent-encoded, in a header and nowhere else.
ORDER = "ö 1%"
ENCODED = "%C3%B6%201%25"
BODY = json.encode({"order_id": ORDER})


@dataclass(frozen=True)
class PlaceOrder:
    order_id: str


@dataclass(frozen=True)
class ChargeCard:
    order_id: str


@dataclass(frozen=True)
class OrderPlaced:
    order_id: str


@dataclass(frozen=True)
class OrderTaken:
    order_id: str


@dataclass(frozen=True)
class Open:
    """The only state."""


class Orders(Workflow[PlaceOrder, Open, ChargeCard | OrderPlaced | OrderTaken]):
    """Sends, publishes and replies, all in one step."""

    initial_state = Open()

    def route(self, message: PlaceOrder, /) -> str:
        return message.order_id

    def decide(self, message: PlaceOrder, state: Open, /) -> Decisions[Any, Any]:
        order = message.order_id
        return [Send(ChargeCard(order)), Publish(OrderPlaced(order)), Reply(OrderTaken(order))]

    def evolve(self, state: Open, event: Event[Any, Any], /) -> None:
        return None


class Shop:
    """An app at a broker: orders come in, commands, events and replies go out."""

    def __init__(self, outside: Outside) -> None:
        self.outside = outside
        self.orders, self.cards, self.events, self.replies = (
            outside.address(name) for name in ("orders", "cards", "events", "replies")
        )
        self.app = Mainspring("memory://")
        self.app.add(Orders())
        brokers = Brokers(self.app, "shop")
        brokers.add("main", outside.broker())
        brokers.endpoint("orders", "main", self.orders, replies="replies")
        brokers.endpoint("cards", "main", self.cards, replies="orders")
        brokers.endpoint("events", "main", self.events)
        brokers.endpoint("replies", "main", self.replies)
        brokers.receive("orders", PlaceOrder)
        brokers.send(ChargeCard, to="cards")
        brokers.publish(OrderPlaced, to="events")

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Shop]:
        async with self.outside.ready(self.orders, self.cards, self.events, self.replies), self.app:
            yield self

    def message(self, body: bytes = BODY, **attributes: str) -> dict[Place, bytes]:
        """Return a message as the page says to write one."""
        named = {"message": body, **{name: value.encode() for name, value in attributes.items()}}
        return {places(self.outside.name, part)[0]: value for part, value in named.items()}

    async def put(self, parts: Parts) -> dict[str, str]:
        return {"address": self.orders, **await self.outside.put(self.orders, parts)}

    async def at(self, address: str, count: int = 1) -> list[Parts]:
        """Wait until so many are at an address, and return them."""

        async def all_there() -> list[Parts] | None:
            found = await self.outside.entries(address)
            return found if len(found) >= count else None

        found = await until(all_there)
        assert len(found) == count
        return found

    def part(self, parts: Parts, name: str) -> str:
        """Return a part of a message, which stands wherever the page says."""
        (value,) = {parts[place] for place in places(self.outside.name, name)}
        return value.decode()

    async def id_taken(self) -> str:
        """Return under which id the first message was taken: what it led to is correlated with that."""
        (command,) = await self.at(self.cards)
        return self.part(command, "correlationid")


Scene = Callable[[Shop], Coroutine[Any, Any, None]]


def play(kind: type[Outside], scene: Scene) -> None:
    async def main() -> None:
        async with Shop(kind()).open() as shop:
            await scene(shop)

    asyncio.run(main())


@pytest.fixture(params=ALL, ids=lambda kind: kind.__name__.removeprefix("Outside").lower())
def kind(request: pytest.FixtureRequest) -> type[Outside]:
    return request.param


def test_what_is_published_has_just_the_fields_of_the_page(kind: type[Outside]) -> None:
    async def scene(shop: Shop) -> None:
        begun = datetime.now(UTC)
        whole = shop.message(
            id="1",
            source="/desk",
            type="PlaceOrder",
            sender="Desk/d-1",
            actor="ann",
            traceparent=PARENT,
            tracestate="a=b",
        )
        await shop.put(whole)
        await shop.app.publish(OrderPlaced("least"), id="e-1")
        (command,), (reply,) = await shop.at(shop.cards), await shop.at(shop.replies)
        events = await shop.at(shop.events, 2)
        (event,), (least,) = (
            [e for e in events if PARENT.encode() in e.values()],
            [e for e in events if b"e-1" in e.values()],
        )

        name, full = shop.outside.name, {"always", "by an instance", "with a trace"}
        assert set(command) == written(name, {*full, "with `replies`"})
        assert set(reply) == written(name, {*full, "in a reply"})
        assert set(event) == written(name, full)
        assert set(least) == written(name, {"always"})

        said = {
            "message": BODY.decode(),
            "media type": "application/json",
            "specversion": "1.0",
            "envelopeversion": "1",
            "id": f"Orders/{ENCODED}/3",
            "source": "/shop",
            "type": "ChargeCard",
            "typeversion": "1",
            "kind": "command",
            "correlationid": "/desk#1",
            "causationid": "/desk#1",
            "sender": f"Orders/{ENCODED}",
            "replyto": shop.orders,
            "traceparent": PARENT,
            "tracestate": "a=b",
        }
        assert {part: shop.part(command, part) for part in said} == said
        assert begun <= datetime.fromisoformat(shop.part(command, "time")) <= datetime.now(UTC)
        assert [shop.part(each, "kind") for each in (command, event, reply)] == ["command", "event", "reply"]
        assert shop.part(reply, "instance") == "Desk/d-1"

    play(kind, scene)


def test_a_message_with_all_but_what_is_needed_left_out_is_taken_under_the_id_of_the_page(kind: type[Outside]) -> None:
    async def scene(shop: Shop) -> None:
        least = shop.message(type="PlaceOrder")
        if shop.outside.needs_id:
            least["property", "message_id"] = b"m-1"
        known = await shop.put(least)
        *_, template = ids(shop.outside.name)
        assert await shop.id_taken() == filled(template, **known)

    play(kind, scene)


def test_an_id_without_a_source_is_the_address_s_own(kind: type[Outside]) -> None:
    async def scene(shop: Shop) -> None:
        await shop.put(shop.message(type="PlaceOrder", id="17"))
        assert await shop.id_taken() == f"{shop.orders}#17"

    play(kind, scene)


def test_what_the_page_does_not_name_is_passed_over(kind: type[Outside]) -> None:
    others: dict[type[Outside], dict[Place, bytes]] = {
        OutsideRedis: {("field", "correlation"): b"x", ("field", "ce-unknown"): b"x"},
        OutsideNats: {("header", "Correlation-Id"): b"x", ("header", "ce-unknown"): b"x"},
        OutsideRabbit: {
            **{("property", name): b"x" for name in ("correlation_id", "reply_to", "app_id")},
            ("header", "ce-unknown"): b"x",
        },
        OutsideKafka: {("key", ""): b"x", ("header", "ce_unknown"): b"x"},
        OutsideSqs: {("header", "correlation"): b"x", ("header", "ce-unknown"): b"x"},
    }

    async def scene(shop: Shop) -> None:
        await shop.put({**shop.message(type="PlaceOrder", id="1", source="/desk"), **others[kind]})
        assert await shop.id_taken() == "/desk#1"
        (command,) = await shop.at(shop.cards)
        assert set(command) == written(shop.outside.name, {"always", "by an instance", "with `replies`"})

    play(kind, scene)


@pytest.mark.parametrize("prefix", ["ce-", "CE_", "cloudEvents:", "cloudEvents_"])
def test_attributes_are_read_under_the_prefixes_of_every_binding(kind: type[Outside], prefix: str) -> None:
    if kind in (OutsideNats, OutsideSqs) and ":" in prefix:
        pytest.skip("a header of NATS and an attribute of SQS can have no colon in their names")

    async def scene(shop: Shop) -> None:
        ((named, _),) = places(shop.outside.name, "source")
        beside = {
            (named, f"{prefix}{name}"): value
            for name, value in [("id", b"1"), ("source", b"/desk"), ("type", b"PlaceOrder")]
        }
        await shop.put({**shop.message(), **beside})
        assert await shop.id_taken() == "/desk#1"

    play(kind, scene)


def test_a_whole_envelope_is_taken_and_nothing_beside_it_is_read(kind: type[Outside]) -> None:
    async def scene(shop: Shop) -> None:
        envelope = {
            "specversion": "1.0",
            "id": "1",
            "source": "/desk",
            "type": "PlaceOrder",
            "data": {"order_id": "o-1"},
        }
        parts = shop.message(json.encode(envelope), id="2", source="/other", type="ChargeCard")
        (media_type,) = places(shop.outside.name, "media type")
        await shop.put({**parts, media_type: b"application/cloudevents+json"})
        assert await shop.id_taken() == "/desk#1"

    play(kind, scene)


# ---- what is each broker's own


def test_the_line_for_redis_can_be_copied_and_its_keys_have_the_names_of_the_page() -> None:
    async def scene(shop: Shop) -> None:
        assert isinstance(shop.outside, OutsideRedis)
        client = shop.outside.client
        add, look = [shlex.split(line)[1:] for line in commands("redis-cli")]
        await client.execute_command(*(shop.orders if word == "orders.placed" else word for word in add))
        assert await shop.id_taken() == "/desk#1"
        ((_, fields),) = await client.execute_command(
            *(shop.cards if word == "payments.asked" else word for word in look)
        )
        assert fields[b"data"] == b'{"order_id":"o-1"}'

        await until(lambda: shop.outside.entries(shop.events))
        found = {key.decode() async for key in client.scan_iter(f"*{shop.outside.prefix}*")}
        stream, turn, known = names("Redis and Valkey")
        addressed = {shop.cards: 3, shop.events: 4}
        assert found == {
            filled(stream, address=shop.orders),
            filled(turn, address=shop.orders, group="shop"),
            *(filled(stream, address=address) for address in addressed),
            *(filled(known, address=a, source="/shop", id=f"Orders/o-1/{n}") for a, n in addressed.items()),
        }
        (group,) = await client.xinfo_groups(shop.orders)
        (consumer,) = await client.xinfo_consumers(shop.orders, "shop")
        assert (group["name"], consumer["name"]) == (b"shop", b"mainspring")

    play(OutsideRedis, scene)


def test_the_example_for_nats_can_be_copied_and_its_names_are_those_of_the_page() -> None:
    async def scene(shop: Shop) -> None:
        assert isinstance(shop.outside, OutsideNats)
        await examples()["to_nats"](nats_url(), shop.orders)
        assert await shop.id_taken() == "/desk#1"
        (command,) = await shop.at(shop.cards)
        assert command["header", "Nats-Msg-Id"] == f"{shop.cards}#/shop#Orders/o-1/3".encode()

        js = shop.outside.client.jetstream()
        consumer, bucket = names("NATS")
        digest = sha256(f"shop {shop.orders}".encode()).hexdigest()[:8]
        (made,) = await js.consumers_info(shop.outside.prefix)
        assert made.name == filled(consumer, group="shop", address=shop.orders.replace(".", "-"), digest=digest)
        assert [key for key in await (await js.key_value(bucket)).keys() if key.startswith(made.name)]

    play(OutsideNats, scene)


def test_a_message_without_an_id_is_known_by_what_its_sender_told_nats() -> None:
    async def scene(shop: Shop) -> None:
        first, _ = ids("NATS")
        await shop.put({**shop.message(type="PlaceOrder"), ("header", "Nats-Msg-Id"): b"m-1"})
        assert await shop.id_taken() == filled(first, address=shop.orders, Nats_Msg_Id="m-1")

    play(OutsideNats, scene)


def test_the_example_for_rabbitmq_can_be_copied_and_its_queue_has_the_name_of_the_page() -> None:
    async def scene(shop: Shop) -> None:
        assert isinstance(shop.outside, OutsideRabbit)
        await examples()["to_rabbitmq"](rabbit_url(), shop.orders)
        assert await shop.id_taken() == f"{shop.orders}#1"
        (command,) = await shop.at(shop.cards)
        assert command["property", "message_id"] == b"/shop#Orders/o-1/3"
        assert command["property", "delivery_mode"] == b"2"

    play(OutsideRabbit, scene)


def test_a_group_at_an_exchange_has_a_queue_named_as_on_the_page() -> None:
    async def main() -> None:
        outside = OutsideRabbit()
        address, (_, template) = f"{outside.prefix}/orders.*", names("RabbitMQ")
        queue = filled(template, group="shop", address=address).replace("*", "+")
        broker = outside.broker()
        async with outside.ready(queue):  # with the arguments of the page: RabbitMQ refuses others
            try:
                subscription = await broker.subscribe(address, "shop", 10)
                await outside.channel.exchange_declare(outside.prefix, exchange_type="topic", durable=True)
                await outside.channel.basic_publish(b"{}", exchange=outside.prefix, routing_key="orders.placed")
                (came,) = await until(lambda: subscription.receive(1, 1.0))
                assert came.body == b"{}"
            finally:
                await broker.close()
                await outside.channel.exchange_delete(outside.prefix)

    asyncio.run(main())


def test_the_example_for_kafka_can_be_copied_and_its_group_is_that_of_the_page() -> None:
    async def scene(shop: Shop) -> None:
        assert isinstance(shop.outside, OutsideKafka)
        await examples()["to_kafka"](shop.outside.mock.servers, shop.orders)
        assert await shop.id_taken() == "/desk#1"
        (command,) = await shop.at(shop.cards)
        assert command["key", ""] == b"Orders/o-1"

        looker = Consumer(shop.outside.looking("shop"))

        async def committed() -> bool:
            (place,) = await asyncio.to_thread(looker.committed, [TopicPartition(shop.orders, 0)])
            return place.offset == 1

        await until(committed)
        looker.close()

    play(OutsideKafka, scene)


def test_the_example_for_sqs_can_be_copied_and_its_parts_are_those_of_the_page() -> None:
    async def scene(shop: Shop) -> None:
        assert isinstance(shop.outside, OutsideSqs)
        given = {"region_name": REGION, "endpoint_url": sqs_endpoint(), **KEYS}
        await asyncio.to_thread(examples()["to_sqs"], shop.outside.urls[shop.orders], **given)
        assert await shop.id_taken() == "/desk#1"
        (command,) = await shop.at(shop.cards)
        assert command["property", "MessageGroupId"] == b"Orders/o-1"
        assert command["property", "MessageDeduplicationId"].decode() == sha256(b"/shop#Orders/o-1/3").hexdigest()

    play(OutsideSqs, scene)


def test_what_is_put_at_sqs_as_mainspring_writes_it_is_taken() -> None:
    async def scene(shop: Shop) -> None:
        headers = json.encode({"ce-id": "1", "ce-source": "/desk", "ce-type": "PlaceOrder"})
        encoded = {("header", "encoding"): b"base64", ("header", "headers"): headers}
        await shop.put({("body", ""): b64encode(BODY), **encoded})
        assert await shop.id_taken() == "/desk#1"

    play(OutsideSqs, scene)
