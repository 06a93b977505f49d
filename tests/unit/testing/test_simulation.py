"""The whole app in virtual time: the real engine, in memory, without waiting."""

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from examples.expense_approval import handlers as expenses
from examples.expense_approval.workflow import ApproveExpense, Escalated, Expense, ExpenseApproval, SubmitExpense
from mainspring import Breaker, Complete, Context, Mainspring, Publish, Received, Retry, Schedule, Send, Workflow
from mainspring.errors import SettingError, SimulationError, WaitTimeoutError, WiringError
from mainspring.testing import World, simulate
from mainspring.testing.simulation import world as world_module


@dataclass(frozen=True)
class PlaceOrder:
    id: str


@dataclass(frozen=True)
class CardCharged:
    id: str


@dataclass(frozen=True)
class TimedOut:
    id: str


@dataclass(frozen=True)
class ChargeCard:
    id: str


@dataclass(frozen=True)
class OrderPaid:
    id: str


@dataclass(frozen=True)
class Ordering:
    pass


class Order(Workflow[PlaceOrder | CardCharged | TimedOut, Ordering, ChargeCard | OrderPaid]):
    begins = PlaceOrder
    initial_state = Ordering()

    def route(self, message: Any) -> str | None:
        return message.id

    def evolve(self, state: Ordering, event: Any) -> Ordering | None:
        return None

    def decide(self, message: Any, state: Ordering) -> Any:
        match message:
            case PlaceOrder(id):
                return [Send(ChargeCard(id)), Schedule(TimedOut(id), after=timedelta(days=2))]
            case CardCharged(id):
                return [Publish(OrderPaid(id)), Complete(OrderPaid(id))]
            case TimedOut():
                return [Complete()]


def shop(charge: Callable[..., Any] | None = None, **options: Any) -> Mainspring:
    app = Mainspring("memory://")
    app.add(Order())

    async def nobody(command: ChargeCard) -> CardCharged:
        raise AssertionError("the real handler was called")

    app.handler(**options)(charge or nobody)
    return app


def play(app: Mainspring, story: Callable[[World], Coroutine[Any, Any, None]], **options: Any) -> None:
    async def main() -> None:
        async with asyncio.timeout(300), simulate(app, **options) as world:
            await story(world)

    asyncio.run(main())


def test_a_week_of_escalation_passes_in_order() -> None:
    app = Mainspring("sqlite:///never-opened.db")
    app.add(ExpenseApproval())
    for function in (expenses.remind_managers, expenses.reimburse_employee):
        app.handler(function)
    app.handler(expenses.notify_employee)

    async def story(world: World) -> None:
        await world.send(SubmitExpense("e-1", Expense("ann", "the train", 12_900), "cho"), actor="ann")
        assert [timer.due.day for timer in world.timers()] == [4, 8]
        await world.advance(days=7)
        assert world.now == datetime(2026, 1, 8, tzinfo=UTC)
        assert isinstance(await world.instance(ExpenseApproval, "e-1").state(), Escalated)
        (task,) = await app.tasks.list(person="cho")
        await app.tasks.complete(task.id, ApproveExpense("e-1"), actor="cho")
        await world.settle()
        assert world.timers() == []
        times = [entry.time.isoformat()[:10] for entry in world.streams()["ExpenseApproval/e-1"] if entry.time]
        assert sorted(set(times)) == ["2026-01-01", "2026-01-04", "2026-01-08"]
        told = world.told().splitlines()
        assert told[0] == "2026-01-01 00:00:00"
        assert "2026-01-08 00:00:00  (4 days later)" in told
        assert told[-1].startswith("  ExpenseApproval/e-1: Completed")

    play(app, story)


@pytest.mark.parametrize(
    "outcome",
    [
        CardCharged("o-1"),
        (CardCharged("o-1"),),
        lambda command: CardCharged(command.id),
        lambda command, context: CardCharged(command.id) if context.attempt == 1 else None,
        [ValueError("no answer"), CardCharged("o-1")],
    ],
    ids=["message", "several", "function", "function with context", "by attempt"],
)
def test_a_stub_stands_in_for_a_handler(outcome: Any) -> None:
    async def story(world: World) -> None:
        world.stub(ChargeCard, outcome)
        receipt = await world.send(PlaceOrder("o-1"))
        await world.advance(minutes=1)
        assert await receipt.result() == OrderPaid("o-1")

    play(shop(), story)


