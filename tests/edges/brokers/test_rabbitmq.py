"""RabbitMQ's adapter: what is its own beside the contract."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest
from yarl import URL

from mainspring import Mainspring
from mainspring.brokers import Brokers, rabbitmq
from mainspring.brokers.port import Delivery, Outgoing, Subscription
from mainspring.brokers.rabbitmq import RabbitBroker
from mainspring.errors import BrokerError, SettingError
from tests.edges.brokers.cable import Cable
from tests.edges.brokers.orders_and_payments import ChargeCard, Orders, PlaceOrder, confirmed, message, orders, payments
from tests.edges.brokers.rabbit import channel, own_name, publish_without_id, queue_of_its_own, rabbit_url
from tests.edges.brokers.renamed import RenamedBroker
from tests.support.waiting import until

GROUP = "tests"
SHOPS_ADDRESSES = ("orders.in", "payments.in", "payments.out", "orders.out")
PREFETCH = 10
WAIT_SECONDS = 60.0


def run(body: Callable[[RabbitBroker, str], Awaitable[None]]) -> None:
    """Run a test with a broker and the name of a queue."""

    async def main() -> None:
        async with queue_of_its_own() as queue:
            broker = RabbitBroker(rabbit_url())
            await broker.open()
            try:
                await body(broker, queue)
            finally:
                await broker.close()

    asyncio.run(main())


async def received(subscription: Subscription, count: int) -> list[Delivery]:
    found: list[Delivery] = []
    while len(found) < count:
        news = await subscription.receive(count - len(found), WAIT_SECONDS)
        assert news, f"only {len(found)} of {count} came"
        found += news
    return found


def test_what_no_queue_would_take_is_an_error_and_the_others_are_confirmed() -> None:
    async def body(broker: RabbitBroker, queue: str) -> None:
        careful = RabbitBroker(rabbit_url(), declare=False)
        assert await broker.publish([Outgoing(queue, "m-1", b"{}")]) == [None]
        # The same message goes to two addresses: the id is no name for one publication.
        missing, taken, nowhere = await careful.publish(
            [Outgoing(own_name(), "m-2", b"{}"), Outgoing(queue, "m-2", b"{}"), Outgoing("amq.topic/no", "m-2", b"{}")]
        )
        assert taken is None
        assert isinstance(missing, BrokerError)
        assert "has no queue for" in str(missing)
        assert "Bind a queue" in str(nowhere)
        await careful.close()

    run(body)


def test_a_type_whose_name_is_too_long_for_a_property_stands_in_its_header() -> None:
    async def body(broker: RabbitBroker, queue: str) -> None:
        long = "x" * 300
        assert await broker.publish([Outgoing(queue, "m-1", b"{}", {"ce-type": long})]) == [None]
        subscription = await broker.subscribe(queue, GROUP, PREFETCH)
        (came,) = await received(subscription, 1)
        assert came.headers["ce-type"] == long

    run(body)


def test_an_exchange_that_is_not_there_costs_no_other_message() -> None:
    async def body(broker: RabbitBroker, queue: str) -> None:
        careful = RabbitBroker(rabbit_url(), declare=False)
        assert await broker.publish([Outgoing(queue, "m-0", b"{}")]) == [None]
        messages = [Outgoing(place, f"m-{n}", b"{}") for n in range(1, 9) for place in (queue, f"{own_name()}/key")]
        outcomes = await careful.publish(messages)
        assert [outcome is None for outcome in outcomes] == [True, False] * 8
        assert "has no exchange" in str(outcomes[1])
        await careful.close()

    run(body)


def test_more_addresses_than_channels_are_published_to_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rabbitmq, "CHANNELS", 2)

    async def main() -> None:
        broker = RabbitBroker(rabbit_url(), arguments={"x-queue-type": "classic"})
        queues = [own_name() for _ in range(5)]
        try:
            for number in range(2):
                sent = [Outgoing(queue, f"m-{number}-{n}", b"{}") for n in range(10) for queue in queues]
                assert await broker.publish(sent) == [None] * 50
            assert len(broker._channels) <= 5  # noqa: SLF001  there is no other way to see them
            assert await broker.publish([Outgoing(queues[0], "m-2", b"{}")]) == [None]
            assert len(broker._channels) == 2  # noqa: SLF001  as above
            assert [await broker.lag(queue, GROUP) for queue in queues] == [21, 20, 20, 20, 20]
        finally:
            await broker.close()
            async with channel() as opened:
                for queue in queues:
                    await opened.queue_delete(queue)

    asyncio.run(main())


def test_what_a_queue_cannot_take_now_is_told_and_taken_once_it_can() -> None:
    async def body(_: RabbitBroker, queue: str) -> None:
        full = RabbitBroker(rabbit_url(), arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
        try:
            refused = await until(lambda: refusal(full, queue))
            assert isinstance(refused, BrokerError)
            assert "could not take a message for" in str(refused)
            assert "published again under the same id" in str(refused)
            async with channel() as opened:
                await (await opened.get_queue(queue, ensure=False)).purge()
            await confirmed(full, [Outgoing(queue, "m-1", b"{}")])
        finally:
            await full.close()

    async def refusal(broker: RabbitBroker, queue: str) -> Exception | None:
        """Fill the queue: it takes a few more than it should, until it has looked."""
        return (await broker.publish([Outgoing(queue, "m-1", b"{}")]))[0]

    run(body)


def test_each_group_has_a_queue_of_its_own_at_an_exchange() -> None:
    async def body(broker: RabbitBroker, queue: str) -> None:
        exchange = queue
        first = await broker.subscribe(f"{exchange}/orders.*", "billing", PREFETCH)
        second = await broker.subscribe(f"{exchange}/#", "audit", PREFETCH)
        try:
            sent = [Outgoing(f"{exchange}/{key}", key, key.encode()) for key in ("orders.placed", "refunds.made")]
            assert await broker.publish(sent) == [None, None]
            assert [delivery.body for delivery in await received(first, 1)] == [b"orders.placed"]
            # Two addresses have no order between them.
            assert {delivery.body for delivery in await received(second, 2)} == {b"orders.placed", b"refunds.made"}
        finally:
            await first.close()
            await second.close()
            async with channel() as opened:
                await opened.queue_delete(f"billing:{exchange}/orders.+")
                await opened.queue_delete(f"audit:{exchange}/#")
                await opened.exchange_delete(exchange)

    run(body)


def test_a_message_without_an_id_has_no_identity_unless_its_content_shall_be_one() -> None:
    async def body(broker: RabbitBroker, queue: str) -> None:
        by_content = RabbitBroker(rabbit_url(), identify="content")
        await (await by_content.subscribe(queue, GROUP, PREFETCH)).close()
        async with channel() as opened:
            for body in (b'{"n":1}', b'{"n":2}'):
                await publish_without_id(opened, queue, body)
        plain = await broker.subscribe(queue, GROUP, PREFETCH)
        first = await received(plain, 2)
        await plain.close()
        again = await by_content.subscribe(queue, GROUP, PREFETCH)
        second = await received(again, 2)
        await again.close()
        third = await received(once_more := await by_content.subscribe(queue, GROUP, PREFETCH), 2)
        await once_more.close()
        assert [(delivery.identity, delivery.sender_id) for delivery in first] == [(None, None)] * 2
        assert len({delivery.identity for delivery in second}) == 2
        assert [delivery.identity for delivery in third] == [delivery.identity for delivery in second]
        assert [delivery.attempt for delivery in third] == [3, 3]

    run(body)


def test_a_redelivery_after_a_lost_connection_is_in_order_and_before_all_that_came_later() -> None:
    async def main() -> None:
        place = URL(rabbit_url())
        async with queue_of_its_own() as queue, Cable(place.host or "", place.port or 5672).laid() as cable:
            broker = RabbitBroker(str(place.with_host("127.0.0.1").with_port(cable.port)))
            assert await broker.publish([Outgoing(queue, f"m-{n}", b"%d" % n) for n in range(4)]) == [None] * 4
            subscription = await broker.subscribe(queue, GROUP, 2)
            await subscription.acknowledge((await received(subscription, 2))[:1])
            cable.cut()
            with pytest.raises(BrokerError, match="was lost"):
                await subscription.receive(2, WAIT_SECONDS)
            await subscription.close()
            subscription = await broker.subscribe(queue, GROUP, PREFETCH)
            bodies = [delivery.body for delivery in await received(subscription, 3)]
            # The acknowledgement may have been lost with the connection; then the first comes again as well.
            assert bodies in ([b"1", b"2", b"3"], [b"0", b"1", b"2"])
            assert await broker.publish([Outgoing(queue, "m-4", b"4")]) == [None]
            await subscription.close()
            await broker.close()

    asyncio.run(main())


def test_a_lost_connection_fails_what_was_not_confirmed_and_the_next_one_is_opened() -> None:
    async def main() -> None:
        place = URL(rabbit_url())
        async with queue_of_its_own() as queue, Cable(place.host or "", place.port or 5672).laid() as cable:
            broker = RabbitBroker(str(place.with_host("127.0.0.1").with_port(cable.port)))
            assert await broker.publish([Outgoing(queue, "m-0", b"{}")]) == [None]
            publishing = asyncio.ensure_future(broker.publish([Outgoing(queue, f"m-{n}", b"{}") for n in range(200)]))
            await asyncio.sleep(0)
            cable.cut()
            outcomes = await publishing
            assert len(outcomes) == 200
            assert any(isinstance(outcome, Exception) for outcome in outcomes)
            assert await broker.publish([Outgoing(queue, "m-0", b"{}")]) == [None]
            await broker.close()

    asyncio.run(main())


def test_a_queue_that_is_deleted_is_noticed() -> None:
    async def body(broker: RabbitBroker, queue: str) -> None:
        subscription = await broker.subscribe(queue, GROUP, PREFETCH)
        async with channel() as opened:
            await opened.queue_delete(queue)
        with pytest.raises(BrokerError, match="has cancelled the consumer"):
            await subscription.receive(1, WAIT_SECONDS)
        await subscription.close()

    run(body)


def test_a_queue_that_was_declared_otherwise_is_told_with_what_to_do() -> None:
    async def body(broker: RabbitBroker, queue: str) -> None:
        async with channel() as opened:
            await opened.declare_queue(queue, durable=True)
        with pytest.raises(BrokerError, match=r"declared otherwise .*inequivalent arg.* Give RabbitBroker"):
            await broker.subscribe(queue, GROUP, PREFETCH)
        classic = RabbitBroker(rabbit_url(), declare=False)
        await (await classic.subscribe(queue, GROUP, PREFETCH)).close()
        with pytest.raises(BrokerError, match="has no queue"):
            await classic.subscribe(own_name(), GROUP, PREFETCH)

    run(body)


def test_an_id_that_is_too_long_for_amqp_is_shortened_beside_the_whole_one() -> None:
    async def body(broker: RabbitBroker, queue: str) -> None:
        id = "ö" * 500
        assert await broker.publish(
            [Outgoing(queue, id, b"{}", {"ce-id": id, "content-type": "application/json"})]
        ) == [None]
        subscription = await broker.subscribe(queue, GROUP, PREFETCH)
        (delivery,) = await received(subscription, 1)
        assert delivery.headers == {"ce-id": id, "content-type": "application/json"}
        assert delivery.sender_id is not None
        assert delivery.sender_id.startswith("blake2b:")
        await subscription.close()

    run(body)


def test_two_services_ask_and_answer_over_queues() -> None:
    async def main() -> None:
        names = [own_name() for _ in SHOPS_ADDRESSES]
        elsewhere: dict[str, str] = dict(zip(SHOPS_ADDRESSES, names, strict=True))
        try:
            shop_broker, bank_broker = (
                RenamedBroker(RabbitBroker(rabbit_url()), elsewhere.__getitem__) for _ in range(2)
            )
            shop, _ = orders("memory://", shop_broker)
            async with shop, payments("memory://", bank_broker):
                await confirmed(shop_broker, [message("orders.in", "1", PlaceOrder("o-1", 42))])
                await until(lambda: found(shop, "o-1"))
                await shop.instance(Orders, "o-1").result(timeout=timedelta(seconds=WAIT_SECONDS))
        finally:
            async with channel() as opened:
                for name in names:
                    await opened.queue_delete(name)

    asyncio.run(main())


def test_a_message_without_any_id_is_a_dead_letter_and_the_next_one_is_taken() -> None:
    async def body(broker: RabbitBroker, queue: str) -> None:
        app = Mainspring("memory://")
        app.add(Orders())
        app.external(ChargeCard)
        brokers = Brokers(app, "shop")
        brokers.add("main", broker)
        brokers.endpoint("orders", "main", queue)
        brokers.receive("orders", PlaceOrder, bare_type=PlaceOrder)
        # It is there, with a leader, before a message comes that nobody confirms.
        await (await broker.subscribe(queue, GROUP, PREFETCH)).close()
        async with app:
            async with channel() as opened:
                await publish_without_id(opened, queue, b'{"order_id":"o-1","amount":1}')
            assert await broker.publish([Outgoing(queue, "m-2", b'{"order_id":"o-2","amount":1}')]) == [None]
            await until(lambda: found(app, "o-2"))
            (letter,) = await app.dead_letters()
            assert "has no id" in str(letter.error)
            assert not await found(app, "o-1")

    run(body)


async def found(app: Mainspring, order: str) -> bool:
    return any(row.id == order for row in await app.instances())


@pytest.mark.parametrize(
    ("url", "options"),
    [("http://localhost", {}), ("amqp:///vhost", {}), (None, {}), ("amqp://h", {"identify": "guess"})],
)
def test_a_setting_that_makes_no_sense_is_refused(url: str, options: dict[str, str]) -> None:
    with pytest.raises(SettingError, match="RabbitBroker"):
        RabbitBroker(url, **options)  # pyright: ignore[reportArgumentType]  that is the point


@pytest.mark.parametrize("address", ["", "/key", "exchange/", "x" * 256, "a\tqueue"])
def test_an_address_that_cannot_be_one_is_refused(address: str) -> None:
    with pytest.raises(SettingError, match="in RabbitMQ"):
        asyncio.run(RabbitBroker("amqp://127.0.0.1:1").lag(address, GROUP))
