"""One message followed from its sender to the last step, with a real OpenTelemetry SDK."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.trace import SpanKind, StatusCode

from mainspring import Complete, Context, Decisions, Event, Mainspring, Retry, Workflow
from mainspring.app.internals import internals_of
from mainspring.engine.runtime import Runtime
from mainspring.stores.memory import MemoryStore
from mainspring.telemetry.tracing import Tracing, context_of
from mainspring.testing import simulate
from mainspring.testing.clock import VirtualClock
from tests.edges.telemetry.order_of_every_kind import (
    DAYS,
    Charge,
    Charged,
    Ordered,
    Orders,
    PlaceOrder,
    charge_in_process,
    charge_in_thread,
    shop,
)
from tests.edges.telemetry.spans import Spans, id_of, is_below, links_to, trace_ids
from tests.support.running import run
from tests.support.waiting import until

QUICK = Retry(first=timedelta(milliseconds=1), max_attempts=2)


def ordered(spans: Spans) -> Callable[[], bool]:
    return lambda: bool(spans.of("Reserved"))


def test_one_message_is_one_trace_from_its_sender_to_the_last_step() -> None:
    spans = Spans()
    app = shop(Mainspring("memory://"))
    app.observe(traces=spans.provider)

    async def main() -> None:
        async with app:
            with spans.provider.get_tracer("a web app").start_as_current_span("POST /orders"):
                await app.send(PlaceOrder("o-1"), id="checkout-1")
            await until(ordered(spans))

    run(main)
    way = [
        next(span for span in spans.all if span.name == "POST /orders"),
        spans.one("PlaceOrder", "send"),
        spans.one("PlaceOrder"),
        spans.one("Charge", "handle"),
        spans.one("Charged"),
        spans.one("Reserve"),
        spans.one("Reserved"),
    ]
    assert len(trace_ids(way)) == 1
    assert [is_below(child, parent) for parent, child in pairwise(way)] == [True] * 6
    assert [span.kind for span in way[1:4]] == [SpanKind.PRODUCER, SpanKind.CONSUMER, SpanKind.CONSUMER]
    assert dict(way[2].attributes or {}) == {
        "messaging.system": "mainspring",
        "messaging.operation.name": "step",
        "messaging.operation.type": "process",
        "messaging.destination.name": "Orders",
        "messaging.message.id": "checkout-1",
        "messaging.message.conversation_id": "checkout-1",
        "mainspring.workflow": "Orders",
        "mainspring.instance": "o-1",
        "mainspring.message.type": "PlaceOrder",
        "mainspring.message.kind": "command",
        "mainspring.outcome": "stepped",
        "mainspring.position": 3,
    }
    assert dict(way[3].attributes or {}) == {
        "messaging.system": "mainspring",
        "messaging.operation.name": "handle",
        "messaging.operation.type": "process",
        "messaging.destination.name": "Charge",
        "messaging.message.id": "Orders/o-1/3",
        "messaging.message.conversation_id": "checkout-1",
        "mainspring.handler": "charge",
        "mainspring.message.type": "Charge",
        "mainspring.workflow": "Orders",
        "mainspring.instance": "o-1",
        "mainspring.attempt": 1,
        "mainspring.outcome": "succeeded",
    }


@pytest.mark.parametrize(("handler", "options"), [(charge_in_thread, {}), (charge_in_process, {"executor": "process"})])
def test_what_a_handler_does_stands_below_its_span_wherever_it_runs(handler: Any, options: dict[str, Any]) -> None:
    spans = Spans()
    app = shop(Mainspring("memory://"), wired=False)
    app.handler(**options)(handler)
    app.observe(traces=spans.provider)

    async def main() -> None:
        async with app:
            await app.send(PlaceOrder("o-1"))
            await until(ordered(spans))
            stream = await app.instance(Orders, "o-1").stream()
            [charged] = [m for entry in stream if isinstance(m := getattr(entry.event, "message", None), Charged)]
            assert charged.below == f"{id_of(spans.one('Charge', 'handle')):016x}"

    run(main)


def test_two_handlers_at_once_are_each_at_their_own_span() -> None:
    spans, both = Spans(), asyncio.Barrier(2)
    tracer = spans.provider.get_tracer("the handler's own")
    app = shop(Mainspring("memory://"), wired=False)

    @app.handler
    async def charge(command: Charge, context: Context) -> Charged:
        await both.wait()
        with tracer.start_as_current_span("call the bank", attributes={"mainspring.message.type": command.id}):
            await both.wait()
        # Whoever passes the envelope on by other ways carries the trace of this very attempt.
        carried = context_of(context.envelope.trace)
        assert carried is not None
        assert carried.span_id == trace.get_current_span().get_span_context().span_id
        return Charged(command.id)

    app.observe(traces=spans.provider)

    async def main() -> None:
        async with app:
            await app.send_many([PlaceOrder("o-1"), PlaceOrder("o-2")])
            await until(lambda: len(spans.of("Reserved")) == 2)

    run(main)
    for id in ("o-1", "o-2"):
        [handled] = [s for s in spans.of("Charge", "handle") if (s.attributes or {})["mainspring.instance"] == id]
        assert is_below(spans.one(id, "call"), handled)
        assert (handled.attributes or {})["mainspring.outcome"] == "succeeded"
    assert trace.get_current_span() is trace.INVALID_SPAN


def test_a_message_that_a_handler_sends_belongs_to_its_trace() -> None:
    spans = Spans()
    app = shop(Mainspring("memory://"), wired=False)

    @app.handler
    async def charge(command: Charge) -> Charged:
        if command.id == "o-1":
            await app.send(PlaceOrder("o-2"))
        return Charged(command.id)

    app.observe(traces=spans.provider)

    async def main() -> None:
        async with app:
            await app.send(PlaceOrder("o-1"))
            await until(lambda: len(spans.of("Reserved")) == 2)

    run(main)
    first, second = spans.of("Charge", "handle")[::-1], spans.of("PlaceOrder", "send")
    assert len(trace_ids(spans.all)) == 1
    assert any(is_below(sent, handled) for sent in second for handled in first)


def test_a_failed_attempt_and_the_next_are_spans_of_one_trace_with_the_error_on_the_first() -> None:
    spans = Spans()
    app = shop(Mainspring("memory://"), wired=False)
    tries: list[str] = []

    @app.handler(retry=QUICK)
    async def charge(command: Charge) -> Charged:
        tries.append(command.id)
        if len(tries) == 1:
            raise ConnectionError("the bank is closed")
        return Charged(command.id)

    app.observe(traces=spans.provider)

    async def main() -> None:
        async with app:
            await app.send(PlaceOrder("o-1"))
            await until(ordered(spans))

    run(main)
    failed, succeeded = spans.of("Charge", "handle")
    assert failed.status.status_code is StatusCode.ERROR
    assert failed.status.description == "ConnectionError: the bank is closed"
    assert [event.name for event in failed.events] == ["exception"]
    assert (failed.attributes or {})["error.type"] == "ConnectionError"
    assert [(span.attributes or {})["mainspring.attempt"] for span in (failed, succeeded)] == [1, 2]
    assert succeeded.status.is_ok
    # The second was read from the store, which knows the sender of the message, and not the step that decided it.
    assert is_below(succeeded, spans.one("PlaceOrder", "send"))
    assert len(trace_ids(spans.all)) == 1


def test_a_step_that_fails_has_the_error_on_its_span() -> None:
    spans = Spans()
    app = shop(Mainspring("memory://"))
    app.observe(traces=spans.provider)

    async def main() -> None:
        async with app:
            await app.send(PlaceOrder("bad-1"))
            await until(lambda: bool(spans.of("Charged")))

    run(main)
    faulted = spans.one("Charged")
    assert (faulted.attributes or {})["mainspring.outcome"] == "suspended"
    assert "no idea" in (faulted.status.description or "")


def test_what_happens_days_later_is_a_trace_of_its_own_that_is_linked_to_its_sender() -> None:
    spans, clock = Spans(), VirtualClock()
    app = shop(Mainspring("memory://", runtime=Runtime(clock), store=MemoryStore(clock)))
    app.observe(traces=spans.provider)

    async def main() -> None:
        async with app:
            receipt = await app.send(PlaceOrder("o-1"))
            await until(ordered(spans))
            clock.advance(DAYS.total_seconds() + 1)
            await receipt.result()
            await until(lambda: bool(spans.of("AskHowItWas")))

    run(main)
    late = spans.one("AskHowItWas")
    assert late.parent is None
    assert trace_ids([late]).isdisjoint(trace_ids([spans.one("PlaceOrder", "send")]))
    assert trace_ids(span for span in spans.all if span is not late) == {link.context.trace_id for link in late.links}
    # The reply came from the other workflow: it is the last message of the instance that says whence it came.
    assert links_to(late) == {id_of(spans.one("Reserve"))}


def test_a_second_message_of_an_instance_is_linked_to_the_one_that_began_it() -> None:
    @dataclass(frozen=True)
    class Note:
        id: str
        last: bool = False

    class Notes(Workflow[Note, Note, Note]):
        initial_state = Note("")

        def route(self, message: Note) -> str | None:
            return message.id

        def decide(self, message: Note, state: Note) -> Decisions[Note, Note] | None:
            return [Complete()] if message.last else []

        def evolve(self, state: Note, event: Event[Note, Note]) -> Note | None:
            return None

    spans = Spans()
    app = Mainspring("memory://")
    app.add(Notes())
    app.observe(traces=spans.provider)

    async def main() -> None:
        async with app:
            await app.send(Note("n-1"))
            await app.send(Note("n-1", last=True))

    run(main)
    (began, _), (_, second) = spans.of("Note", "send"), spans.of("Note", "step")
    assert links_to(second) == {id_of(began)}
    assert second.links[0].attributes == {"mainspring.link": "began"}


def test_a_batch_is_one_span_linked_to_all_that_sent_its_messages() -> None:
    spans = Spans()
    app = shop(Mainspring("memory://"), wired=False)

    @app.handler(batch=10)
    async def charge(commands: list[Charge]) -> list[Charged]:
        return [Charged(command.id) for command in commands]

    app.observe(traces=spans.provider)

    async def main() -> None:
        async with app:
            await app.send_many([PlaceOrder(f"o-{n}") for n in range(3)])
            await until(lambda: len(spans.of("Reserved")) == 3)

    run(main)
    handled = spans.one("Charge", "handle")
    assert (handled.attributes or {})["messaging.batch.message_count"] == 3
    assert links_to(handled) == {id_of(span) for span in spans.of("PlaceOrder", "step")}
    assert all(is_below(result, handled) for result in spans.of("Charged"))


def test_a_subscriber_is_called_below_the_step_that_published() -> None:
    spans, heard = Spans(), list[str]()
    app = shop(Mainspring("memory://"))

    @app.subscribe
    async def tell(event: Ordered) -> None:
        heard.append(f"{trace.get_current_span().get_span_context().span_id:016x}")

    app.observe(traces=spans.provider)

    async def main() -> None:
        async with app:
            await app.send(PlaceOrder("o-1"))
            await until(lambda: bool(spans.of("Ordered", "handle")))

    run(main)
    told = spans.one("Ordered", "handle")
    assert is_below(told, spans.one("Reserved"))
    assert heard == [f"{id_of(told):016x}"]


def test_a_refused_message_and_one_for_nobody_say_so_on_their_spans() -> None:
    spans, app = Spans(), shop(Mainspring("memory://"))
    app.observe(traces=spans.provider)

    async def main() -> None:
        async with app:
            await app.send(PlaceOrder("o-1"), id="m-1")
            await app.send(PlaceOrder("o-1"), id="m-1")
            await app.send(Charged("nobody"))

    run(main)
    assert [(span.attributes or {})["mainspring.outcome"] for span in spans.of("PlaceOrder", "send")] == [
        "stepped",
        "duplicate",
    ]
    assert (spans.one("Charged", "send").attributes or {})["mainspring.outcome"] == "dead letter"


def test_without_an_sdk_nothing_breaks_and_no_trace_is_made_up() -> None:
    traces: list[str | None] = []
    app = shop(Mainspring("memory://"), wired=False)

    @app.handler
    async def charge(command: Charge, context: Context) -> None:
        traces.append(context.envelope.trace)

    app.observe(traces=trace.NoOpTracerProvider())

    async def main() -> None:
        async with app:
            await app.send(PlaceOrder("o-1"))
            await until(lambda: bool(traces))

    run(main)
    assert traces == [None]


class Broken(SpanProcessor):
    """A processor of somebody's that cannot even begin."""

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        raise RuntimeError("the collector's file is not there")


