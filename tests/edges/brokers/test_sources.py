"""Sources: accepted durably and then acknowledged, in order, whatever the store, the broker and the senders do."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from mainspring import Mainspring
from mainspring.app.internals import internals_of
from mainspring.brokers.memory import MemoryBroker
from mainspring.brokers.port import Delivery, Outgoing
from mainspring.brokers.wire import incoming, outgoing
from mainspring.codec.wire import WireEnvelope
from mainspring.core.events import Received
from mainspring.engine.runtime import SystemClock
from mainspring.errors import StoreBusyError
from mainspring.port.records import Outcome, Unit
from mainspring.stores.memory import MemoryStore
from tests.edges.brokers.orders_and_payments import (
    CardCharged,
    Orders,
    Placed,
    PlaceOrder,
    Remark,
    drained,
    memory,
    message,
    orders,
    remarks,
)
from tests.support.waiting import PATIENCE_SECONDS, until

NUMBERED = 60
TIMES = 1


class Troubled(MemoryStore):
    """A store that refuses every other commit while it is in trouble, or all of them."""

    def __init__(self) -> None:
        super().__init__(SystemClock())
        self.trouble: str | None = None
        self.refused = 0

    async def commit(self, worker: int, units: Sequence[Unit]) -> list[Outcome]:
        if self.trouble == "all" or (self.trouble == "some" and self.refused < TIMES):
            self.refused += 1
            raise StoreBusyError("memory", 5.0)
        return await super().commit(worker, units)


@pytest.fixture(autouse=True)
def tried_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what the store refused be tried again at once, and not after a second."""
    monkeypatch.setattr("mainspring.engine.stepping.inbox.PAUSE_AFTER_STORE_ERROR_SECONDS", 0.05)


async def collected(app: Mainspring, order: str = "o-1") -> list[str]:
    state: Placed = await app.instance(Orders, order).state()
    return list(state.remarks)


def test_messages_of_an_instance_are_taken_in_their_order_though_the_store_is_in_trouble() -> None:
    async def main() -> None:
        broker, store = memory(), Troubled()
        shop, _ = orders("memory://", broker, store=store)
        await broker.publish(remarks(NUMBERED))
        async with shop:
            store.trouble = "some"
            await drained(broker, "orders.in")
            assert store.refused == TIMES
            assert await collected(shop) == [str(n) for n in range(NUMBERED)]

    asyncio.run(main())


def test_nothing_is_acknowledged_and_nothing_more_is_read_while_the_store_is_in_trouble() -> None:
    async def main() -> None:
        broker, store = memory(), Troubled()
        shop, _ = orders("memory://", broker, store=store)
        async with shop:
            await until(lambda: internals_of(shop).services.sources["orders"].figures.state == "running")
            store.trouble = "all"
            await broker.publish(remarks(3))
            await until(lambda: store.refused)
            await broker.publish(remarks(3, "o-2"))
            assert await broker.lag("orders.in", "shop") == 8
            assert internals_of(shop).services.sources["orders"].figures.received == 0
            store.trouble = None
            await drained(broker, "orders.in")
            assert await collected(shop) == await collected(shop, "o-2") == ["0", "1", "2"]

    asyncio.run(main())


def test_a_broker_is_told_that_what_cannot_be_accepted_yet_is_in_good_hands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mainspring.brokers.source.EXTEND_SECONDS", 0.01)
    extended: list[Sequence[Any]] = []

    async def extend(_: Any, deliveries: Sequence[Any]) -> None:
        extended.append(deliveries)

    monkeypatch.setattr("mainspring.brokers.memory._MemorySubscription.extend", extend)

    async def main() -> None:
        broker, store = memory(), Troubled()
        shop, _ = orders("memory://", broker, store=store)
        async with shop:
            store.trouble = "all"
            await broker.publish(remarks(2))
            await until(lambda: len(extended) >= 2)
            store.trouble = None
            await drained(broker, "orders.in")

    asyncio.run(main())
    assert {len(deliveries) for deliveries in extended} == {3}