def test_retries_come_by_virtual_time_until_a_dead_letter() -> None:
    async def story(world: World) -> None:
        world.stub(ChargeCard, TimeoutError("no answer"))
        await world.send(PlaceOrder("o-1"))
        assert [call.attempt for call in world.calls(ChargeCard)] == [1]
        await world.advance(minutes=10)
        assert [call.attempt for call in world.calls(ChargeCard)] == [1, 2, 3]
        assert "ChargeCard for Order/o-1 is a dead letter, its handler gave up: TimeoutError: no answer" in world.told()
        assert (await world.instance(Order, "o-1").row()).status == "suspended"

    play(shop(retry=Retry(max_attempts=3)), story)


def test_an_open_breaker_waits_its_virtual_minute() -> None:
    async def story(world: World) -> None:
        world.stub(ChargeCard, ConnectionError("down"))
        await world.send(PlaceOrder("o-1"))
        await world.send(PlaceOrder("o-2"))
        assert len(world.calls(ChargeCard)) == 1, "the first failure opened it"
        world.stub(ChargeCard, lambda command: CardCharged(command.id))
        await world.advance(seconds=59)
        assert len(world.calls(ChargeCard)) == 1
        await world.advance(minutes=2)
        assert {type(call.outcome) for call in world.calls(ChargeCard)[1:]} == {CardCharged}
        assert {(await world.instance(Order, id).row()).status for id in ("o-1", "o-2")} == {"completed"}

    play(shop(breaker=Breaker(failures=1, open_for=timedelta(seconds=60))), story)


def test_an_attempt_that_takes_too_long_ends_at_its_deadline() -> None:
    async def story(world: World) -> None:
        world.stub(ChargeCard, CardCharged("o-1"), takes=timedelta(seconds=45))
        start = world.now
        await world.send(PlaceOrder("o-1"))
        await world.until(lambda: len(world.calls(ChargeCard)) == 1)
        assert world.now - start == timedelta(seconds=30)
        world.stub(ChargeCard, CardCharged("o-1"), takes=timedelta(seconds=30))
        await world.until(lambda: len(world.calls(ChargeCard)) == 2)
        assert world.calls(ChargeCard)[1].outcome == CardCharged("o-1"), "just in time"

    play(shop(timeout=timedelta(seconds=30)), story)


def test_the_same_seed_gives_the_same_story_and_another_one_another() -> None:
    stories: list[str] = []

    async def story(world: World) -> None:
        world.stub(ChargeCard, [ValueError("1"), ValueError("2"), CardCharged("o-1")])
        await asyncio.gather(*(world.send(PlaceOrder(f"o-{n}")) for n in range(20)))
        await world.advance(hours=1)
        stories.append(world.told() + repr(world.streams()))

    for seed in (1, 1, 2):
        play(shop(), story, seed=seed)
    assert stories[0] == stories[1]
    assert stories[0] != stories[2]


def test_plain_handlers_run_in_a_thread_one_after_the_other_in_a_fixed_order() -> None:
    threads: set[str] = set()

    def charge(command: ChargeCard, context: Context) -> CardCharged:
        threads.add(threading.current_thread().name)
        time.sleep(0.01 if command.id == "o-1" else 0)  # the slow one comes first nevertheless
        return CardCharged(command.id)

    async def story(world: World) -> None:
        await world.app.send_many([PlaceOrder(f"o-{n}") for n in range(1, 5)])
        await world.settle()
        assert [call.message.id for call in world.calls(ChargeCard)] == ["o-1", "o-2", "o-3", "o-4"]
        assert (await world.app.stats()).instances == {"completed": 4}

    play(shop(charge), story)
    assert len(threads) == 1
    assert threading.current_thread().name not in threads


