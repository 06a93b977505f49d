"""Plain functions that never return cost threads, up to a bound, and nobody else's commands."""

import asyncio
import logging
import threading
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from mainspring import Complete, Event, Mainspring, Retry, Send, SendFailed, Workflow
from mainspring.analysis.stuck.held import held_back
from mainspring.app.internals import internals_of
from mainspring.engine.handlers.hung_calls import HUNG_CALLS, Hung
from mainspring.engine.handlers.threads import Threads
from mainspring.engine.runtime import HANDLER_THREADS
from mainspring.testing.clock import VirtualClock
from tests.engine.jobs import Done, Job, Start, Work, has_status
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until

ONCE = Retry(max_attempts=1)


@dataclass(frozen=True)
class Go:
    id: str


@dataclass(frozen=True)
class Step:
    id: str


@dataclass(frozen=True)
class Stepped:
    id: str


@dataclass(frozen=True)
class Walking:
    pass


class Walk(Workflow[Go | Stepped, Walking, Step]):
    """Goes one step, with a handler of its own."""

    begins = Go
    initial_state = Walking()

    def route(self, message: Go | Stepped) -> str | None:
        return message.id

    def decide(self, message: Go | Stepped, state: Walking) -> Any:
        return [Send(Step(message.id))] if isinstance(message, Go) else [Complete()]

    def evolve(self, state: Walking, event: Event[Any, Any]) -> Walking | None:
        return None


class Patient(Workflow[Start | Done | SendFailed, Walking, Work]):
    """Sends commands, and does not mind what becomes of them."""

    begins = Start
    initial_state = Walking()

    def route(self, message: Start | Done | SendFailed) -> str | None:
        return None if isinstance(message, SendFailed) else message.id

    def decide(self, message: Start | Done | SendFailed, state: Walking) -> Any:
        return [Send(Work(message.id, part)) for part in range(message.times)] if isinstance(message, Start) else []

    def evolve(self, state: Walking, event: Event[Any, Any]) -> Walking | None:
        return None


def step(command: Step) -> Stepped:
    return Stepped(command.id)


class Hangs:
    """A plain handler whose calls do not return until they are let go."""

    def __init__(self) -> None:
        self.begun: list[Any] = []
        self.gate = threading.Event()

    def work(self, command: Work) -> Done:
        self.begun.append(command)
        self.gate.wait()
        return Done(command.id, command.part)

    def hear(self, news: Go) -> None:
        self.begun.append(news)
        self.gate.wait()

    async def have_begun(self, count: int) -> None:
        await until(lambda: len(self.begun) >= count)


@pytest.fixture
def hangs() -> Any:
    hanging = Hangs()
    yield hanging
    hanging.gate.set()  # a thread that hangs for ever would be the next test's


def walking(app: Mainspring, hangs: Hangs, **options: Any) -> Mainspring:
    app.add(Patient(), Walk())
    app.handler(timeout=timedelta(seconds=1), retry=ONCE, name="work", **options)(hangs.work)
    app.handler(step)
    return app


async def times_up(app: Mainspring, clock: VirtualClock) -> None:
    clock.advance(1)
    await internals_of(app).engine.stop_overdue()


async def tells(app: Mainspring, clock: VirtualClock, text: str) -> bool:
    """Let a second pass, and tell whether the worker has told something: what changes is told once a second."""
    clock.advance(1)
    held = (await internals_of(app).engine.store.workers())[0].standing
    return text in held if text else not held