def test_tracing_that_fails_stops_nothing_and_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    provider = TracerProvider()
    provider.add_span_processor(Broken())
    app, done = shop(Mainspring("memory://"), wired=False), list[str]()

    @app.handler
    async def charge(command: Charge) -> Charged:
        done.append(command.id)
        return Charged(command.id)

    app.observe(traces=provider)

    async def main() -> None:
        async with app:
            await app.send_many([PlaceOrder("o-1"), PlaceOrder("o-2")])
            await until(lambda: len(done) == 2)

    run(main)
    assert sum("which is logged once" in record.message for record in caplog.records) == 1


def test_a_simulation_makes_no_spans() -> None:
    spans, app = Spans(), shop(Mainspring("memory://"))
    app.observe(traces=spans.provider)

    async def main() -> None:
        async with simulate(app) as world:
            await world.send(PlaceOrder("o-1"))
            await world.advance(days=4)

    run(main)
    assert spans.all == ()
    assert internals_of(app).telemetry is not None


@dataclass(frozen=True)
class Pay:
    order: str
    card: str


class Payments(Workflow[Pay, Ordered, Charge]):
    """It knows no payment at all."""

    initial_state = Ordered("secret-state")

    def route(self, message: Pay) -> str:
        return message.order

    def decide(self, message: Pay, state: Ordered) -> Decisions[Pay, Charge] | None:
        if message.order == "o-long":
            raise ValueError("x" * 1_000_000)
        return None

    def evolve(self, state: Ordered, event: Event[Pay, Charge]) -> Ordered | None:
        return None


