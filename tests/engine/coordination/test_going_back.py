"""Where going back and beginning anew meet children, sagas and dead letters."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from mainspring import Context, DoNotRetryError, Instance, Mainspring, Workflow
from mainspring.core.events import Resent
from mainspring.errors import InstanceFailedError, OperationError
from tests.engine.coordination import trips
from tests.engine.coordination.family import BookLeg, GoOn, Leg, LegBooked, PlanTrip, Trip, travel
from tests.engine.coordination.trips import World, trip_app
from tests.engine.jobs import Done, Job, Start, Work, has_status, job
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until


async def booked(app: Mainspring, *legs: str) -> bool:
    return (await app.instance(Trip, "t-1").state()).booked == legs


async def begun(app: Mainspring, leg: str) -> bool:
    return any(row.id == leg and row.position for row in await app.instances(workflow="Leg"))


def test_what_a_child_said_behind_the_version_comes_once_more(make_app: MakeApp) -> None:
    async def main() -> None:
        async with travel(make_app()) as app:
            await app.send(PlanTrip("t-1", ("book", "wait")))
            await until(lambda: booked(app, "t-1.0"))
            trip = app.instance(Trip, "t-1")
            await trip.reset(4)
            await until(lambda: booked(app, "t-1.0"))
            assert [line.what for line in await trip.log()] == ["Started", "Stepped", "Reset", "Stepped"]
            await app.send(GoOn("t-1.1"))
            await trip.result()
            assert await booked(app, "t-1.0", "t-1.1")

    run(main)


def test_a_parent_that_knows_how_its_child_ended_is_not_told_again_after_the_childs_reset(make_app: MakeApp) -> None:
    async def main() -> None:
        async with travel(make_app()) as app:
            await app.send(PlanTrip("t-1", ("wait", "wait")))
            await until(lambda: begun(app, "t-1.0"))
            await until(lambda: begun(app, "t-1.1"))
            await app.send(GoOn("t-1.0"))
            await until(lambda: booked(app, "t-1.0"))
            leg = app.instance(Leg, "t-1.0")
            await leg.reset(2)
            assert (await app.send(GoOn("t-1.0"))).status == "stepped"
            assert await leg.result() == LegBooked("t-1.0")
            await app.send(GoOn("t-1.1"))
            await app.instance(Trip, "t-1").result()
            assert await booked(app, "t-1.0", "t-1.1")

    run(main)


def test_an_instance_that_began_anew_and_was_cancelled_has_no_result_of_its_earlier_life(make_app: MakeApp) -> None:
    class Again(Leg):
        again = "anew"

    async def main() -> None:
        app = make_app()
        app.add(Again())
        async with app:
            assert await (await app.send(BookLeg("l-1", "book"))).result() == LegBooked("l-1")
            await app.send(BookLeg("l-1", "wait"))
            await app.instance(Again, "l-1").cancel("called off")
            with pytest.raises(InstanceFailedError, match="called off"):
                await app.instance(Again, "l-1").result(timeout=timedelta(seconds=60))

    run(main)


def test_of_two_who_correct_one_dead_letter_one_does(make_app: MakeApp) -> None:
    done: list[str] = []

    async def work(command: Work, context: Context) -> Done:
        if command.part == 0:
            raise DoNotRetryError("part 0 does not exist")
        done.append(context.idempotency_key)
        return Done(command.id, command.part)

    async def main() -> None:
        async with job(make_app(), work) as app:
            await app.send(Start("j-1"))
            await until(lambda: has_status(app, "j-1", "suspended"))
            (letter,) = await app.dead_letters()
            corrections = (app.retry_dead_letter(letter.id, Work("j-1", 7)) for _ in range(2))
            outcomes = await asyncio.gather(*corrections, return_exceptions=True)
            assert sorted(isinstance(outcome, OperationError) for outcome in outcomes) == [False, True]
            await app.instance(Job, "j-1").result()
            assert len(done) == 1

    run(main)


def test_what_a_corrected_command_led_to_behind_the_version_is_asked_again(make_app: MakeApp) -> None:
    done: list[int] = []

    async def work(command: Work) -> Done:
        if command.part == 0:
            raise DoNotRetryError("part 0 does not exist")
        done.append(command.part)
        return Done(command.id, command.part)

    async def main() -> None:
        async with job(make_app(), work) as app:
            await app.send(Start("j-1"))
            await until(lambda: has_status(app, "j-1", "suspended"))
            (letter,) = await app.dead_letters()
            await app.retry_dead_letter(letter.id, Work("j-1", 7))
            instance = app.instance(Job, "j-1")
            await instance.result()
            (resent,) = [entry for entry in await instance.stream() if isinstance(entry.event, Resent)]
            await instance.reset(resent.position)
            await until(lambda: done == [7, 7])
            await instance.result()

    run(main)


def test_a_step_that_failed_behind_the_version_and_was_done_after_it_is_undone(make_app: MakeApp) -> None:
    world = World(plans={("book", "hotel"): ["refused"], ("book", "car"): ["refused"]})
    app = trip_app(make_app, world)

    async def main() -> None:
        async with app:
            await app.send(trips.PlanTrip("t-1", ("car", "hotel")))
            trip = app.instance(trips.Trip, "t-1")
            with pytest.raises(InstanceFailedError, match="no car"):
                await trip.result()
            world.refused.clear()
            await trip.reset(3)
            with pytest.raises(InstanceFailedError, match="no hotel"):
                await trip.result()
            assert world.effects == ["book car", "cancel car"]
            assert world.booked == set()

    run(main)


class DeafTrip(Workflow[trips.PlanTrip | trips.Booked, trips.Planning, trips.Book | trips.CancelBooking]):
    """Does not hear of a booking that failed: it is suspended instead."""

    begins = trips.PlanTrip
    initial_state = trips.Planning()
    route = trips.Trip.route
    decide = trips.Trip.decide
    evolve = trips.Trip.evolve


@pytest.mark.parametrize(("correction", "step"), [(None, "hotel"), (trips.Book("t-1", "visa"), "visa")])
def test_what_was_done_by_retrying_its_dead_letter_is_undone_too(
    make_app: MakeApp, correction: trips.Book | None, step: str
) -> None:
    world = World(plans={("book", "hotel"): ["refused"], ("book", "car"): ["refused"]})
    app = make_app()
    app.add(DeafTrip())
    world.connect(app)

    async def main() -> None:
        async with app:
            await app.send(trips.PlanTrip("t-1", ("hotel", "car")))
            trip = app.instance(DeafTrip, "t-1")
            await until(lambda: suspended(trip))
            (letter,) = await app.dead_letters()
            world.refused.clear()
            await app.retry_dead_letter(letter.id, correction)
            await until(lambda: f"book {step}" in world.effects)
            await until(lambda: world.calls["book car"] == 1)
            await until(lambda: suspended(trip))
            await trip.cancel()
            with pytest.raises(InstanceFailedError, match="cancelled"):
                await trip.result()
            # The car was refused: there is nothing to undo.
            assert world.effects == [f"book {step}", "cancel hotel"]

    run(main)


async def suspended(instance: Instance[Any, Any]) -> bool:
    return (await instance.row()).status == "suspended"