def test_more_calls_that_hang_than_there_are_threads_keep_nobody_else_waiting(
    make_app: MakeApp, hangs: Hangs, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        clock, many = VirtualClock(), HANDLER_THREADS + 8
        async with walking(make_app(clock), hangs) as app:
            await app.send(Start("p-1", many))
            await hangs.have_begun(HANDLER_THREADS)
            await times_up(app, clock)
            await hangs.have_begun(many)
            await times_up(app, clock)
            await until(lambda: internals_of(app).engine.runtime.hung.count("work") == many)
            await (await app.send(Go("w-1"))).result()
            await until(lambda: tells(app, clock, f'"count":{many}'))
            told = "40 calls of Work hang since 00:00 UTC (they were given up, and keep a thread each)"
            assert await held_back(internals_of(app).engine.store) == {"Work": told}
            hangs.gate.set()
            await until(lambda: not internals_of(app).engine.runtime.hung.names())
            await until(lambda: tells(app, clock, ""))

    with caplog.at_level(logging.WARNING, "mainspring.engine"):
        run(main)
    said = [record.getMessage() for record in caplog.records if "hang" in record.getMessage()]
    assert len(said) == 1  # once a minute, of all that hang
    assert said[0].startswith("work goes on though its time is up or its instance was cancelled")


def test_threads_that_are_all_taken_for_long_are_told_while_calls_wait(
    make_app: MakeApp, hangs: Hangs, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        clock = VirtualClock()
        app = make_app(clock)
        app.add(Patient(), Walk())
        app.handler(timeout=timedelta(hours=2), name="work")(hangs.work)
        app.handler(step)
        async with app:
            await app.send(Start("p-1", HANDLER_THREADS))
            await hangs.have_begun(HANDLER_THREADS)
            clock.advance(10)
            await internals_of(app).engine.stop_overdue()
            assert internals_of(app).engine.dispatcher.runners.threads_taken is None  # nobody waits for one
            receipt = await app.send(Go("w-1"))
            runtime = internals_of(app).runtime
            await until(lambda: runtime.threads is not None and runtime.threads.waiting)
            await internals_of(app).engine.stop_overdue()
            assert not _told(caplog, "threads")
            clock.advance(10)
            await internals_of(app).engine.stop_overdue()
            await internals_of(app).engine.stop_overdue()
            await until(lambda: tells(app, clock, '"holders":{"work":32}'))
            (told,) = (await held_back(internals_of(app).engine.store)).values()
            assert told.startswith("No thread for plain functions has become free since 00:00 UTC, and 1 call waits")
            hangs.gate.set()
            await receipt.result()
            await internals_of(app).engine.stop_overdue()
            await until(lambda: tells(app, clock, ""))

    with caplog.at_level(logging.WARNING, "mainspring.engine"):
        run(main)
    taken, free = _told(caplog, "thread")
    assert taken.startswith(
        "all 32 threads for plain functions have been taken for 10 s, and 1 calls wait: work has 32"
    )
    assert free == "a thread became free again for plain functions"


def _told(caplog: pytest.LogCaptureFixture, text: str) -> list[str]:
    return [record.getMessage() for record in caplog.records if text in record.getMessage()]


def test_at_the_bound_the_handler_to_blame_is_held_back_until_calls_return(
    make_app: MakeApp, hangs: Hangs, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mainspring.engine.handlers.hung_calls.HUNG_CALLS", 4)

    async def main() -> None:
        clock = VirtualClock()
        async with walking(make_app(clock), hangs, concurrency=1) as app:
            hung = internals_of(app).engine.runtime.hung
            await app.send(Start("p-1", 7))
            for count in range(1, 5):
                await hangs.have_begun(count)
                await times_up(app, clock)
                await until(lambda count=count: hung.count("work") == count)
            assert hung.holds_back("work")
            assert not hung.holds_back("step")
            await (await app.send(Go("w-1"))).result()
            await until(lambda: tells(app, clock, '"held":true'))
            assert len(hangs.begun) == 4
            told = (await held_back(internals_of(app).engine.store))["Work"]
            assert told.endswith("; it is held back until some return; 3 commands wait")
            hangs.gate.set()
            await hangs.have_begun(7)
            await until(lambda: not hung.names())
            assert len(hangs.begun) == 7

    with caplog.at_level(logging.WARNING, "mainspring.engine"):
        run(main)
    said = [(record.levelname, record.getMessage()) for record in caplog.records if " back" in record.getMessage()]
    assert [level for level, _ in said] == ["ERROR", "WARNING"]
    assert said[0][1].startswith("work is held back, and others are not: 4 of its calls hang")
    assert said[1][1].startswith("work is not held back any more")


def test_a_subscriber_at_the_bound_is_held_back_and_its_message_waits_without_an_attempt(
    make_app: MakeApp, hangs: Hangs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mainspring.engine.handlers.hung_calls.HUNG_CALLS", 1)
    heard: list[str] = []

    async def main() -> None:
        clock = VirtualClock()
        app = make_app(clock)
        app.subscribe(timeout=timedelta(seconds=1), retry=ONCE, name="hear")(hangs.hear)

        @app.subscribe
        def other(news: Go) -> None:
            heard.append(news.id)

        async with app:
            await app.publish(Go("n-1"))
            await hangs.have_begun(1)
            await times_up(app, clock)
            await until(lambda: internals_of(app).engine.runtime.hung.holds_back("hear"))
            await until(lambda: heard == ["n-1"])
            await app.publish(Go("n-2"))
            (waits,) = await until(lambda: _waiting(app))
            assert waits.attempts == 0
            await until(lambda: "n-2" in heard)
            assert len(hangs.begun) == 1
            hangs.gate.set()
            await until(lambda: not internals_of(app).engine.runtime.hung.names())
            clock.advance(10)
            await hangs.have_begun(2)
            await until(lambda: _is_empty(app))
            assert [letter.type for letter in await app.dead_letters()] == ["Go"]

    run(main)
    assert heard == ["n-1", "n-2"]


async def _waiting(app: Mainspring) -> Any:
    outputs = await internals_of(app).engine.store.outputs(None, timers=False, limit=10)
    return [claim for claim in outputs if claim.error is not None and "hang" in claim.error]


async def _is_empty(app: Mainspring) -> bool:
    return (await app.stats()).outbox == 0


def test_a_worker_that_stops_says_nothing_of_what_it_gives_up(
    make_app: MakeApp, hangs: Hangs, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        app = walking(make_app(), hangs)
        await app.start()
        await app.send(Start("p-1"))
        await hangs.have_begun(1)
        hung = internals_of(app).engine.runtime.hung
        await app.stop(timedelta(0))
        assert hung.count("work") == 1

    with caplog.at_level(logging.WARNING, "mainspring.engine"):
        run(main)
    assert not any("hang" in record.getMessage() for record in caplog.records)


def test_who_has_an_even_share_is_held_back_and_who_has_one_by_bad_luck_is_not() -> None:
    async def main() -> None:
        hung, calls = Hung(lambda: 0), [Future[Any]() for _ in range(HUNG_CALLS)]
        for call in calls[1:]:
            hung.add("charge", call)
        hung.add("unlucky", calls[0])
        assert (hung.holds_back("charge"), hung.holds_back("unlucky")) == (True, False)
        assert hung.names() == ["charge", "unlucky"]
        calls[1].set_result(None)
        await until(lambda: not hung.holds_back("charge"))
        assert hung.count("charge") == HUNG_CALLS - 2

    run(main)


def test_a_call_that_returns_when_its_loop_is_gone_is_nobodys_concern() -> None:
    hung, call = Hung(lambda: 0), Future[Any]()

    async def main() -> None:
        hung.add("charge", call)

    asyncio.run(main())
    call.set_result(None)
    assert hung.count("charge") == 1


def test_a_thread_that_was_left_ends_and_never_more_work_than_there_are_places() -> None:
    threads, gate, names = Threads(2, "left-behind"), threading.Event(), list[str]()

    def hang() -> None:
        names.append(threading.current_thread().name)
        gate.wait()

    async def main() -> None:
        first = [threads.run(hang) for _ in range(3)]
        await until(lambda: len(names) == 2)
        assert not threads.leave(first[2])  # it had not begun: it never will
        assert threads.leave(first[0])
        assert not threads.leave(first[0])  # only once
        second = [threads.run(hang) for _ in range(3)]
        await until(lambda: len(names) == 3)
        assert [call.running() for call in second] == [True, False, False]
        gate.set()
        await until(lambda: all(call.done() for call in (*first, *second)))
        assert len(set(names)) == 3
        assert not threads.leave(second[0])  # it is over
        threads.close()
        await until(lambda: not [each for each in threading.enumerate() if each.name.startswith("left-behind")])

    run(main)


def test_an_instance_that_was_cancelled_leaves_its_call_to_itself(make_app: MakeApp, hangs: Hangs) -> None:
    async def main() -> None:
        app = make_app()
        app.add(Job())
        app.handler(name="work")(hangs.work)
        async with app:
            await app.send(Start("j-1"))
            await hangs.have_begun(1)
            await app.instance(Job, "j-1").cancel()
            await until(lambda: internals_of(app).engine.runtime.hung.count("work") == 1)
            assert await has_status(app, "j-1", "cancelled")
            hangs.gate.set()
            await until(lambda: not internals_of(app).engine.runtime.hung.names())

    run(main)
