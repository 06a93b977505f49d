"""Two services over a broker: asked, answered to the very instance that asked, and told on."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import pytest

from mainspring.brokers.memory import MemoryBroker
from mainspring.brokers.port import Outgoing
from mainspring.errors import NoSuchInstanceError
from tests.edges.brokers.orders_and_payments import Orders, PlaceOrder, drained, memory, message, orders, payments
from tests.support.waiting import until

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_a_reply_comes_back_to_the_instance_that_asked_in_another_service() -> None:
    async def main() -> None:
        broker = memory()
        shop, _ = orders("memory://", broker)
        bank = payments("memory://", broker)
        async with shop, bank:
            await broker.publish([message("orders.in", "1", PlaceOrder("o-1", 42))])
            await until(lambda: broker.log("orders.out"))
            assert await shop.instance(Orders, "o-1").result() is None
            told = [type(entry.event).__name__ for entry in await shop.instance(Orders, "o-1").stream()]
        assert told == ["Began", "InitiatedBy", "Sent", "Received", "Published", "Completed"]
        (reply,) = broker.log("payments.out")
        assert (reply.headers["ce-kind"], reply.headers["ce-instance"]) == ("reply", "Orders/o-1")

    asyncio.run(main())


def test_what_goes_out_says_what_it_is_who_sent_it_and_what_led_to_it() -> None:
    async def main() -> Outgoing:
        broker = memory()
        shop, _ = orders("memory://", broker)
        came = message("orders.in", "1", PlaceOrder("o-1", 42), correlationid="checkout-7")
        async with shop:
            await broker.publish([Outgoing(came.address, came.id, came.body, {**came.headers, "traceparent": TRACE})])
            await until(lambda: broker.log("payments.in"))
        return broker.log("payments.in")[0]

    sent = asyncio.run(main())
    assert (sent.id, sent.key) == ("/shop#Orders/o-1/3", "Orders/o-1")
    assert sent.body == b'{"order_id":"o-1","amount":42}'
    assert sent.headers["traceparent"].split("-")[1] == TRACE.split("-")[1]
    said = {name: value for name, value in sent.headers.items() if name not in ("ce-time", "traceparent")}
    assert said == {
        "content-type": "application/json",
        "ce-specversion": "1.0",
        "ce-envelopeversion": "1",
        "ce-id": "Orders/o-1/3",
        "ce-source": "/shop",
        "ce-type": "ChargeCard",
        "ce-typeversion": "1",
        "ce-kind": "command",
        "ce-correlationid": "checkout-7",
        "ce-causationid": "/door#1",
        "ce-sender": "Orders/o-1",
        "ce-replyto": "payments.out",
    }


def test_nothing_is_settled_before_the_broker_has_confirmed_it() -> None:
    async def main() -> None:
        broker = memory()
        shop, _ = orders("memory://", broker)
        async with shop:
            broker.down = True
            await shop.send(PlaceOrder("o-1", 42))
            tried = await until(lambda: attempted(shop))
            assert "is down" in (tried.error or "")
            broker.down = False
            await until(lambda: broker.log("payments.in"))

            async def settled() -> bool:
                return not await shop.instance(Orders, "o-1").outputs()

            await until(settled)
        assert [out.id for out in broker.log("payments.in")] == ["/shop#Orders/o-1/3"]

    async def attempted(shop: object) -> object:
        outputs = await shop.instance(Orders, "o-1").outputs()  # type: ignore[attr-defined]
        return next((output for output in outputs if output.attempts), None)

    asyncio.run(main())


def test_an_attempt_whose_confirmation_was_lost_adds_nothing() -> None:
    class Forgetful(MemoryBroker):
        forgets = 2

        async def publish(self, messages: Sequence[Outgoing]) -> list[Exception | None]:
            outcomes = await super().publish(messages)
            if self.forgets:
                self.forgets -= 1
                raise ConnectionResetError("the line went dead")
            return outcomes

    async def main() -> None:
        broker = Forgetful()
        shop, _ = orders("memory://", broker)
        async with shop:
            await shop.send(PlaceOrder("o-1", 42))

            async def settled() -> bool:
                return not await shop.instance(Orders, "o-1").outputs()

            await until(settled)
        assert broker.forgets == 0
        assert [out.id for out in broker.log("payments.in")] == ["/shop#Orders/o-1/3"]

    asyncio.run(main())


def test_a_broker_that_never_answers_keeps_nothing_behind_it_waiting_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mainspring.brokers.sink.PUBLISH_SECONDS", 0.05)

    class Silent(MemoryBroker):
        silent = True

        async def publish(self, messages: Sequence[Outgoing]) -> list[Exception | None]:
            if self.silent:
                self.silent = False
                await asyncio.Event().wait()
            return await super().publish(messages)

    async def main() -> None:
        broker = Silent()
        shop, _ = orders("memory://", broker)
        async with shop:
            await shop.send(PlaceOrder("o-1", 42))
            await until(lambda: broker.log("payments.in"))

    asyncio.run(main())


def test_a_client_that_does_not_work_receives_nothing_and_can_publish() -> None:
    async def main() -> None:
        broker = memory()
        shop, _ = orders("memory://", broker)
        await shop.start(work=False)
        try:
            await broker.publish([message("orders.in", "1", PlaceOrder("o-1", 42))])
            with pytest.raises(NoSuchInstanceError):
                await shop.instance(Orders, "o-1").result(timedelta(milliseconds=50))
            assert await broker.lag("orders.in", "shop") == 1
        finally:
            await shop.stop()
        async with shop:
            await drained(broker, "orders.in")

    asyncio.run(main())