def test_stepping_goes_from_message_to_call_to_message() -> None:
    async def story(world: World) -> None:
        world.stub(ChargeCard, lambda command: CardCharged(command.id))
        await world.put(PlaceOrder("o-1"))
        assert world.streams() == {}
        assert "InitiatedBy PlaceOrder" in (await world.step() or "")
        assert world.calls(ChargeCard) == []
        assert (await world.step() or "").splitlines() == [
            "  shop.<locals>.nobody(ChargeCard(id='o-1')) returned CardCharged(id='o-1')"
        ]
        assert "Received CardCharged" in (await world.step() or "")
        assert await world.step() is None
        await world.put(PlaceOrder("o-2"))
        await world.step()
        world.stub(ChargeCard, ValueError)
        assert "raised ValueError" in (await world.step() or "")
        await world.settle()
        assert [timer.instance for timer in world.timers()] == ["Order/o-2"]
        with pytest.raises(WiringError, match="No workflow takes"):
            await world.put("nonsense")  # pyright: ignore[reportArgumentType]  as a user might

    play(shop(retry=Retry(max_attempts=1)), story)


def test_until_goes_from_due_time_to_due_time() -> None:
    async def story(world: World) -> None:
        world.stub(ChargeCard, None)
        await world.send(PlaceOrder("o-1"))

        async def ended() -> bool:
            return (await world.instance(Order, "o-1").row()).status == "completed"

        await world.until(ended)
        assert world.now == datetime(2026, 1, 3, tzinfo=UTC)
        with pytest.raises(SimulationError, match=r"(?s)did not happen, and nothing is due any more.*Completed"):
            await world.until(lambda: False)
        await world.send(PlaceOrder("o-2"))
        with pytest.raises(SimulationError, match="did not happen within 1 day"):
            await world.until(lambda: False, most=timedelta(days=1))

    play(shop(), story)


def test_waiting_for_a_result_in_the_test_lets_time_pass() -> None:
    async def story(world: World) -> None:
        world.stub(ChargeCard, [ValueError, CardCharged("o-1")])
        receipt = await world.send(PlaceOrder("o-1"))
        assert await receipt.result() == OrderPaid("o-1")
        world.stub(ChargeCard, None)
        receipt = await world.send(PlaceOrder("o-2"))
        before = world.now
        with pytest.raises(WaitTimeoutError):
            await receipt.result(timeout=timedelta(seconds=20))
        assert world.now - before == timedelta(seconds=20)

    play(shop(), story)


def test_a_handler_that_really_waits_is_named() -> None:
    async def charge(command: ChargeCard) -> CardCharged:
        await asyncio.Event().wait()  # for ever
        return CardCharged(command.id)

    async def story(world: World) -> None:
        with pytest.raises(SimulationError, match=r"charge waits for something real: 0.1 s"):
            await world.send(PlaceOrder("o-1"))

    play(shop(charge), story, patience=timedelta(seconds=0.1))


def test_a_plain_handler_that_really_waits_is_named() -> None:
    go_on = threading.Event()

    def charge(command: ChargeCard) -> CardCharged:
        go_on.wait()
        return CardCharged(command.id)

    async def story(world: World) -> None:
        try:
            with pytest.raises(SimulationError, match=r"charge waits for something real: 0.1 s"):
                await world.send(PlaceOrder("o-1"))
        finally:
            go_on.set()

    play(shop(charge), story, patience=timedelta(seconds=0.1))


def test_something_real_that_is_short_is_waited_for() -> None:
    async def charge(command: ChargeCard) -> CardCharged:
        await asyncio.sleep(0.01)  # something real, and short
        return CardCharged(command.id)

    async def story(world: World) -> None:
        receipt = await world.send(PlaceOrder("o-1"))
        assert (await receipt.row()).status == "completed"

    play(shop(charge), story, patience=timedelta(minutes=1))


def test_an_app_that_never_becomes_quiet_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Restless(Order):
        name = "Order"

        def decide(self, message: Any, state: Ordering) -> Any:
            return [Schedule(TimedOut(message.id), after=timedelta(0))]

    monkeypatch.setattr(world_module, "TURNS_AT_ONE_MOMENT", 500)
    app = Mainspring("memory://")
    app.add(Restless())

    async def story(world: World) -> None:
        with pytest.raises(SimulationError, match="goes on and on at one moment"):
            await world.send(PlaceOrder("o-1"))

    play(app, story, stubs={ChargeCard: None})


