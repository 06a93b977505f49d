import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mainspring import (
    CancelSchedule,
    Compensate,
    Complete,
    Decision,
    Decisions,
    Event,
    Fail,
    Mainspring,
    Received,
    Schedule,
    Workflow,
)
from mainspring.app.internals import internals_of
from mainspring.engine.runtime import Runtime
from mainspring.testing.clock import VirtualClock
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until


@dataclass(frozen=True)
class Open:
    id: str


@dataclass(frozen=True)
class Close:
    id: str


@dataclass(frozen=True)
class Remind:
    id: str
    n: int


@dataclass(frozen=True)
class Opened:
    reminders: tuple[int, ...] = ()


Input = Open | Close | Remind


class Ticket(Workflow[Input, Opened, Close]):
    """Reminds after one and after two minutes; is closed by a message, or by the third reminder at a fixed time."""

    begins = Open
    initial_state = Opened()

    def route(self, message: Input) -> str | None:
        return message.id

    def evolve(self, state: Opened, event: Event[Input, Close]) -> Opened | None:
        match event:
            case Received(Remind(_, n)):
                return Opened((*state.reminders, n))

    def decide(self, message: Input, state: Opened) -> Decisions[Input, Close] | None:
        match message:
            case Open(id):
                return [
                    Schedule(Remind(id, 1), after=timedelta(minutes=1)),
                    Schedule(Remind(id, 2), after=timedelta(minutes=2)),
                    Schedule(Remind(id, 3), at=datetime(2026, 1, 1, 0, 5, tzinfo=UTC), key="last"),
                ]
            case Remind(_, 3):
                return [Complete()]
            case Remind():
                return []
            case Close():
                return [CancelSchedule(Remind)]


def ticket(app: Mainspring) -> Mainspring:
    app.add(Ticket())
    return app


async def settle(app: Mainspring) -> None:
    """Let everything that is due happen: until the engine has been idle for some turns of the loop."""
    idle, engine = 0, internals_of(app).engine

    async def rests() -> bool:
        nonlocal idle
        quiet = engine.claimer.idle and engine.committer.waiting == 0 and not any(engine.stepper.lanes.busy())
        await engine.committer.drained()
        idle = idle + 1 if quiet else 0
        return idle == 8

    await asyncio.sleep(0.001)  # threads of the store and the loop's own timers get a turn first
    await until(rests)


async def pass_time(app: Mainspring, clock: VirtualClock, seconds: float) -> None:
    """Let time pass in strides shorter than a lease, as it does for a worker that is alive."""
    while seconds > 0:
        stride = min(seconds, 9.0)
        clock.advance(stride)
        seconds -= stride
        # Its heart may be slower than all else that the store is asked for, and then others would relieve it.
        await internals_of(app).engine._renew()  # noqa: SLF001  as its heart does
        await settle(app)


