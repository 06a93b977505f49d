"""Traces over edges: from and to other services, and in transactions of programs."""

import asyncio
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.trace import SpanKind

from mainspring import Context, Decisions, Event, Mainspring, Workflow
from mainspring.app.internals import internals_of
from mainspring.app.scraping import exposition
from mainspring.brokers.brokers import Brokers
from mainspring.brokers.memory import MemoryBroker
from tests.edges.telemetry.order_of_every_kind import Charge, Ordered, PlaceOrder, shop
from tests.edges.telemetry.spans import Spans, is_below, trace_ids
from tests.support.running import run
from tests.support.waiting import until


class Tally(Workflow[Ordered, Ordered, Ordered]):
    """Another service's: it hears of orders."""

    initial_state = Ordered("")

    def route(self, message: Ordered) -> str | None:
        return message.id

    def decide(self, message: Ordered, state: Ordered) -> Decisions[Ordered, Ordered] | None:
        return []

    def evolve(self, state: Ordered, event: Event[Ordered, Ordered]) -> Ordered | None:
        return None


def test_a_message_carries_the_trace_it_came_with_whether_or_not_anything_is_traced_here() -> None:
    carried = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01;a=1"
    seen: list[str | None] = []

    def made() -> Mainspring:
        app = shop(Mainspring("memory://"), wired=False)

        @app.handler
        async def charge(command: Charge, context: Context) -> None:
            seen.append(context.envelope.trace)

        return app

    async def send(app: Mainspring) -> None:
        async with app:
            intake = internals_of(app).engine.intake
            pending = intake.envelop(PlaceOrder("o-1"), intake.taker(PlaceOrder("o-1")), trace=carried)
            assert pending is not None
            await intake.answered(pending)
            await until(lambda: bool(seen))

    run(lambda: send(made()))
    assert seen == [carried]
    seen.clear()
    spans, app = Spans(), made()
    app.observe(traces=spans.provider)
    run(lambda: send(app))
    received = spans.one("PlaceOrder", "send")
    assert received.kind is SpanKind.CONSUMER
    assert received.parent is not None
    assert (trace_ids([received]), received.parent.span_id) == (
        {0x4BF92F3577B34DA6A3CE929D0E0E4736},
        0x00F067AA0BA902B7,
    )
    assert (seen[0] or "").endswith(",a=1")


def test_a_trace_goes_on_in_another_service_behind_a_broker() -> None:
    spans, between = Spans(), MemoryBroker()
    orders, counting = shop(Mainspring("memory://")), Mainspring("memory://")
    counting.add(Tally())
    for app, name in ((orders, "orders"), (counting, "counting")):
        brokers = Brokers(app, name)
        brokers.add("main", between)
        brokers.endpoint("ordered", "main", "orders.ordered")
        if name == "orders":
            brokers.publish(Ordered, to="ordered")
        else:
            brokers.receive("ordered", Ordered)
        app.observe(traces=spans.provider, metrics=True)

    async def main() -> None:
        async with orders, counting:
            await orders.send(PlaceOrder("o-1"), id="checkout-1")
            await until(lambda: bool(spans.of("Ordered", "step Tally")))
            await until(lambda: internals_of(counting).services.sources["ordered"].figures.accepted == 1)
            scraped = (await exposition(counting))[0].decode()
            assert 'mainspring_source_messages_total{outcome="accepted",source="ordered"} 1.0' in scraped
            assert 'mainspring_source_failing{source="ordered"} 0.0' in scraped

    run(main)
    way = [
        spans.one("Reserved"),
        spans.one("Ordered", "handle"),
        spans.one("Ordered", "publish Tally"),
        spans.one("Ordered", "step Tally"),
    ]
    assert len(trace_ids(spans.all)) == 1
    assert [is_below(child, parent) for parent, child in pairwise(way)] == [True] * 3
    assert way[2].kind is SpanKind.CONSUMER
    assert (way[3].attributes or {})["messaging.message.conversation_id"] == "checkout-1"


def test_whoever_stops_waiting_for_messages_of_a_source_ends_their_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    spans, app = Spans(), shop(Mainspring("memory://"))
    app.observe(traces=spans.provider)

    async def main() -> None:
        async with app:
            intake, commit, go_on = (
                internals_of(app).engine.intake,
                internals_of(app).engine.store.commit,
                asyncio.Event(),
            )

            async def slow(*given: Any) -> Any:
                await go_on.wait()
                return await commit(*given)

            monkeypatch.setattr(internals_of(app).engine.store, "commit", slow)
            batch = [intake.sent(PlaceOrder(f"o-{number}")) for number in range(3)]
            waiting = asyncio.create_task(intake.each_answered(batch))
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait((waiting,))
            assert len(spans.of("PlaceOrder", "send")) == 3
            go_on.set()

    run(main)


def test_sources_are_asked_for_their_lag_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers that are away would else make a scrape take so much longer each, just when it is wanted most."""
    between, counting = MemoryBroker(), Mainspring("memory://")
    counting.add(Tally())
    brokers = Brokers(counting, "counting")
    brokers.add("main", between)
    for name in ("one", "two"):
        brokers.endpoint(name, "main", f"orders.{name}")
        brokers.receive(name, Ordered)
    counting.observe(metrics=True)

    async def main() -> None:
        both = asyncio.Barrier(2)

        async def lag(*_: Any) -> int:
            await both.wait()
            return 3

        monkeypatch.setattr(between, "lag", lag)
        async with counting:
            scraped = (await exposition(counting))[0].decode()
            assert re.findall(r'mainspring_source_lag{source="(\w+)"} 3.0', scraped) == ["one", "two"]

    run(main)


def test_a_trace_that_nobody_can_read_is_passed_over() -> None:
    spans, app = Spans(), shop(Mainspring("memory://"))
    app.observe(traces=spans.provider)

    async def main() -> None:
        async with app:
            intake = internals_of(app).engine.intake
            pending = intake.envelop(PlaceOrder("o-1"), intake.taker(PlaceOrder("o-1")), trace="of some other kind")
            assert pending is not None
            await intake.answered(pending)
            await until(lambda: bool(spans.of("Reserved")))

    run(main)
    received = spans.one("PlaceOrder", "send")
    assert received.parent is None
    assert not received.links
    assert is_below(spans.one("PlaceOrder"), received)


def test_a_message_in_a_transaction_is_sent_there_and_stepped_when_it_is_committed(tmp_path: Path) -> None:
    spans, app = Spans(), shop(Mainspring(f"sqlite:///{tmp_path / 'shop.db'}"))
    app.observe(traces=spans.provider)

    async def main() -> None:
        async with app:
            async with app.transaction() as transaction:
                await transaction.execute("CREATE TABLE carts (id TEXT)")
                transaction.send(PlaceOrder("o-1"))
            await until(lambda: bool(spans.of("Reserved")))

    run(main)
    sent = spans.one("PlaceOrder", "send")
    assert (sent.attributes or {})["mainspring.outcome"] == "posted"
    assert is_below(spans.one("PlaceOrder"), sent)
