"""What a worker holds back is stored and told; what must not wait does not, and what must not be given up is not."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from mainspring import Breaker, Event, Fail, Mainspring, Retry, Send, SendFailed, Workflow
from mainspring.analysis.stuck.held import held_back
from mainspring.analysis.stuck.stuck import reasons_of
from mainspring.app.internals import internals_of
from mainspring.engine.fleet.standing import Standing, read
from mainspring.errors import DoNotRetryError, InstanceFailedError
from mainspring.port.records import Ref
from mainspring.testing.clock import VirtualClock
from tests.engine.coordination.trips import Book, Booked, CancelBooking, Planning, PlanTrip, Trip
from tests.engine.jobs import QUICK, Done, Start, Work, has_status, job
from tests.engine.test_breakers import resting
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until


def test_what_is_held_back_is_stored_soon_and_told_until_it_goes_on(make_app: MakeApp) -> None:
    away = True

    async def work(command: Work) -> Done:
        if away:
            raise ConnectionError("password=tr0ub4dor")
        return Done(command.id, command.part)

    async def main() -> None:
        nonlocal away
        clock = VirtualClock()
        # The one that failed waits by the clock for longer than this looks: else it may be among those that wait.
        retry = Retry(first=timedelta(seconds=30), jitter=False)
        options: dict[str, Any] = {"retry": retry, "breaker": Breaker(failures=1), "concurrency": 1}
        async with job(make_app(clock), work, **options) as app:
            store = internals_of(app).engine.store

            async def held() -> str:
                return (await store.workers())[0].standing

            assert await held() == ""
            await app.send(Start("j-1", 4))
            await resting(
                internals_of(app).engine.dispatcher.runners.of(internals_of(app).registry.handlers["Work"], "Work")
            )
            clock.advance(1)  # long before the next heartbeat
            await until(held)
            assert "tr0ub4dor" not in await held()
            told = await held_back(store)
            assert told == {
                "Work": "Work is held back by an open breaker since 00:00 UTC (ConnectionError, 1 in a row); "
                "3 commands wait; the next probe in 59 s"
            }
            (reason,) = await reasons_of(store, [Ref("Job", "j-1")])
            assert (reason.cause, reason.texts[0]) == ("held back", told["Work"])
            away = False
            clock.advance(59)
            await until(lambda: has_status(app, "j-1", "completed"))
            clock.advance(1)
            await until(lambda: _is_nothing(held))
            assert await held_back(store) == {}

    run(main)


async def _is_nothing(read: Callable[[], Awaitable[str]]) -> bool:
    return await read() == ""


def test_many_openings_at_once_are_told_in_one_heartbeat(make_app: MakeApp) -> None:
    """And what comes and goes meanwhile is not told at all."""

    async def main() -> None:
        clock = VirtualClock()
        async with job(make_app(clock), _away, breaker=Breaker(failures=1), retry=QUICK) as app:
            beats: list[str] = []
            store: Any = internals_of(app).engine.store
            heartbeat = store.heartbeat

            async def counted(worker: int, standing: str = "") -> bool:
                beats.append(standing)
                return await heartbeat(worker, standing)

            store.heartbeat = counted
            for _ in range(5):
                internals_of(app).engine.dispatcher.runners.held_back_changed.set()
                await asyncio.sleep(0)
            clock.advance(1)
            await until(lambda: beats)
            clock.advance(1)
            await asyncio.sleep(0)
            assert beats == [""]

    run(main)


async def _away(command: Work) -> Done:
    raise ConnectionError("nobody is there")


def test_a_row_of_another_release_holds_nothing_back() -> None:
    assert read('{"breakers": 7}') == read('{"moods": []}') == read("{") == Standing()


@dataclass(frozen=True)
class Free:
    trip: str


class Freeing(Workflow[Free | SendFailed, Planning, CancelBooking]):
    """Sends forwards what others send to undo something."""

    begins = Free
    initial_state = Planning()

    def route(self, message: Free | SendFailed) -> str | None:
        return message.trip if isinstance(message, Free) else None

    def decide(self, message: Free | SendFailed, state: Planning) -> Any:
        return [Send(CancelBooking(message.trip, "car"))] if isinstance(message, Free) else [Fail(message.error)]

    def evolve(self, state: Planning, event: Event[Any, Any]) -> Planning | None:
        return None


def test_a_compensation_waits_for_the_breaker_though_others_fail_fast(make_app: MakeApp) -> None:
    away, freed = True, list[str]()

    async def book(command: Book) -> Booked:
        if command.step == "hotel":
            raise DoNotRetryError("full")
        return Booked(command.step)

    async def cancel(command: CancelBooking) -> None:
        if away:
            raise ConnectionError("down")
        freed.append(command.step)

    async def main() -> None:
        nonlocal away
        clock = VirtualClock()
        app = make_app(clock)
        app.add(Trip(), Freeing())
        app.handler(book)
        app.handler(retry=QUICK, breaker=Breaker(failures=1, fail_fast=True))(cancel)
        async with app:
            await app.send(PlanTrip("t-1", ("flight", "hotel")))
            runner = internals_of(app).engine.dispatcher.runners.of(
                internals_of(app).registry.handlers["CancelBooking"], "CancelBooking"
            )
            await until(lambda: _was_tried(app))
            await until(
                lambda: clock.advance(0.01) or runner.waiting
            )  # its second attempt, when that is known to be due
            await resting(runner)
            with pytest.raises(InstanceFailedError, match="its breaker is open"):
                await (await app.send(Free("f-1"))).result()
            assert (await app.instance(Trip, "t-1").row()).status == "compensating"
            away = False
            clock.advance(60)
            with pytest.raises(InstanceFailedError, match="no hotel"):
                await app.instance(Trip, "t-1").result()
            assert freed == ["flight"]
            assert [letter for letter in await app.dead_letters() if (letter.workflow, letter.type) == UNDOING] == []

    run(main)


UNDOING = ("Trip", "CancelBooking")


async def _was_tried(app: Mainspring) -> bool:
    outputs = await internals_of(app).engine.store.outputs(Ref("Trip", "t-1"), timers=False, limit=1)
    return any(output.attempts for output in outputs)