def test_timers_fire_when_due_and_never_early(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with ticket(make_app(clock)) as app:
            receipt = await app.send(Open("t-1"))
            await pass_time(app, clock, 59.5)
            assert await receipt.state() == Opened()
            await pass_time(app, clock, 0.5)
            assert await receipt.state() == Opened((1,))
            await pass_time(app, clock, 60)
            assert await receipt.state() == Opened((1, 2))
            await pass_time(app, clock, 179.5)
            assert (await receipt.row()).status == "running"
            await pass_time(app, clock, 0.5)
            assert (await receipt.row()).status == "completed"
            fired = [e for e in await receipt.stream() if isinstance(e.event, Received)]
            assert [(e.kind, e.message_id) for e in fired[1:]] == [
                ("timer", "Ticket/t-1/3"),
                ("timer", "Ticket/t-1/4"),
                ("timer", "Ticket/t-1/5"),
            ]

    run(main)


def test_cancelled_timers_do_not_fire_and_others_do(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with ticket(make_app(clock)) as app:
            receipt = await app.send(Open("t-1"))
            await pass_time(app, clock, 60)
            await app.send(Close("t-1"))
            assert [t.type for t in await app.timers()] == ["Remind"]
            await pass_time(app, clock, 240)
            assert (await receipt.row()).status == "completed"
            assert await receipt.state() == Opened((1, 3))

    run(main)


def test_timers_survive_a_restart_and_fire_once_when_overdue(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with ticket(make_app(clock)) as app:
            await app.send(Open("t-1"))
        clock.advance(90)
        async with ticket(make_app(clock)) as app:
            await settle(app)
            assert await app.instance(Ticket, "t-1").state() == Opened((1,))
        async with ticket(make_app(clock)) as app:
            await settle(app)
            assert await app.instance(Ticket, "t-1").state() == Opened((1,))

    run(main)


def test_timers_of_a_suspended_instance_queue_and_can_still_be_cancelled(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with ticket(make_app(clock)) as app:
            receipt = await app.send(Open("t-1"))
            await receipt.suspend()
            await pass_time(app, clock, 60)
            await app.send(Close("t-1"))
            await pass_time(app, clock, 60)
            assert [w.type for w in await receipt.waiting()] == ["Remind", "Close", "Remind"]
            await receipt.resume()
            await settle(app)
            # The first was before the message that cancels them, the second behind it.
            assert await receipt.state() == Opened((1,))
            assert await receipt.waiting() == []

    run(main)


def test_a_worker_that_was_relieved_in_its_sleep_goes_on_under_a_new_key(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with ticket(make_app(clock)) as app:
            receipt = await app.send(Open("t-1"))
            before = internals_of(app).engine.committer.worker
            await internals_of(app).engine.store.release_worker(
                before
            )  # as another worker does when a lease has run out
            await pass_time(app, clock, 70)

            async def woke_up() -> bool:
                await pass_time(app, clock, 1)
                return await receipt.state() != Opened()

            await until(woke_up)
            assert internals_of(app).engine.committer.worker != before
            assert await receipt.state() == Opened((1,))

    run(main)


def test_a_completed_instance_leaves_no_timer_behind(make_app: MakeApp) -> None:
    class Brief(Ticket):
        name = "Ticket"

        def decide(self, message: Input, state: Opened) -> Decisions[Input, Close] | None:
            return [Complete()] if isinstance(message, Close) else super().decide(message, state)

    async def main() -> None:
        clock = VirtualClock()
        app = make_app(clock)
        app.add(Brief())
        async with app:
            await app.send(Open("t-1"))
            assert len(await app.timers()) == 3
            await app.send(Close("t-1"))
            assert await app.timers() == []

    run(main)


def test_what_a_step_sets_and_takes_back_does_not_fire_and_what_it_sets_after_that_does(make_app: MakeApp) -> None:
    class Fickle(Ticket):
        name = "Ticket"

        def decide(self, message: Input, state: Opened) -> Decisions[Input, Close] | None:
            match message:
                case Open(id) | Close(id):
                    first, second = (Schedule(Remind(id, n), after=timedelta(seconds=n)) for n in (1, 2))
                    return [first, CancelSchedule(Remind), second]
                case Remind():
                    return []

    async def main() -> None:
        clock = VirtualClock()
        app = make_app(clock)
        app.add(Fickle())
        async with app:
            receipt = await app.send(Open("t-1"))
            await pass_time(app, clock, 3)
            assert await receipt.state() == Opened((2,))
            await app.send(Close("t-1"))
            await pass_time(app, clock, 3)
            assert await receipt.state() == Opened((2, 2))

    run(main)


@pytest.mark.parametrize("end", [Complete(), Fail("no"), Compensate("no")])
def test_what_a_step_sets_before_it_ends_the_instance_is_not_left_behind(
    make_app: MakeApp, end: Decision[Input, Close]
) -> None:
    class Brief(Ticket):
        name = "Ticket"

        def decide(self, message: Input, state: Opened) -> Decisions[Input, Close] | None:
            return [Schedule(Remind("t-1", 1), after=timedelta(minutes=1)), end]

    async def main() -> None:
        app = make_app(VirtualClock())
        app.add(Brief())
        async with app:
            await app.send(Open("t-1"))
            assert await app.timers() == []

    run(main)


def test_hundreds_due_at_once_are_drained_in_batches(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with ticket(make_app(clock)) as app:
            await app.send_many([Open(f"t-{n}") for n in range(600)])
            before = internals_of(app).engine.committer.batches
            await pass_time(app, clock, 60)

            async def all_reminded() -> bool:
                return (await app.stats()).timers == 1_200

            await until(all_reminded)
            assert internals_of(app).engine.committer.batches - before < 100

    run(main)


def test_a_timer_that_fired_and_a_cancel_in_one_batch_agree(make_app: MakeApp) -> None:
    """The cancel stands first in the lane, so the timer that was already in hand finds its row gone."""

    async def main() -> None:
        clock = VirtualClock()
        async with ticket(make_app(clock)) as app:
            receipt = await app.send(Open("t-1"))
            sent = asyncio.ensure_future(app.send(Close("t-1")))
            clock.advance(60)
            await sent
            await settle(app)
            kinds: list[Any] = [e.event.message for e in await receipt.stream() if isinstance(e.event, Received)]
            after_close = kinds[kinds.index(Close("t-1")) + 1 :]
            assert Remind("t-1", 1) not in after_close
            assert Remind("t-1", 2) not in after_close

    run(main)


@dataclass(frozen=True)
class Snooze:
    id: str
    seconds: float


@dataclass(frozen=True)
class Ring:
    id: str


class Alarm(Workflow[Snooze | Ring, Opened, Close]):
    begins = Snooze
    initial_state = Opened()

    def route(self, message: Snooze | Ring) -> str | None:
        return message.id

    def evolve(self, state: Opened, event: Event[Snooze | Ring, Close]) -> Opened | None:
        return None

    def decide(self, message: Snooze | Ring, state: Opened) -> Decisions[Snooze | Ring, Close] | None:
        match message:
            case Snooze(id, seconds):
                return [Schedule(Ring(id), after=timedelta(seconds=seconds))]
            case Ring():
                return [Complete()]


def test_a_timer_that_is_due_before_the_next_one_wakes_the_worker_earlier() -> None:
    async def main() -> None:
        clock = VirtualClock()
        app = Mainspring("memory://", runtime=Runtime(clock))
        app.add(Alarm())
        async with app:
            await app.send(Snooze("late", 60.0))
            early = await app.send(Snooze("early", 0.3))
            await settle(app)
            clock.advance(0.3)  # less than the time after which the store is asked in any case
            await settle(app)
            assert (await early.row()).status == "completed"

    run(main)


def test_a_timer_that_becomes_due_while_the_store_answers_a_look_fires_at_once(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer names it as due later, which it is not any more: no other moment comes to wake the worker."""

    async def main() -> None:
        clock, looked, answer = VirtualClock(), asyncio.Event(), asyncio.Event()
        client = make_app(clock)
        client.add(Alarm())
        await client.start(work=False)
        receipt = await client.send(Snooze("a-1", 60.0))
        app = make_app(clock)
        app.add(Alarm())
        store, loop = type(internals_of(client).engine.store), asyncio.get_running_loop()
        claim = store.claim

        async def slow_claim(*asked: Any) -> Any:
            found = await claim(*asked)
            # Apps of other tests may run in this process, in threads of their own: the studio's, for instance.
            own = asyncio.get_running_loop() is loop
            if own and found.next_due_us is not None and not looked.is_set():
                looked.set()
                await answer.wait()
            return found

        monkeypatch.setattr(store, "claim", slow_claim)
        async with app:
            await looked.wait()
            clock.advance(60)
            answer.set()
            await until(lambda: _completed(receipt))
        await client.stop()

    run(main)


async def _completed(receipt: Any) -> bool:
    return (await receipt.row()).status == "completed"
