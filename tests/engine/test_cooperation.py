"""Workflows that talk to each other, published messages, snapshots, restarts."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from mainspring import (
    Complete,
    Decisions,
    Event,
    Mainspring,
    Publish,
    Received,
    Reply,
    Retry,
    Send,
    Workflow,
)
from mainspring.app.internals import internals_of
from mainspring.engine.recording.stored_values import read_context
from mainspring.port.ids import MARK
from mainspring.port.records import Ref
from tests.support.apps import MakeApp
from tests.support.rows import row_of
from tests.support.running import run
from tests.support.waiting import until


@dataclass(frozen=True)
class Order:
    id: str
    sku: str


@dataclass(frozen=True)
class Answered:
    sku: str
    left: int


@dataclass(frozen=True)
class CheckStock:
    sku: str


@dataclass(frozen=True)
class Ordered:
    id: str
    sku: str


@dataclass(frozen=True)
class Asking:
    id: str = ""


class Ordering(Workflow[Order | Answered, Asking, CheckStock | Ordered]):
    """Asks another workflow, and says publicly how it went."""

    begins = Order
    initial_state = Asking()

    def route(self, message: Order | Answered) -> str | None:
        return message.id if isinstance(message, Order) else None

    def evolve(self, state: Asking, event: Event[Order | Answered, CheckStock | Ordered]) -> Asking | None:
        match event:
            case Received(Order(id)):
                return Asking(id)

    def decide(
        self, message: Order | Answered, state: Asking
    ) -> Decisions[Order | Answered, CheckStock | Ordered] | None:
        match message:
            case Order(_, sku):
                return [Send(CheckStock(sku))]
            case Answered(sku):
                return [Publish(Ordered(state.id, sku)), Complete()]


@dataclass(frozen=True)
class Stocked:
    asked: int = 0


class Stock(Workflow[CheckStock, Stocked, Answered]):
    initial_state = Stocked()
    snapshot_every = 10

    def route(self, message: CheckStock) -> str | None:
        return message.sku

    def evolve(self, state: Stocked, event: Event[CheckStock, Answered]) -> Stocked | None:
        match event:
            case Received(CheckStock()):
                return Stocked(state.asked + 1)

    def decide(self, message: CheckStock, state: Stocked) -> Decisions[CheckStock, Answered] | None:
        return [Reply(Answered(message.sku, 10 - state.asked))]


class Ledger(Workflow[Ordered, Stocked, Ordered]):
    initial_state = Stocked()

    def route(self, message: Ordered) -> str | None:
        return f"ledger-{message.sku}"

    def evolve(self, state: Stocked, event: Event[Ordered, Ordered]) -> Stocked | None:
        match event:
            case Received(Ordered()):
                return Stocked(state.asked + 1)

    def decide(self, message: Ordered, state: Stocked) -> Decisions[Ordered, Ordered] | None:
        return []


class Mail(Ledger):
    def route(self, message: Ordered) -> str | None:
        return f"mail-{message.id}"


def market(app: Mainspring) -> Mainspring:
    app.add(Ordering(), Stock(), Ledger(), Mail())
    return app


async def quiet(app: Mainspring) -> bool:
    stats = await app.stats()
    return stats.outbox == 0 and stats.inbox == 0


def test_a_message_goes_to_another_workflow_and_its_reply_comes_back(make_app: MakeApp) -> None:
    async def main() -> None:
        async with market(make_app()) as app:
            receipt = await app.send(Order("o-1", "A-1"), id="m-1", correlation_id="case-7")
            await receipt.result()
            stream = await receipt.stream()
            assert [(type(e.event).__name__, e.kind) for e in stream] == [
                ("Began", None),
                ("InitiatedBy", "command"),
                ("Sent", None),
                ("Received", "reply"),
                ("Published", None),
                ("Completed", None),
            ]
            asked = (await app.instance(Stock, "A-1").stream())[1]
            assert asked.message_id == "Ordering/o-1/3"

    run(main)


def test_each_of_many_who_ask_gets_its_own_reply_though_no_message_has_an_address(make_app: MakeApp) -> None:
    async def main() -> None:
        async with market(make_app()) as app:
            orders = [f"o-{n}" for n in range(5)]
            receipts = await asyncio.gather(*(app.send(Order(id, "A-1")) for id in orders))
            await asyncio.gather(*(receipt.result() for receipt in receipts))
            asked = [e for e in await app.instance(Stock, "A-1").stream() if isinstance(e.event, Received)]
            expected = {question.message_id: 10 - before for before, question in enumerate(asked)}
            got = {f"Ordering/{id}/3": await left_as_told(app, id) for id in orders}
            assert got == expected

    async def left_as_told(app: Mainspring, id: str) -> int:
        came = [e.event.message for e in await app.instance(Ordering, id).stream() if type(e.event) is Received]
        (answer,) = (each for each in came if isinstance(each, Answered))
        return answer.left

    run(main)


def test_correlation_causation_and_sender_flow_along(make_app: MakeApp) -> None:
    async def main() -> None:
        async with market(make_app()) as app:
            await (await app.send(Order("o-1", "A-1"), id="m-1", correlation_id="case-7")).result()
            rows = await internals_of(app).engine.store.stream(Ref("Stock", "A-1"), 0, 10)
            assert rows[1].context == b'{"correlation_id":"case-7","causation_id":"m-1","sender":"Ordering/o-1"}'
            await until(lambda: quiet(app))
            rows = await internals_of(app).engine.store.stream(Ref("Mail", "mail-o-1"), 0, 10)
            assert b'"correlation_id":"case-7"' in (rows[1].context or b"")
            assert b'"sender":"Ordering/o-1"' in (rows[1].context or b"")

    run(main)


def test_a_published_message_reaches_every_workflow_that_takes_it(make_app: MakeApp) -> None:
    async def main() -> None:
        async with market(make_app()) as app:
            for n in range(5):
                await (await app.send(Order(f"o-{n}", "A-1"))).result()
            await until(lambda: quiet(app))
            assert await app.instance(Ledger, "ledger-A-1").state() == Stocked(5)
            assert await app.instance(Mail, "mail-o-3").state() == Stocked(1)

    run(main)


def test_an_app_may_publish_too(make_app: MakeApp) -> None:
    async def main() -> None:
        async with market(make_app()) as app:
            receipts = await app.publish(Ordered("o-1", "A-1"), id="p-1")
            assert sorted(map(str, receipts)) == ["Ledger/ledger-A-1", "Mail/mail-o-1"]
            again = await app.publish(Ordered("o-1", "A-1"), id="p-1")
            assert {receipt.status for receipt in again} == {"duplicate"}

    run(main)


def test_subscribers_hear_each_published_message_and_a_failing_one_does_not_repeat_the_others(
    make_app: MakeApp,
) -> None:
    heard: list[str] = []
    failures = [ConnectionError("down"), ConnectionError("still down")]

    async def main() -> None:
        app = market(make_app())

        @app.subscribe
        async def audit(event: Ordered) -> None:
            heard.append(f"audit {event.id}")

        @app.subscribe(retry=Retry(first=timedelta(milliseconds=1)))
        def mail(event: Ordered) -> None:
            if failures:
                raise failures.pop()
            heard.append(f"mail {event.id}")

        async with app:
            await (await app.send(Order("o-1", "A-1"))).result()
            await until(lambda: "mail o-1" in heard)
            await until(lambda: quiet(app))
            assert await app.instance(Ledger, "ledger-A-1").state() == Stocked(1)

    run(main)
    assert sorted(heard) == ["audit o-1", "mail o-1"]


def test_a_message_published_from_outside_reaches_functions_and_workflows_once(make_app: MakeApp) -> None:
    heard: list[str] = []

    async def main() -> None:
        app = market(make_app())

        @app.subscribe
        async def audit(event: Ordered) -> None:
            heard.append(event.id)

        async with app:
            [receipt] = await app.publish(Ordered("o-1", "A-1"), id="p-1", correlation_id="case-7")
            assert str(receipt) == "mainspring.Publication/p-1"
            [again] = await app.publish(Ordered("o-1", "A-1"), id="p-1")
            assert again.status == "duplicate"
            await until(lambda: quiet(app))
            assert heard == ["o-1"]
            assert await app.instance(Ledger, "ledger-A-1").state() == Stocked(1)
            assert await app.instance(Mail, "mail-o-1").state() == Stocked(1)
            mail = await row_of(app, app.instance(Mail, "mail-o-1"))
            assert read_context(mail.context).correlation_id == "case-7"

    run(main)


def test_a_snapshot_saves_the_reading_of_what_is_before_it(make_app: MakeApp) -> None:
    async def main() -> None:
        async with market(make_app()) as app:
            await app.send_many([CheckStock("A-1") for _ in range(25)])
        async with market(make_app()) as app:
            [loaded] = await internals_of(app).engine.store.load([Ref("Stock", "A-1")])
            assert loaded is not None
            assert loaded.snapshot is not None
            assert loaded.snapshot.version >= 40
            assert len(loaded.events) < 15
            assert await app.instance(Stock, "A-1").state() == Stocked(25)

    run(main)


def test_a_snapshot_of_other_code_is_not_trusted(make_app: MakeApp) -> None:
    class Doubled(Stock):
        name = "Stock"

        def evolve(self, state: Stocked, event: Event[CheckStock, Answered]) -> Stocked | None:
            match event:
                case Received(CheckStock()):
                    return Stocked(state.asked + 2)

    async def main() -> None:
        async with market(make_app()) as app:
            await app.send_many([CheckStock("A-1") for _ in range(25)])
        app = make_app()
        app.add(Doubled())
        async with app:
            assert await app.instance(Doubled, "A-1").state() == Stocked(50)
            await app.send(CheckStock("A-1"))
            assert await app.instance(Doubled, "A-1").state() == Stocked(52)

    run(main)


def test_what_a_lost_worker_held_is_carried_out_by_the_next(make_app: MakeApp) -> None:
    """The first engine is abandoned as a crash would leave it: nothing drained, nothing released."""

    async def main() -> None:
        first = market(make_app())
        blocked = asyncio.Event()

        @first.subscribe
        async def slow(event: Ordered) -> None:
            await blocked.wait()

        await first.start()
        await (await first.send(Order("o-1", "A-1"))).result()
        held = await internals_of(first).engine.store.holds(internals_of(first).engine.committer.worker)
        assert len(held) == 1
        await internals_of(first).engine.store.release_worker(internals_of(first).engine.committer.worker)

        async with market(make_app()) as second:
            await until(lambda: quiet(second))
            assert await second.instance(Ledger, "ledger-A-1").state() == Stocked(1)
            blocked.set()
            # The late one has ended, and what came of it was refused.
            await until(
                lambda: not internals_of(first).engine.dispatcher.in_hand and internals_of(first).engine.committer.idle
            )
            assert await second.instance(Ledger, "ledger-A-1").state() == Stocked(1)
        await first.stop()

    run(main)


def test_a_stream_is_the_same_on_every_store(make_app: MakeApp, tmp_path: Any) -> None:
    """Invariant 19, for one small market: the bytes of every row but its times."""

    async def main() -> None:
        async with market(make_app()) as app:
            await (await app.send(Order("o-1", "A-1"), id="m-1")).result()
            await until(lambda: quiet(app))
            rows = [
                (row.version, row.event, row.type, row.body, row.detail, row.kind, row.message_id, row.cause, row.state)
                for ref in (Ref("Ordering", "o-1"), Ref("Stock", "A-1"))
                for row in await internals_of(app).engine.store.stream(ref, 0, 100)
            ]
            assert rows == EXPECTED

    run(main)


EXPECTED = [
    (1, "Began", None, None, None, None, None, None, None),
    (2, "InitiatedBy", "Order", b'{"id":"o-1","sku":"A-1"}', None, "command", "m-1", None, "Asking"),
    (3, "Sent", "CheckStock", b'{"sku":"A-1"}', None, None, None, 2, None),
    (4, "Received", "Answered", b'{"sku":"A-1","left":10}', None, "reply", f"{MARK}Stock/A-1/3", None, "Asking"),
    (5, "Published", "Ordered", b'{"id":"o-1","sku":"A-1"}', None, None, None, 4, None),
    (6, "Completed", None, None, None, None, None, None, None),
    (1, "Began", None, None, None, None, None, None, None),
    (2, "InitiatedBy", "CheckStock", b'{"sku":"A-1"}', None, "command", f"{MARK}Ordering/o-1/3", None, "Stocked"),
    (
        3,
        "Replied",
        "Answered",
        b'{"sku":"A-1","left":10}',
        b'{"reply_to":"instance:Ordering/o-1"}',
        None,
        None,
        2,
        None,
    ),
]
