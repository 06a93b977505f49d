"""Schedules on every store, and their calendar in simulated time."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from mainspring import Complete, Mainspring, Received, Sent, Workflow
from mainspring.engine.runtime import Runtime
from mainspring.engine.schedules.calendar import Calendar, calendar_of
from mainspring.engine.schedules.recurring import FIRINGS_PER_STEP, RECURRING
from mainspring.errors import OperationError, SettingError, WiringError
from mainspring.stores.memory import MemoryStore
from mainspring.testing import World, simulate
from mainspring.testing.clock import VirtualClock
from tests.engine.test_timers import pass_time, settle
from tests.support.apps import MakeApp
from tests.support.apps import make_app as make_app  # noqa: PLC0414  a fixture
from tests.support.running import run
from tests.support.waiting import until

START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class CloseBooks:
    day: str


def closes(app: Mainspring, closed: list[str] | None = None, **options: Any) -> Mainspring:
    async def close_books(command: CloseBooks) -> None:
        if closed is not None:
            closed.append(command.day)

    app.handler(close_books)
    app.schedules.add("closing", message=lambda at: CloseBooks(at.isoformat()[:19]), **options)
    return app


def play(app: Mainspring, story: Callable[[World], Coroutine[Any, Any, None]], start: datetime = START) -> None:
    async def main() -> None:
        async with asyncio.timeout(300), simulate(app, start=start) as world:
            await story(world)

    asyncio.run(main())


def days(world: World) -> list[str]:
    return [call.message.day for call in world.calls(CloseBooks)]


def test_two_workers_fire_each_time_once(make_app: MakeApp) -> None:
    async def main() -> None:
        clock, closed = VirtualClock(), list[str]()
        async with (
            closes(make_app(clock), closed, every=timedelta(seconds=5)) as one,
            closes(make_app(clock), closed, every=timedelta(seconds=5)) as two,
        ):
            for n in range(1, 5):
                clock.advance(5)
                await settle(one)
                await settle(two)
                await until(lambda n=n: len(closed) == n)
            await pass_time(one, clock, 1)
            assert closed == [f"2026-01-01T00:00:{second:02}" for second in (5, 10, 15, 20)]

    run(main)


@pytest.mark.parametrize(
    ("catch_up", "fired"),
    [
        ("skip", []),
        ("once", ["2026-01-01T01:00:00"]),
        ("all", ["2026-01-01T01:00:00", "2026-01-01T02:00:00", "2026-01-01T03:00:00"]),
    ],
)
def test_what_was_missed_is_caught_up_as_the_schedule_says(make_app: MakeApp, catch_up: Any, fired: list[str]) -> None:
    async def main() -> None:
        clock, closed = VirtualClock(), list[str]()
        async with closes(make_app(clock), closed, cron="0 * * * *", catch_up=catch_up):
            pass
        clock.advance(3.5 * 3600)
        async with closes(make_app(clock), closed, cron="0 * * * *", catch_up=catch_up) as app:

            async def caught_up() -> bool:
                return (await app.schedules.next("closing", 1)) == [START + timedelta(hours=4)]

            await until(caught_up)
            await until(lambda: len(closed) == len(fired))
            await settle(app)
        assert closed == fired

    run(main)


def test_pause_resume_run_now_and_remove_are_durable(make_app: MakeApp) -> None:
    async def main() -> None:
        clock, closed = VirtualClock(), list[str]()

        def app() -> Mainspring:
            return closes(make_app(clock), closed, every=timedelta(seconds=5))

        async with app() as first:
            await first.schedules.pause("closing", actor="ann")
            await pass_time(first, clock, 9)
        async with app() as second:
            [info] = await second.schedules.list()
            assert (info.name, info.calendar, info.status, info.next) == ("closing", "every 0:00:05", "paused", None)
            await second.schedules.run_now("closing")
            await until(lambda: closed == ["2026-01-01T00:00:09"])
            await second.schedules.resume("closing")
            await pass_time(second, clock, 5)
            await until(lambda: len(closed) == 2)
            assert closed[1] == "2026-01-01T00:00:14"
            await second.schedules.remove("closing")
        async with app() as third:
            await pass_time(third, clock, 9)
            assert [info.status for info in await third.schedules.list()] == ["removed"]
            assert len(closed) == 2
            with pytest.raises(OperationError, match="This app declares closing"):
                await third.schedules.pause("opening")

    run(main)


def test_the_same_declaration_changes_nothing_and_another_replaces_it(make_app: MakeApp) -> None:
    async def main() -> None:
        clock, closed = VirtualClock(), list[str]()

        async def versions(**options: Any) -> int:
            async with closes(make_app(clock), closed, **options) as app:
                await settle(app)
                return (await app.instance_at(f"{RECURRING}closing/closing").row()).position

        first = await versions(every=timedelta(seconds=5))
        assert await versions(every=timedelta(seconds=5)) == first
        assert await versions(every=timedelta(seconds=7)) > first
        async with closes(make_app(clock), closed, every=timedelta(seconds=7)) as app:
            await pass_time(app, clock, 6)
            assert closed == [], "the old calendar is gone"
            await pass_time(app, clock, 1)
            await until(lambda: closed == ["2026-01-01T00:00:07"])

    run(main)


def test_a_paused_schedule_that_is_declared_differently_stays_paused() -> None:
    async def main() -> None:
        clock = VirtualClock()
        store = MemoryStore(clock)

        def app(seconds: int) -> Mainspring:
            made = Mainspring("memory://", runtime=Runtime(clock), store=store)
            return closes(made, every=timedelta(seconds=seconds))

        async with app(5) as first:
            await first.schedules.pause("closing")
        async with app(7) as second:
            (info,) = await second.schedules.list()
            assert (info.status, info.calendar) == ("paused", "every 0:00:07")

    run(main)


def test_thousands_of_missed_times_are_caught_up_in_bounded_steps() -> None:
    app = closes(Mainspring("memory://"), every=timedelta(seconds=1), catch_up="all")

    async def story(world: World) -> None:
        instance = app.instance_at(f"{RECURRING}closing/closing")
        await instance.suspend()
        await world.advance(seconds=2_500)
        await instance.resume()
        await world.settle()
        assert len(days(world)) == len(set(days(world))) == 2_500
        stream = world.streams()[f"{RECURRING}closing/closing"]
        inputs = [entry.position for entry in stream if isinstance(entry.event, Received)]
        steps = [
            sum(isinstance(e.event, Sent) for e in stream if a < e.position < b)
            for a, b in zip(inputs, [*inputs[1:], len(stream) + 1], strict=True)
        ]
        assert max(steps) == FIRINGS_PER_STEP

    play(app, story)


def test_a_year_of_nights_goes_through_both_clock_changes() -> None:
    app = closes(Mainspring("memory://"), cron="30 2 * * *", timezone="Europe/Berlin")

    async def story(world: World) -> None:
        await world.advance(days=365)
        assert len(days(world)) == 365
        assert "2026-03-29T03:00:00" in days(world), "in spring there is no 2:30, and the night is not lost"
        assert sum(day.startswith("2026-10-25") for day in days(world)) == 1, "in autumn 2:30 comes twice"

    play(app, story)


def test_declared_in_the_hour_that_autumn_repeats() -> None:
    calendar = calendar_of("closing", "30 2 * * *", None, "Europe/Berlin", "once")
    second_half = datetime(2026, 10, 25, 1, 10, tzinfo=UTC)
    assert second_half.astimezone(ZoneInfo("Europe/Berlin")).hour == 2
    assert list(islice(calendar.after(second_half), 1)) == [datetime(2026, 10, 26, 1, 30, tzinfo=UTC)]


def test_a_late_interval_keeps_its_beat() -> None:
    every = Calendar(every_us=3_600_000_000)
    assert every.first_after(START, START + timedelta(minutes=150)) == START + timedelta(hours=3)
    assert every.first_after(START, START + timedelta(hours=3)) == START + timedelta(hours=4)


def test_a_handler_that_gives_up_does_not_stop_its_schedule() -> None:
    app = closes(Mainspring("memory://"), every=timedelta(days=1))

    async def story(world: World) -> None:
        world.stub(CloseBooks, ValueError("locked"))
        await world.advance(days=3, hours=12)
        assert {call.message.day[8:10] for call in world.calls(CloseBooks)} == {"02", "03", "04"}
        assert len(await app.dead_letters()) == 3
        assert [info.status for info in await app.schedules.list()] == ["active"]

    play(app, story)


@dataclass(frozen=True)
class Closing:
    pass


class Books(Workflow[CloseBooks, Closing, CloseBooks]):
    initial_state = Closing()

    def route(self, message: CloseBooks) -> str | None:
        return message.day

    def evolve(self, state: Closing, event: Any) -> Closing | None:
        return None

    def decide(self, message: CloseBooks, state: Closing) -> Any:
        return [Complete()]


class Archive(Books):
    name = "Archive"


def test_each_time_may_begin_an_instance_of_its_own() -> None:
    app = Mainspring("memory://")
    app.add(Books())
    app.schedules.add("nightly", cron="0 3 * * *", message=lambda at: CloseBooks(f"{at:%Y-%m-%d}"))

    async def story(world: World) -> None:
        await world.advance(days=3)
        assert [id for id in world.streams() if id.startswith("Books/")] == [f"Books/2026-01-0{n}" for n in (1, 2, 3)]
        sent = world.streams()["Books/2026-01-02"][1].message_id
        assert sent is not None
        assert sent.startswith("mainspring.Schedule.nightly/nightly/")

    play(app, story)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"cron": "0 3 * *"}, "Wrong number of fields"),
        ({"cron": "61 3 * * *"}, "Bad minute"),
        ({"cron": "0 3 30 2 *"}, "Bad day-of-month"),
        ({"cron": "0 0 * * *", "timezone": "Europe/Nowhere"}, "Europe/Berlin"),
        ({"cron": "0 0 * * *", "every": timedelta(hours=1)}, "both cron and every"),
        ({}, "neither cron nor every"),
        ({"every": timedelta(0)}, "a second or more"),
        ({"every": timedelta(hours=1), "catch_up": "maybe"}, "'skip', 'once' and 'all'"),
        ({"every": timedelta(hours=1), "name": "a/b"}, "letters, digits"),
    ],
)
def test_a_bad_calendar_is_refused_where_it_is_declared(options: dict[str, Any], problem: str) -> None:
    app = Mainspring("memory://")
    name = options.pop("name", "closing")
    with pytest.raises(SettingError, match=problem):
        app.schedules.add(name, message=CloseBooks("today"), **options)


def test_bad_wiring_is_found_before_the_first_time() -> None:
    app = Mainspring("memory://")
    app.schedules.add("closing", every=timedelta(hours=1), message=CloseBooks("today"))
    with pytest.raises(WiringError, match="Two schedules are named 'closing'"):
        app.schedules.add("closing", every=timedelta(hours=2), message=CloseBooks("today"))
    with pytest.raises(WiringError, match="Nothing takes CloseBooks, which the schedule closing sends"):
        asyncio.run(app.start())
    app.add(Books(), Archive())
    with pytest.raises(WiringError, match="is taken by Books and Archive"):
        asyncio.run(app.start())


def test_a_cancelled_schedule_does_not_come_back() -> None:
    app = closes(Mainspring("memory://"), every=timedelta(hours=1))

    async def story(world: World) -> None:
        await app.instance_at(f"{RECURRING}closing/closing").cancel()
        await world.advance(hours=3)
        assert days(world) == []
        assert [(info.status, info.next) for info in await app.schedules.list()] == [("removed", None)]
        with pytest.raises(OperationError, match="was cancelled"):
            await app.schedules.resume("closing")

    play(app, story)


def test_a_cancelled_schedule_outlives_a_purge_and_comes_back_when_it_is_declared_differently(
    make_app: MakeApp,
) -> None:
    async def main() -> None:
        async with closes(make_app(), every=timedelta(hours=1)) as app:
            await app.instance_at(f"{RECURRING}closing/closing").cancel()
            await app.purge(older_than=timedelta(0))
        for hours, status in ((1, "removed"), (2, "active")):
            async with closes(make_app(), every=timedelta(hours=hours)) as app:
                assert [info.status for info in await app.schedules.list()] == [status]

    run(main)


def test_a_schedule_that_no_worker_has_started_says_so() -> None:
    async def main() -> None:
        app = closes(Mainspring("memory://"), cron="0 3 * * *", timezone="Europe/Berlin")
        await app.start(work=False)
        try:
            [info] = await app.schedules.list()
            assert (info.status, info.calendar) == ("not started", "0 3 * * * Europe/Berlin")
            with pytest.raises(OperationError, match="Start a worker that declares it first"):
                await app.schedules.pause("closing")
        finally:
            await app.stop()

    run(main)


def test_a_program_without_an_event_loop_pauses_and_resumes_a_schedule() -> None:
    with closes(Mainspring("memory://"), every=timedelta(hours=1)).blocking() as blocking:
        assert len(blocking.schedules.next("closing", 3)) == 3
        blocking.schedules.pause("closing", actor="ann")
        assert [info.status for info in blocking.schedules.list()] == ["paused"]
        blocking.schedules.resume("closing")
        assert [info.status for info in blocking.schedules.list()] == ["active"]


def test_a_schedule_is_listed_only_by_the_name_of_its_workflow(make_app: MakeApp) -> None:
    async def main() -> None:
        async with closes(make_app(), every=timedelta(hours=1)) as app:
            assert await app.instances(limit=1) == []
            (row,) = await app.instances(workflow=f"{RECURRING}closing")
            assert row.id == "closing"

    run(main)