def test_the_app_is_as_it_was_afterwards() -> None:
    charged: list[str] = []

    async def charge(command: ChargeCard) -> CardCharged:
        charged.append(command.id)
        return CardCharged(command.id)

    app = shop(charge)

    async def story(world: World) -> None:
        world.stub(ChargeCard, None)
        await world.send(PlaceOrder("o-1"))
        with pytest.raises(WiringError, match="runs already"):
            async with simulate(app):
                pass

    async def main() -> None:
        async with app:
            assert await app.instances() == [], "what was simulated is gone"
            await (await app.send(PlaceOrder("o-2"))).result()

    play(app, story)
    asyncio.run(main())
    assert charged == ["o-2"]


def test_what_has_no_handler_is_stubbed_before_the_start() -> None:
    app = Mainspring("memory://")
    app.add(Order())

    async def story(world: World) -> None:
        receipt = await world.send(PlaceOrder("o-1"))
        assert await receipt.result() == OrderPaid("o-1")
        with pytest.raises(SimulationError, match="No handler takes PlaceOrder"):
            world.stub(PlaceOrder, None)

    play(app, story, stubs={ChargeCard: CardCharged("o-1")})
    with pytest.raises(WiringError, match="Nothing takes ChargeCard"):
        play(app, story)


def test_resources_and_subscribers_take_part() -> None:
    heard: list[str] = []

    async def charge(command: ChargeCard, context: Context) -> CardCharged:
        return CardCharged(context.resources["bank"])

    app = shop(charge)

    @app.resource("bank")
    @asynccontextmanager
    async def bank() -> AsyncGenerator[str]:
        assert not heard
        yield "the real bank"

    @app.subscribe
    def hear(event: OrderPaid) -> None:
        heard.append(event.id)

    async def story(world: World) -> None:
        await world.send(PlaceOrder("o-1"))
        assert heard == ["toy bank"]
        assert [call.handler.rpartition(".")[2] for call in world.calls(OrderPaid)] == ["hear"]

    play(app, story, resources={"bank": "toy bank"})


def test_batches_are_stubbed_member_by_member() -> None:
    async def charge(commands: list[ChargeCard]) -> list[CardCharged]:
        raise AssertionError("the real handler was called")

    async def story(world: World) -> None:
        def outcome(command: ChargeCard) -> CardCharged:
            if command.id == "o-2":
                raise ValueError("stolen")
            return CardCharged(command.id)

        world.stub(ChargeCard, outcome)
        await world.app.send_many([PlaceOrder(f"o-{n}") for n in range(1, 4)])
        await world.settle()
        assert (await world.app.stats()).instances == {"completed": 2, "suspended": 1}

    play(shop(charge, batch=10, retry=Retry(max_attempts=1)), story)


def test_without_an_event_loop() -> None:
    with simulate(shop(), start=datetime(2026, 3, 1, tzinfo=UTC)).blocking() as world:
        world.stub(ChargeCard, None)
        receipt = world.send(PlaceOrder("o-1"))
        world.advance(days=2)
        assert receipt.row().status == "completed"
        assert world.now == datetime(2026, 3, 3, tzinfo=UTC)


def test_nonsense_is_refused() -> None:
    async def story(world: World) -> None:
        with pytest.raises(SettingError, match="Time does not go backwards"):
            await world.advance(days=-1)
        with pytest.raises(SettingError, match="Time does not go backwards"):
            world.stub(ChargeCard, None, takes=timedelta(days=-1))

    play(shop(), story)
    with pytest.raises(SettingError, match="Give it a time zone"):
        simulate(shop(), start=datetime(2026, 1, 1))  # noqa: DTZ001  that is what is refused


def test_received_at_its_own_moment_even_when_the_world_leaps_over_it() -> None:
    async def story(world: World) -> None:
        world.stub(ChargeCard, None)
        for n in range(3):
            await world.send(PlaceOrder(f"o-{n}"))
            await world.advance(hours=1)
        await world.advance(days=30)
        fired = [
            entry.time
            for stream in world.streams().values()
            for entry in stream
            if isinstance(entry.event, Received) and isinstance(entry.event.message, TimedOut)
        ]
        assert fired == [datetime(2026, 1, 3, hour, tzinfo=UTC) for hour in range(3)]

    play(shop(), story)
