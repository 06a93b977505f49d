"""Kafka's adapter: what is its own beside the contract."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from mainspring.brokers import kafka
from mainspring.brokers.kafka import KafkaBroker
from mainspring.brokers.port import Delivery, Outgoing, Subscription
from mainspring.errors import BrokerError, DoNotRetryError, SettingError
from tests.edges.brokers.kafka_mock import KafkaMock, leader_last
from tests.edges.brokers.orders_and_payments import Orders, PlaceOrder, message, orders, payments
from tests.support.stalls import again_if_stalled

GROUP = "tests"
TOPIC = "orders"
PREFETCH = 100
WAIT_SECONDS = 1.0
# The mock hands partitions round one second before a session of more than that is over.
SESSION_SECONDS = 2.0
# The mock lets who asks for news wait to the end of the first, also when there are some. A member hears of another by a
# heartbeat, and the mock drops one that has not joined again one second before its session would be over.
QUICK = {"fetch_max_wait_ms": 20, "heartbeat_interval_ms": 50}
ROUNDS = 60


@pytest.fixture
def mock() -> Iterator[KafkaMock]:
    found = KafkaMock()
    yield found
    found.close()


def new_broker(mock: KafkaMock) -> KafkaBroker:
    return KafkaBroker(f"kafka://{mock.servers}", session_seconds=SESSION_SECONDS, consumer=QUICK)


def run(mock: KafkaMock, body: Callable[[KafkaBroker], Awaitable[None]]) -> None:
    async def main() -> None:
        broker = new_broker(mock)
        await broker.open()
        try:
            await body(broker)
        finally:
            await broker.close()

    def attempt(_: object) -> None:
        mock.begin_anew()
        asyncio.run(main())

    again_if_stalled(attempt, SESSION_SECONDS / 2)(None)


async def received(subscription: Subscription, count: int) -> list[Delivery]:
    found: list[Delivery] = []
    for _ in range(ROUNDS):
        found += await subscription.receive(count - len(found), WAIT_SECONDS)
        if len(found) == count:
            return found
    raise AssertionError(f"only {len(found)} of {count} came")


def outgoings(count: int, key: str | None = "k") -> list[Outgoing]:
    return [Outgoing(TOPIC, f"{key}-{n}", b"%d" % n, {"ce-id": f"{key}-{n}"}, key) for n in range(count)]


def test_what_is_behind_one_that_is_not_acknowledged_is_not_committed(mock: KafkaMock) -> None:
    async def body(broker: KafkaBroker) -> None:
        mock.create(TOPIC)
        assert await broker.publish(outgoings(5)) == [None] * 5
        subscription = await broker.subscribe(TOPIC, GROUP, PREFETCH)
        first, second, third, *_ = await received(subscription, 5)
        await subscription.acknowledge([second, third])
        assert await broker.lag(TOPIC, GROUP) == 5
        await subscription.acknowledge([first])
        assert await broker.lag(TOPIC, GROUP) == 2
        await subscription.close()
        again = await broker.subscribe(TOPIC, GROUP, PREFETCH)
        assert [delivery.identity for delivery in await received(again, 2)] == ["kafka:orders/0/3", "kafka:orders/0/4"]
        await again.close()

    run(mock, body)


def test_nothing_is_committed_for_partitions_that_were_revoked(mock: KafkaMock) -> None:
    async def body(broker: KafkaBroker) -> None:
        mock.create(TOPIC, partitions=2)
        assert await broker.publish([*outgoings(4, "a"), *outgoings(4, "d")]) == [None] * 8
        first = await broker.subscribe(TOPIC, GROUP, PREFETCH)
        out = await received(first, 8)
        assert {delivery.token.partition.partition for delivery in out} == {0, 1}
        second = await broker.subscribe(TOPIC, GROUP, PREFETCH)
        at_second: list[Delivery] = []
        at_first: list[Delivery] = []
        for _ in range(ROUNDS):
            here, there = await asyncio.gather(first.receive(8, WAIT_SECONDS / 4), second.receive(8, WAIT_SECONDS / 4))
            at_first, at_second = at_first + here, at_second + there
            if len(at_first) + len(at_second) == 8:
                break
        # Each has one of them now, from its beginning on: what was out before is void.
        assert [delivery.body for delivery in at_first] == [b"0", b"1", b"2", b"3"]
        assert [delivery.body for delivery in at_second] == [b"0", b"1", b"2", b"3"]
        assert {delivery.identity for delivery in (*at_first, *at_second)} == {delivery.identity for delivery in out}
        await first.acknowledge(out)
        await first.give_back(out)
        assert await broker.lag(TOPIC, GROUP) == 8
        await first.acknowledge(at_first)
        assert await broker.lag(TOPIC, GROUP) == 4
        await first.close()
        await second.close()

    with leader_last():
        run(mock, body)


def test_messages_with_the_same_key_are_in_the_same_partition_in_their_order(mock: KafkaMock) -> None:
    async def body(broker: KafkaBroker) -> None:
        mock.create(TOPIC, partitions=4)
        sent = [Outgoing(TOPIC, f"m-{n}", b"%d" % n, key=f"instance {n % 7}") for n in range(70)]
        assert await broker.publish(sent) == [None] * 70
        subscription = await broker.subscribe(TOPIC, GROUP, PREFETCH)
        came = await received(subscription, 70)
        for number in range(7):
            own = [delivery for delivery in came if int(delivery.body) % 7 == number]
            assert [int(delivery.body) for delivery in own] == list(range(number, 70, 7))
            assert len({delivery.token.partition for delivery in own}) == 1
        await subscription.close()

    run(mock, body)


def test_what_is_published_again_while_it_is_on_its_way_is_there_once(
    mock: KafkaMock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body(broker: KafkaBroker) -> None:
        mock.create(TOPIC)
        assert await broker.publish(outgoings(1)) == [None]
        mock.down()
        monkeypatch.setattr(kafka, "CONFIRM_SECONDS", 0.2)
        for _ in range(3):
            outcomes = await broker.publish(outgoings(3)[1:])
            assert ["has not confirmed" in str(outcome) for outcome in outcomes] == [True, True]
        mock.up()
        monkeypatch.setattr(kafka, "CONFIRM_SECONDS", 60)
        assert await broker.publish(outgoings(3)[1:]) == [None, None]
        subscription = await broker.subscribe(TOPIC, GROUP, PREFETCH)
        assert [delivery.body for delivery in await received(subscription, 3)] == [b"0", b"1", b"2"]
        assert await subscription.receive(10, 0.2) == []
        await subscription.close()

    run(mock, body)


def test_a_producer_whose_messages_nobody_takes_is_closed_all_the_same(
    mock: KafkaMock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mainspring.brokers.kafka_subscription.CLOSE_SECONDS", 0.1)

    async def body(broker: KafkaBroker) -> None:
        mock.create(TOPIC)
        assert await broker.publish(outgoings(1)) == [None]
        mock.down()
        monkeypatch.setattr(kafka, "CONFIRM_SECONDS", 0.1)
        assert None not in await broker.publish(outgoings(2)[1:])
        await broker.close()

    run(mock, body)


def test_a_subscription_outlives_a_cluster_that_is_away_for_a_while(mock: KafkaMock) -> None:
    async def body(broker: KafkaBroker) -> None:
        mock.create(TOPIC)
        assert await broker.publish(outgoings(2)) == [None] * 2
        subscription = await broker.subscribe(TOPIC, GROUP, PREFETCH)
        await received(subscription, 2)
        mock.down()
        assert await subscription.receive(10, 0.2) == []
        mock.up()
        assert await broker.publish(outgoings(3)[2:]) == [None]
        # The session may have come to its end meanwhile; then all three come, as nothing was acknowledged.
        assert (await received(subscription, 1))[0].body in (b"2", b"0")
        await subscription.close()

    run(mock, body)


def test_a_message_that_is_too_large_is_never_tried_again_and_the_others_are_confirmed(mock: KafkaMock) -> None:
    async def body(broker: KafkaBroker) -> None:
        mock.create(TOPIC)
        huge = Outgoing(TOPIC, "huge", b"x" * (kafka.REQUEST_BYTES + 1))
        before, refused, after = await broker.publish([outgoings(1)[0], huge, outgoings(2)[1]])
        assert (before, after) == (None, None)
        assert isinstance(refused, DoNotRetryError)

    run(mock, body)


def test_a_topic_that_is_not_there_is_told(mock: KafkaMock) -> None:
    async def body(broker: KafkaBroker) -> None:
        with pytest.raises(BrokerError, match=r"has no topic 'orders'\. Create it"):
            await broker.subscribe(TOPIC, GROUP, PREFETCH)
        with pytest.raises(BrokerError, match="has no topic"):
            await broker.lag(TOPIC, GROUP)

    run(mock, body)


def test_a_topic_that_is_not_there_costs_no_other_message(mock: KafkaMock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "REQUEST_SECONDS", 1)

    async def body(broker: KafkaBroker) -> None:
        mock.create(TOPIC)
        mock.hide("nowhere")
        refused, taken = await broker.publish([Outgoing("nowhere", "m-1", b"1"), outgoings(1)[0]])
        assert taken is None
        assert "The broker kafka has no such topic" in str(refused)

    run(mock, body)


def test_one_who_cannot_accept_yet_stays_in_the_group_and_gets_no_more_meanwhile(mock: KafkaMock) -> None:
    async def body(broker: KafkaBroker) -> None:
        mock.create(TOPIC)
        assert await broker.publish(outgoings(4)) == [None] * 4
        subscription = await broker.subscribe(TOPIC, GROUP, 2)
        out = await received(subscription, 2)
        await subscription.extend(out)
        assert await subscription.receive(10, 0.01) == []
        await subscription.acknowledge(out)
        assert [delivery.body for delivery in await received(subscription, 2)] == [b"2", b"3"]
        await subscription.close()

    run(mock, body)


def test_what_comes_while_one_only_shows_that_it_is_alive_is_not_lost(
    mock: KafkaMock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body(broker: KafkaBroker) -> None:
        mock.create(TOPIC)
        assert await broker.publish(outgoings(4)) == [None] * 4
        subscription = await broker.subscribe(TOPIC, GROUP, PREFETCH)
        out = await received(subscription, 1)
        # As when partitions are handed round meanwhile: those that are new are not paused.
        consumer = subscription._consumer  # type: ignore[attr-defined]  # noqa: SLF001  a fault
        monkeypatch.setattr(consumer, "pause", lambda *_: None)
        await subscription.extend(out)
        assert [delivery.body for delivery in await received(subscription, 3)] == [b"1", b"2", b"3"]
        await subscription.close()

    run(mock, body)


def test_two_services_ask_and_answer_over_topics(mock: KafkaMock) -> None:
    async def body(broker: KafkaBroker) -> None:
        for topic in ("orders.in", "payments.in", "payments.out", "orders.out"):
            mock.create(topic, partitions=2)
        shop, _ = orders("memory://", new_broker(mock))
        async with shop, payments("memory://", new_broker(mock)):
            await broker.publish([message("orders.in", "1", PlaceOrder("o-1", 42))])
            subscription = await broker.subscribe("orders.out", GROUP, PREFETCH)
            (told,) = await received(subscription, 1)
            assert (told.headers["ce-type"], told.headers["ce-correlationid"]) == ("OrderPaid", "/door#1")
            await subscription.close()
            await shop.instance(Orders, "o-1").result(timeout=timedelta(seconds=60))

    with leader_last():  # two sources of the shop are in one group
        run(mock, body)


def test_the_name_of_a_cluster_stands_in_its_ids(mock: KafkaMock) -> None:
    async def body(broker: KafkaBroker) -> None:
        mock.create(TOPIC)
        assert await broker.publish(outgoings(1)) == [None]
        named = KafkaBroker(f"kafka://{mock.servers}", cluster="eu-2", consumer=QUICK)
        subscription = await named.subscribe(TOPIC, GROUP, PREFETCH)
        assert (await received(subscription, 1))[0].identity == "kafka:eu-2/orders/0/0"
        await named.close()

    run(mock, body)


@pytest.mark.parametrize("url", ["localhost:9092", "kafka://", "kafka://a:1,,b:2", "kafka://user:secret@host:9092", 7])
def test_a_url_that_cannot_be_one_is_refused_and_no_password_shown(url: Any) -> None:
    with pytest.raises(SettingError, match="Write kafka://host:9092") as refused:
        KafkaBroker(url)
    assert "secret" not in str(refused.value)


def test_a_session_without_length_or_end_is_refused() -> None:
    for seconds in (0, float("inf")):
        with pytest.raises(SettingError, match="session_seconds"):
            KafkaBroker("kafka://localhost:9092", session_seconds=seconds)