def test_what_was_accepted_and_not_acknowledged_is_a_duplicate_when_it_comes_again() -> None:
    class Deaf(MemoryBroker):
        """Loses acknowledgements."""

        deaf = True

        async def subscribe(self, address: str, group: str, prefetch: int) -> Any:
            subscription: Any = await super().subscribe(address, group, prefetch)
            heard = subscription.acknowledge

            async def acknowledge(deliveries: Any) -> None:
                if self.deaf and address == "orders.in":
                    self.deaf = False
                    raise ConnectionResetError("the line went dead")
                await heard(deliveries)

            subscription.acknowledge = acknowledge
            return subscription

    async def main() -> None:
        broker = Deaf()
        shop, _ = orders("memory://", broker)
        await broker.publish(remarks(4))
        async with shop:
            await drained(broker, "orders.in")
            figures = internals_of(shop).services.sources["orders"].figures
            assert (figures.received, figures.duplicates, figures.accepted) == (5, 5, 0)
            assert await collected(shop) == ["0", "1", "2", "3"]
            assert await shop.dead_letters() == []

    asyncio.run(main())


def test_a_message_without_an_id_has_the_brokers_own() -> None:
    async def main() -> None:
        broker = memory()
        shop, brokers = orders("memory://", broker)
        brokers.endpoint("bare", "main", "orders.bare")
        brokers.receive("bare", bare_type=PlaceOrder)
        async with shop:
            await broker.publish([Outgoing("orders.bare", "x", b'{"order_id":"o-1","amount":1}')])
            await drained(broker, "orders.bare")
            began = (await shop.instance(Orders, "o-1").stream())[1]
            assert began.message_id == "memory:orders.bare/1"

    asyncio.run(main())


def test_a_whole_envelope_in_json_is_taken_too() -> None:
    async def main() -> None:
        broker = memory()
        shop, _ = orders("memory://", broker)
        body = (
            b'{"specversion":"1.0","id":"7","source":"/door","type":"PlaceOrder","data":{"order_id":"o-1","amount":1}}'
        )
        headers = {"content-type": "application/cloudevents+json; charset=utf-8"}
        async with shop:
            await broker.publish([Outgoing("orders.in", "x", body, headers)])
            await drained(broker, "orders.in")
            began = (await shop.instance(Orders, "o-1").stream())[1]
            assert began.message_id == "/door#7"

    asyncio.run(main())


def test_the_trace_of_a_message_travels_in_the_headers_that_tools_look_for() -> None:
    parent, state = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "rojo=1,congo=t61rcWkgMzE"
    envelope = WireEnvelope(id="1", type="Paid", data=b"{}", traceparent=parent, tracestate=state)
    headers = outgoing(envelope, "payments", None).headers
    assert {name: value for name, value in headers.items() if "trace" in name} == {
        "traceparent": parent,
        "tracestate": state,
    }
    came, _ = incoming(Delivery(b"{}", headers, "memory:payments/1"), "payments")
    assert (came.traceparent, came.tracestate) == (parent, state)


def test_a_message_goes_to_the_instance_that_it_names_past_route() -> None:
    async def main() -> None:
        broker = memory()
        shop, _ = orders("memory://", broker)
        async with shop:
            await shop.send(PlaceOrder("o-1", 1))
            told = message("orders.in", "1", Remark("of another", "hello"), "Remark", instance="Orders/o-1")
            hidden = message("orders.in", "2", Remark("x", "y"), "Remark", instance="mainspring.FanOut/Orders/o-1/3")
            await broker.publish([told, hidden])
            await drained(broker, "orders.in")
            assert await collected(shop) == ["hello"]
            (letter,) = await shop.dead_letters()
            assert "no workflow mainspring.FanOut" in (letter.error or "")

    asyncio.run(main())


def test_an_event_that_every_route_skips_is_counted_and_a_command_is_kept() -> None:
    async def main() -> None:
        broker = memory()
        shop, _ = orders("memory://", broker)
        async with shop:
            nobodys = PlaceOrder("nobody's", 1)
            asked = message("orders.in", "2", nobodys, kind="command")
            await broker.publish([message("orders.in", "1", nobodys, kind="event"), asked])
            await drained(broker, "orders.in")
            await until(lambda: internals_of(shop).services.sources["orders"].figures.undelivered)
            assert internals_of(shop).services.sources["orders"].figures.skipped == 1
            (letter,) = await shop.dead_letters()
            assert letter.message_id == "/door#2"

    asyncio.run(main())


def test_a_batch_larger_than_what_may_be_in_flight_does_not_wait_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mainspring.engine.inputs.intake.INPUTS_IN_FLIGHT", 7)

    async def main() -> None:
        broker = memory()
        shop, _ = orders("memory://", broker)
        await broker.publish(remarks(NUMBERED))
        async with shop:
            await drained(broker, "orders.in")
            assert await collected(shop) == [str(n) for n in range(NUMBERED)]

    asyncio.run(main())


