"""SQS's adapter: what is its own beside the contract."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from time import monotonic
from typing import Any

import pytest

from mainspring.brokers import sqs_client, sqs_subscription
from mainspring.brokers.port import Delivery, Outgoing, Subscription
from mainspring.brokers.sqs import SqsBroker
from mainspring.brokers.sqs_client import SqsClient
from mainspring.brokers.sqs_subscription import delivery_of
from mainspring.errors import BrokerError, DoNotRetryError, SettingError
from tests.edges.brokers.orders_and_payments import Orders, PlaceOrder, message, orders, payments
from tests.edges.brokers.queues import client, create, own_name, queue, sqs_broker
from tests.edges.brokers.renamed import RenamedBroker

GROUP = "tests"
PREFETCH = 100
WAIT_SECONDS = 60.0
LULL_SECONDS = 0.3
# Whoever holds messages so long without a word has lost them: as soon as SQS knows how, where that is to happen; and
# where it must not, far longer than a busy machine keeps a test from running. Tests let that time pass.
SHORT_SECONDS = 1
HELD_SECONDS = 3_600

PassTime = Callable[[str, float], Awaitable[None]]


@pytest.fixture
def pass_time(monkeypatch: pytest.MonkeyPatch) -> PassTime:
    """Let time pass, both for consumers and for the server."""
    passed = 0.0
    for module in (sqs_client, sqs_subscription):
        monkeypatch.setattr(module, "monotonic", lambda: monotonic() + passed)

    async def pass_time(name: str, seconds: float) -> None:
        nonlocal passed
        url = await url_of(name)
        await asyncio.to_thread(client().tag_queue, QueueUrl=url, Tags={"passed-seconds": str(seconds)})
        passed += seconds

    return pass_time


def run(body: Callable[[SqsBroker, str], Awaitable[None]], **settings: Any) -> None:
    """Run a test with a broker and a queue."""

    async def main() -> None:
        async with queue() as name:
            broker = sqs_broker(**settings)
            await broker.open()
            try:
                await body(broker, name)
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


def outgoings(address: str, *bodies: bytes, key: str | None = "k") -> list[Outgoing]:
    return [Outgoing(address, f"{key}-{n}", body, {"ce-id": f"{key}-{n}"}, key) for n, body in enumerate(bodies)]


def bodies(deliveries: list[Delivery]) -> list[bytes]:
    return [delivery.body for delivery in deliveries]


async def url_of(name: str) -> str:
    return (await asyncio.to_thread(client().get_queue_url, QueueName=name))["QueueUrl"]


async def at_aws(name: str) -> list[dict[str, Any]]:
    """Return the messages of a queue as another program receives them."""
    given = {
        "QueueUrl": await url_of(name),
        "MaxNumberOfMessages": 10,
        "MessageAttributeNames": ["All"],
        "AttributeNames": ["All"],
    }
    return (await asyncio.to_thread(lambda: client().receive_message(**given))).get("Messages", [])


# ---- groups


def test_no_more_is_out_than_its_prefetch_and_the_rest_comes_when_that_is_acknowledged() -> None:
    async def body(broker: SqsBroker, name: str) -> None:
        subscription = await broker.subscribe(name, GROUP, 4)
        assert await broker.publish(outgoings(name, *(b"%d" % n for n in range(6)))) == [None] * 6
        came = await received(subscription, 3)
        came += await subscription.receive(3, WAIT_SECONDS)
        assert bodies(came) == [b"0", b"1", b"2", b"3"]
        assert await subscription.receive(3, LULL_SECONDS) == []
        await subscription.acknowledge(came)
        assert bodies(await received(subscription, 2)) == [b"4", b"5"]
        await subscription.close()

    run(body)


def test_messages_of_two_keys_go_to_two_consumers_each_in_its_order() -> None:
    async def body(broker: SqsBroker, name: str) -> None:
        assert await broker.publish(outgoings(name, b"a1", b"a2", key="a")) == [None, None]
        first = await broker.subscribe(name, GROUP, PREFETCH)
        ones = await received(first, 2)
        assert await broker.publish(outgoings(name, b"b1", b"b2", key="b")) == [None, None]
        second = await broker.subscribe(name, GROUP, PREFETCH)
        others = await received(second, 2)
        assert (bodies(ones), bodies(others)) == ([b"a1", b"a2"], [b"b1", b"b2"])
        await first.close()
        await second.close()

    run(body)


def test_more_than_ten_come_at_once_where_so_many_are_there() -> None:
    async def body(broker: SqsBroker, name: str) -> None:
        several = [each for n in range(5) for each in outgoings(name, *[b"x"] * 5, key=f"k{n}")]
        assert await broker.publish(several) == [None] * 25
        subscription = await broker.subscribe(name, GROUP, PREFETCH)
        came = await subscription.receive(PREFETCH, WAIT_SECONDS)
        assert len(came) == 25
        await subscription.acknowledge(came)
        assert await broker.lag(name, GROUP) == 0
        await subscription.close()

    run(body)


# ---- whose a message is


def test_what_a_consumer_holds_when_it_is_closed_is_another_s_at_once() -> None:
    async def body(broker: SqsBroker, name: str) -> None:
        assert await broker.publish(outgoings(name, b"1", b"2", b"3")) == [None] * 3
        leaving = await broker.subscribe(name, GROUP, PREFETCH)
        assert bodies(await leaving.receive(1, WAIT_SECONDS)) == [b"1"]
        await leaving.close()
        staying = await broker.subscribe(name, GROUP, PREFETCH)
        again = await received(staying, 3)
        assert bodies(again) == [b"1", b"2", b"3"]
        assert [delivery.attempt for delivery in again] == [2, 2, 2]
        await staying.close()

    run(body, takeover_seconds=3_600)


def test_what_was_on_its_way_to_a_consumer_that_is_closed_is_another_s_at_once() -> None:
    async def body(broker: SqsBroker, name: str) -> None:
        leaving = await broker.subscribe(name, GROUP, PREFETCH)
        assert await leaving.receive(1, 0.01) == []  # SQS goes on waiting for it
        assert await broker.publish(outgoings(name, b"1")) == [None]
        await leaving.close()
        staying = await broker.subscribe(name, GROUP, PREFETCH)
        assert bodies(await received(staying, 1)) == [b"1"]
        await staying.close()

    run(body, takeover_seconds=3_600)


def test_what_is_extended_is_nobody_else_s_after_its_time(pass_time: PassTime) -> None:
    async def body(broker: SqsBroker, name: str) -> None:
        assert await broker.publish(outgoings(name, b"1", b"2")) == [None, None]
        holding, other = [await broker.subscribe(name, GROUP, PREFETCH) for _ in range(2)]
        came = await received(holding, 1)  # the other one is held too, and nobody asked for it yet
        for _ in range(3):
            await pass_time(name, 0.4 * HELD_SECONDS)
            await holding.extend(came)
        assert await other.receive(PREFETCH, LULL_SECONDS) == []
        await holding.acknowledge(came)
        assert bodies(await received(holding, 1)) == [b"2"]
        await holding.close()
        await other.close()

    run(body, takeover_seconds=HELD_SECONDS)


def test_what_came_while_others_were_taken_is_extended_with_them(pass_time: PassTime) -> None:
    async def body(broker: SqsBroker, name: str) -> None:
        assert await broker.publish(outgoings(name, b"1", key="a")) == [None]
        holding, other = [await broker.subscribe(name, GROUP, PREFETCH) for _ in range(2)]
        came = await received(holding, 1)
        assert await holding.receive(1, 0) == []  # its request for more waits at SQS
        assert await broker.publish(outgoings(name, b"2", key="b")) == [None]
        await asyncio.wait((polling(holding),))
        for _ in range(3):
            await pass_time(name, 0.4 * HELD_SECONDS)
            await holding.extend(came)
        assert await other.receive(PREFETCH, LULL_SECONDS) == []
        assert bodies(await received(holding, 1)) == [b"2"]
        await holding.close()
        await other.close()

    def polling(subscription: Any) -> asyncio.Task[Any]:
        return subscription._polling  # noqa: SLF001  nothing else tells when the answer came

    run(body, takeover_seconds=HELD_SECONDS, poll_seconds=20)


def test_a_consumer_whose_time_is_up_is_told_and_another_gets_it_in_its_order() -> None:
    async def body(broker: SqsBroker, name: str) -> None:
        assert await broker.publish(outgoings(name, b"1", b"2")) == [None, None]
        short = sqs_broker(takeover_seconds=SHORT_SECONDS)
        stalled = await short.subscribe(name, GROUP, PREFETCH)
        came = await stalled.receive(2, WAIT_SECONDS)
        assert bodies(came) == [b"1", b"2"]
        other = await broker.subscribe(name, GROUP, PREFETCH)
        assert bodies(await received(other, 2)) == [b"1", b"2"]
        with pytest.raises(BrokerError, match="its time was up"):
            await stalled.acknowledge(came)
        with pytest.raises(BrokerError, match="its time was up"):
            await stalled.receive(1, 0.0)
        assert await broker.lag(name, GROUP) == 2
        await short.close()
        await other.close()

    run(body)


def test_a_queue_that_drops_what_comes_too_often_is_refused() -> None:
    async def main() -> None:
        async with queue() as letters, queue() as name:
            given = {"QueueUrl": await create(letters), "AttributeNames": ["QueueArn"]}
            found = await asyncio.to_thread(lambda: client().get_queue_attributes(**given))
            policy = f'{{"deadLetterTargetArn": "{found["Attributes"]["QueueArn"]}", "maxReceiveCount": 5}}'
            url = (await asyncio.to_thread(client().get_queue_url, QueueName=name))["QueueUrl"]
            changed = {"QueueUrl": url, "Attributes": {"RedrivePolicy": policy}}
            await asyncio.to_thread(lambda: client().set_queue_attributes(**changed))
            broker = sqs_broker()
            with pytest.raises(BrokerError, match="RedrivePolicy"):
                await broker.subscribe(name, GROUP, PREFETCH)
            await broker.close()

    asyncio.run(main())


# ---- what is published


def test_a_message_that_is_too_large_for_the_queue_is_refused_for_good_and_the_others_go() -> None:
    async def main() -> None:
        async with queue(MaximumMessageSize="2048") as name:
            broker = sqs_broker()
            outcomes = await broker.publish(outgoings(name, b"1", b"x" * 2_048, b"3"))
            assert [type(outcome) for outcome in outcomes] == [type(None), DoNotRetryError, type(None)]
            assert "2,048 bytes" in str(outcomes[1])
            assert [found["Body"] for found in await at_aws(name)] == ["1", "3"]
            await broker.close()

    asyncio.run(main())


def test_what_is_larger_together_than_a_request_goes_in_several() -> None:
    async def body(broker: SqsBroker, name: str) -> None:
        large = [b"%d" % n * 300_000 for n in range(8)]
        assert await broker.publish(outgoings(name, *large)) == [None] * 8
        subscription = await broker.subscribe(name, GROUP, PREFETCH)
        assert bodies(await received(subscription, 8)) == large
        await subscription.close()

    run(body)


@pytest.mark.parametrize("raw", [b"\x00", b"\xff\xfe", b"a\r\nb", "\ufffe".encode(), b"\x0b"])
def test_a_body_that_is_no_text_of_xml_comes_as_it_was_sent(raw: bytes) -> None:
    async def body(broker: SqsBroker, name: str) -> None:
        assert await broker.publish(outgoings(name, raw)) == [None]
        (found,) = await at_aws(name)
        assert found["MessageAttributes"]["encoding"]["StringValue"] == "base64"
        assert delivery_of(name, found, 1).body == raw

    run(body)


def test_headers_of_any_characters_and_any_number_come_as_they_were_sent() -> None:
    async def body(broker: SqsBroker, name: str) -> None:
        headers = {f"ce-n{n}": "ö\x00\ufffe😀\x7f" for n in range(20)}
        assert await broker.publish([Outgoing(name, "1", b"{}", headers)]) == [None]
        subscription = await broker.subscribe(name, GROUP, PREFETCH)
        (came,) = await received(subscription, 1)
        assert came.headers == headers
        await subscription.close()

    run(body)


def test_a_message_without_a_body_is_refused_for_good() -> None:
    async def body(broker: SqsBroker, name: str) -> None:
        (outcome,) = await broker.publish(outgoings(name, b""))
        assert isinstance(outcome, DoNotRetryError)

    run(body)


def test_a_queue_that_is_not_there_keeps_only_its_own_messages() -> None:
    async def body(broker: SqsBroker, name: str) -> None:
        missing, taken = await broker.publish([*outgoings(own_name(), b"1"), *outgoings(name, b"2")])
        assert isinstance(missing, BrokerError)
        assert missing.of_message
        assert taken is None

    run(body)


def test_nothing_is_sent_behind_a_request_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    call, failing = SqsClient.call, ["the first request"]

    async def failing_once(self: SqsClient, operation: str, *given: Any, **named: Any) -> Any:
        if operation == "send_message_batch" and failing:
            failing.clear()
            raise BrokerError("sqs", "cannot be asked", "Wait.")
        return await call(self, operation, *given, **named)

    async def body(broker: SqsBroker, name: str) -> None:
        monkeypatch.setattr(SqsClient, "call", failing_once)
        outcomes = await broker.publish(outgoings(name, *[b"x"] * 12))
        assert [type(outcome) for outcome in outcomes] == [BrokerError] * 12
        assert await broker.lag(name, GROUP) == 0
        assert await broker.publish(outgoings(name, *[b"x"] * 12)) == [None] * 12

    run(body)


def test_a_server_that_is_away_is_a_broker_error() -> None:
    async def main() -> None:
        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
        broker = SqsBroker("sqs://eu-west-1?endpoint=http://127.0.0.1:1", connect=keys)
        (outcome,) = await broker.publish(outgoings("orders.fifo", b"1"))
        assert isinstance(outcome, BrokerError)
        with pytest.raises(BrokerError, match="cannot be asked"):
            await broker.subscribe("orders.fifo", GROUP, PREFETCH)
        await broker.close()

    asyncio.run(main())


# ---- what others wrote


@pytest.mark.parametrize(
    ("attributes", "headers", "body"),
    [
        ({"ce-id": {"StringValue": "7"}}, {"ce-id": "7"}, b"e30="),
        ({"Retries": {"StringValue": "3", "DataType": "Number"}}, {"retries": "3"}, b"e30="),
        ({"raw": {"BinaryValue": b"\xff"}}, {"raw": "\ufffd"}, b"e30="),
        ({"headers": {"StringValue": "no JSON"}}, {}, b"e30="),
        ({"headers": {"StringValue": '{"n": 7}'}}, {}, b"e30="),
        ({"headers": {"StringValue": "[" * 100_000}}, {}, b"e30="),
        ({"encoding": {"StringValue": "base64"}}, {}, b"{}"),
        ({"encoding": {"StringValue": "gzip"}}, {}, b"e30="),
    ],
)
def test_attributes_of_others_are_read_and_none_keeps_a_message_from_being_delivered(
    attributes: dict[str, Any], headers: dict[str, str], body: bytes
) -> None:
    found = delivery_of("orders.fifo", {"MessageId": "5f", "Body": "e30=", "MessageAttributes": attributes}, 1)
    assert (found.headers, found.body) == (headers, body)


def test_a_body_that_says_it_is_base64_and_is_not_is_delivered_as_it_came() -> None:
    said = {"encoding": {"StringValue": "base64"}}
    found = delivery_of("orders.fifo", {"MessageId": "5f", "Body": '{"n": 1}', "MessageAttributes": said}, 1)
    assert found.body == b'{"n": 1}'


# ---- settings


@pytest.mark.parametrize("address", ["orders", "a/b.fifo", "a.b.fifo", ".fifo", f"{'x' * 76}.fifo"])
def test_an_address_that_is_no_fifo_queue_is_refused(address: str) -> None:
    async def main() -> None:
        with pytest.raises(SettingError, match="name of a FIFO queue"):
            await SqsBroker("sqs://eu-west-1").subscribe(address, GROUP, PREFETCH)

    asyncio.run(main())


@pytest.mark.parametrize(
    "url",
    [
        "sqs://",
        "sqs://EU/west",
        "kafka://eu-west-1",
        "sqs://key:secret@eu-west-1",
        "sqs://eu-west-1?region=x",
        "sqs://eu-west-1?endpoint=ftp://x",
        "sqs://eu-west-1?endpoint",
        7,
    ],
)
def test_a_url_that_names_no_region_is_refused_and_no_secret_is_told(url: Any) -> None:
    with pytest.raises(SettingError) as caught:
        SqsBroker(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("settings", [{"takeover_seconds": 0}, {"takeover_seconds": 1.5}, {"poll_seconds": 21}])
def test_seconds_that_sqs_does_not_know_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match="Use whole seconds"):
        SqsBroker("sqs://eu-west-1", **settings)


# ---- two services


def test_two_services_ask_and_answer_over_queues() -> None:
    async def main() -> None:
        names = {address: own_name() for address in ("orders.in", "payments.in", "payments.out", "orders.out")}
        for name in names.values():
            await create(name)
        entry = RenamedBroker(sqs_broker(), names.__getitem__)
        shop, _ = orders("memory://", RenamedBroker(sqs_broker(), names.__getitem__))
        bank = payments("memory://", RenamedBroker(sqs_broker(), names.__getitem__))
        async with shop, bank:
            assert await entry.publish([message("orders.in", "1", PlaceOrder("o-1", 42))]) == [None]
            paid = await entry.subscribe("orders.out", GROUP, PREFETCH)
            (event,) = await received(paid, 1)
            await paid.close()
            await shop.instance(Orders, "o-1").result(timedelta(seconds=WAIT_SECONDS))
        assert (event.headers["ce-type"], event.body) == ("OrderPaid", b'{"order_id":"o-1"}')
        await entry.close()

    asyncio.run(main())