def test_no_message_or_state_is_in_a_span_and_no_error_is_longer_than_it_may_be() -> None:
    spans, app = Spans(), Mainspring("memory://")
    app.add(Payments())
    app.observe(traces=spans.provider)

    async def main() -> None:
        async with app:
            await app.send(Pay("o-1", "4111-1111"))
            await app.send(Pay("o-long", "4111-1111"))

    run(main)
    unknown, long = spans.of("Pay")
    assert "has no transition for Pay" in (unknown.status.description or "")
    assert "Add a case to decide" in (unknown.status.description or "")
    written = [span.to_json() for span in spans.all]
    assert not [text for text in written if "4111-1111" in text or "secret-state" in text]
    assert "in decide" in long.to_json()  # where it was raised
    assert max(map(len, written)) < 20_000


@pytest.mark.parametrize("stamp", ["f" * 500, "7fffffff", "-1", "never"])
def test_nobody_keeps_a_trace_young_by_saying_that_it_began_in_the_future(stamp: str) -> None:
    """Its age stands in a header, which comes from outside too."""
    spans, made_us = Spans(), 1_000_000 * 1_000_000
    tracing, sender = Tracing(spans.provider, 60), f"00-{7:032x}-{8:016x}-01;mainspring={stamp}"
    for seconds in (0, 61):
        begun = tracing.process("step", {}, [(sender, made_us)], made_us + seconds * 1_000_000)
        assert len(begun.trace or "") < 100
        tracing.end(begun, "stepped")
    young, old = spans.all
    assert old.parent is None
    assert [link.context.trace_id for link in old.links] == [7]
    assert (young.parent is None) == (stamp == "-1")