def test_the_result_of_a_command_counts_once_though_its_service_names_it_otherwise_each_time() -> None:
    async def main() -> None:
        broker = memory()
        shop, _ = orders("memory://", broker)
        async with shop:
            await shop.send(PlaceOrder("o-1", 1))
            (command,) = await until(lambda: broker.log("payments.in"))
            names = {"kind": "result", "instance": "Orders/o-1", "causationid": command.headers["ce-id"]}
            charged = CardCharged("o-1")
            await broker.publish([message("payments.out", id, charged, "CardCharged", **names) for id in ("1", "2")])
            await drained(broker, "payments.out")
            story = [entry.event for entry in await shop.instance(Orders, "o-1").stream()]
            assert story.count(Received(charged)) == 1
            await until(lambda: internals_of(shop).services.sources["paid"].figures.duplicates)

    asyncio.run(main())


def test_a_source_connects_again_when_its_broker_is_back() -> None:
    async def main() -> None:
        broker = memory()
        broker.down = True
        shop, _ = orders("memory://", broker)
        async with shop:
            source = internals_of(shop).services.sources["orders"]
            await until(lambda: source.figures.state == "failing")
            assert "is down" in (source.figures.error or "")
            broker.down = False
            await broker.publish(remarks(2))
            await drained(broker, "orders.in")
            assert (source.figures.state, source.figures.error) == ("running", None)

    asyncio.run(main())


def test_a_pause_is_kept_and_seen_by_every_process() -> None:
    async def main() -> None:
        broker, store = memory(), MemoryStore(SystemClock())
        shop, _ = orders("memory://", broker, store=store)
        async with shop:
            source = internals_of(shop).services.sources["orders"]
            await source.pause("the warehouse moves", actor="ann")
            await until(lambda: source.figures.state == "paused")
            await broker.publish(remarks(2))
        other, _ = orders("memory://", broker, store=store)
        async with other:
            source = internals_of(other).services.sources["orders"]
            await until(lambda: source.figures.state == "paused")
            assert await source.paused() == "the warehouse moves (ann)"
            assert await source.lag() == 3
            await source.resume()
            await drained(broker, "orders.in")
            assert await source.paused() is None

    asyncio.run(main())


class Closing(MemoryBroker):
    """A broker that answers who asks for the first endpoint at once, and others when they are let."""

    def __init__(self) -> None:
        super().__init__()
        self.closed = 0
        self.asked = asyncio.Event()
        self.may_answer = asyncio.Event()

    async def close(self) -> None:
        self.closed += 1

    async def lag(self, address: str, group: str) -> int | None:
        if address != "orders.in":
            self.asked.set()
            await self.may_answer.wait()
        return self.closed


def test_a_broker_is_not_closed_while_another_source_asks_it() -> None:
    async def main() -> None:
        broker = Closing()
        shop, _ = orders("memory://", broker)
        await shop.start(work=False)
        sources = internals_of(shop).services.sources
        slow = asyncio.ensure_future(sources["paid"].lag())
        await broker.asked.wait()
        assert await sources["orders"].lag() == 0
        broker.may_answer.set()
        assert (await slow, broker.closed) == (0, 1)
        await shop.stop()

    asyncio.run(main())


class Watched(MemoryStore):
    """A store that tells when it commits."""

    def __init__(self) -> None:
        super().__init__(SystemClock())
        self.commits = asyncio.Event()

    async def commit(self, worker: int, units: Sequence[Unit]) -> list[Outcome]:
        self.commits.set()
        await asyncio.sleep(0)  # whoever waits for it is before its end
        return await super().commit(worker, units)


def test_a_stop_in_the_middle_loses_nothing_and_doubles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mainspring.brokers.source.BATCH", NUMBERED // 10)

    async def main() -> None:
        broker, store = memory(), Watched()
        await broker.publish(remarks(NUMBERED))
        for _ in range(3):
            shop, brokers = orders("memory://", broker, store=store)
            brokers.receive("events", Remark, prefetch=1)  # one that is idle stops as well
            store.commits.clear()
            await shop.start()
            async with asyncio.timeout(PATIENCE_SECONDS):
                await store.commits.wait()
            await shop.stop()
        lag = await broker.lag("orders.in", "shop")
        assert lag is not None
        assert 0 < lag < NUMBERED
        shop, _ = orders("memory://", broker, store=store)
        async with shop:
            await drained(broker, "orders.in")
            assert await collected(shop) == [str(n) for n in range(NUMBERED)]

    asyncio.run(main())
