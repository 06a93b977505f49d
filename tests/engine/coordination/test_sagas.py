"""Sagas through the public API: what was done is undone in reverse, each once, or a dead letter says what remains."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from mainspring import Instance
from mainspring.core.story import Entry
from mainspring.errors import InstanceFailedError, OperationError
from tests.engine.coordination.trips import LATE, GiveUp, PlanTrip, Trip, World, trip_app
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until


def told(entries: list[Entry]) -> list[str]:
    """Return a stream in few words: event, and step if there is one."""
    words: list[str] = []
    for entry in entries:
        event: Any = entry.event
        step = getattr(getattr(event, "message", None), "step", "")
        words.append(f"{type(event).__name__} {step}".strip())
    return words


def test_a_failed_step_undoes_those_before_it_in_reverse(make_app: MakeApp) -> None:
    world = World(plans={("book", "car"): ["refused"]})
    app = trip_app(make_app, world)

    async def main() -> None:
        async with app:
            receipt = await app.send(PlanTrip("t-1", ("flight", "hotel", "car")))
            with pytest.raises(InstanceFailedError, match="no car"):
                await receipt.result()
            assert world.effects == ["book flight", "book hotel", "cancel hotel", "cancel flight"]
            assert told(await receipt.stream()) == [
                "Began",
                "InitiatedBy",
                "Sent flight",
                "Received flight",
                "Sent hotel",
                "Received hotel",
                "Sent car",
                "Received",
                "Compensating",
                "Sent hotel",
                "Compensated hotel",
                "Sent flight",
                "Compensated flight",
                "Failed",
            ]
            assert (await receipt.row()).status == "failed"

    run(main)


def test_an_unknown_outcome_is_undone_too_and_a_definite_failure_is_not(make_app: MakeApp) -> None:
    # Every attempt at the hotel books it, and its answer is lost: nobody knows, so it is undone.
    world = World(plans={("book", "hotel"): ["lost"] * 3})
    app = trip_app(make_app, world)

    async def main() -> None:
        async with app:
            receipt = await app.send(PlanTrip("t-1", ("flight", "hotel")))
            with pytest.raises(InstanceFailedError):
                await receipt.result()
            assert world.effects == ["book flight", "book hotel", "cancel hotel", "cancel flight"]
            assert world.booked == set()
            assert await app.dead_letters() == []

    run(main)


def test_then_the_instance_goes_on_with_the_message_it_gave_itself(make_app: MakeApp) -> None:
    world = World(plans={("book", "hotel"): ["refused"]})
    app = trip_app(make_app, world)

    async def main() -> None:
        async with app:
            receipt = await app.send(PlanTrip("t-1", ("flight", "hotel"), instead="train"))
            assert await receipt.result() is None
            assert world.effects == ["book flight", "cancel flight", "book train"]
            words = told(await receipt.stream())
            assert words[-6:] == ["Sent flight", "Compensated flight", "Received train", "Sent train", *words[-2:]]
            assert words[-2:] == ["Received train", "Completed"]

    run(main)


def test_a_second_compensation_undoes_only_what_was_done_since_the_first(make_app: MakeApp) -> None:
    world = World(plans={("book", "hotel"): ["refused"], ("book", "train"): ["lost"] * 3})
    app = trip_app(make_app, world)

    async def main() -> None:
        async with app:
            receipt = await app.send(PlanTrip("t-1", ("flight", "hotel"), instead="train"))
            with pytest.raises(InstanceFailedError, match="no train"):
                await receipt.result()
            assert world.effects == ["book flight", "cancel flight", "book train", "cancel train"]

    run(main)


def test_with_nothing_to_undo_it_fails_at_once(make_app: MakeApp) -> None:
    world = World(plans={("book", "flight"): ["refused"]})
    app = trip_app(make_app, world)

    async def main() -> None:
        async with app:
            receipt = await app.send(PlanTrip("t-1"))
            with pytest.raises(InstanceFailedError, match="no flight"):
                await receipt.result()
            assert told(await receipt.stream())[-2:] == ["Compensating", "Failed"]
            assert world.effects == []

    run(main)


def test_a_compensation_is_retried_like_any_command(make_app: MakeApp) -> None:
    world = World(plans={("book", "hotel"): ["refused"], ("cancel", "flight"): ["broken", "lost"]})
    app = trip_app(make_app, world)

    async def main() -> None:
        async with app:
            receipt = await app.send(PlanTrip("t-1", ("flight", "hotel")))
            with pytest.raises(InstanceFailedError):
                await receipt.result()
            assert world.effects == ["book flight", "cancel flight"]
            assert world.calls["cancel flight"] == 3
            assert (await receipt.stream())[-2].attempt == 3

    run(main)


def test_a_compensation_that_fails_for_good_names_what_remains_and_its_retry_goes_on(make_app: MakeApp) -> None:
    world = World(plans={("book", "car"): ["refused"], ("cancel", "hotel"): ["broken"] * 3})
    app = trip_app(make_app, world)

    async def main() -> None:
        async with app:
            receipt = await app.send(PlanTrip("t-1", ("flight", "hotel", "car")))
            await until(lambda: has_status(receipt, "suspended"))
            row = await receipt.row()
            assert row.error is not None
            assert row.error.endswith("still to be undone, in this order: CancelBooking, CancelBooking")
            (letter,) = [letter for letter in await app.dead_letters() if letter.type == "CancelBooking"]
            with pytest.raises(OperationError, match="Retry its dead letter"):
                await receipt.resume()
            with pytest.raises(OperationError, match="being compensated"):
                await receipt.cancel()
            assert world.effects == ["book flight", "book hotel"]
            await app.retry_dead_letter(letter.id)
            with pytest.raises(InstanceFailedError, match="no car"):
                await receipt.result()
            assert world.effects[2:] == ["cancel hotel", "cancel flight"]

    run(main)


def test_a_compensation_done_by_hand_is_skipped_and_the_rest_is_undone(make_app: MakeApp) -> None:
    world = World(plans={("book", "car"): ["refused"], ("cancel", "hotel"): ["refused"]})
    app = trip_app(make_app, world)

    async def main() -> None:
        async with app:
            receipt = await app.send(PlanTrip("t-1", ("flight", "hotel", "car")))
            await until(lambda: has_status(receipt, "suspended"))
            await receipt.skip(actor="ann")
            with pytest.raises(InstanceFailedError, match="no car"):
                await receipt.result()
            (letter,) = [letter for letter in await app.dead_letters() if letter.type == "CancelBooking"]
            with pytest.raises(OperationError, match="Discard it"):
                await app.retry_dead_letter(letter.id)
            assert world.effects[2:] == ["cancel flight"]
            entries = await receipt.stream()
            by_hand = [word for word, entry in zip(told(entries), entries, strict=True) if entry.actor == "ann"]
            assert by_hand == ["Compensated hotel"]

    run(main)


def test_cancelling_undoes_what_was_done_and_ends_as_cancelled(make_app: MakeApp) -> None:
    world = World(plans={("book", "hotel"): ["held"]}, hold=asyncio.Event())
    app = trip_app(make_app, world)

    async def main() -> None:
        async with app:
            receipt = await app.send(PlanTrip("t-1", ("flight", "hotel")))
            await world.held.wait()
            await receipt.cancel("the customer called", actor="ann")
            with pytest.raises(InstanceFailedError, match="the customer called"):
                await receipt.result()
            assert (await receipt.row()).status == "cancelled"
            # The hotel was told to stop before it was booked; what it is worth to cancel it, its handler knows.
            assert world.effects == ["book flight", "cancel hotel", "cancel flight"]
            entries = await receipt.stream()
            assert told(entries)[-6:] == [
                "Compensating",
                "Sent hotel",
                "Compensated hotel",
                "Sent flight",
                "Compensated flight",
                "Cancelled",
            ]
            assert entries[-6].actor == "ann"

    run(main)


def test_a_compensation_waits_for_the_end_of_what_it_undoes(make_app: MakeApp) -> None:
    world = World(plans={("book", "flight"): ["held"]}, hold=asyncio.Event())
    app = trip_app(make_app, world)

    async def main() -> None:
        async with app:
            receipt = await app.send(PlanTrip("t-1", ("flight",)))
            await world.held.wait()
            await app.send(GiveUp("t-1"))
            await until(lambda: has_output_that_waits(receipt))
            assert world.effects == []
            assert world.hold is not None
            world.hold.set()
            with pytest.raises(InstanceFailedError, match="given up"):
                await receipt.result()
            assert world.effects == ["book flight", "cancel flight"]
            assert "Kept flight" in told(await receipt.stream())

    run(main)


def test_a_send_that_waits_for_its_retry_is_cancelled_and_undone(make_app: MakeApp) -> None:
    world = World(plans={("book", "slow"): ["broken"]}, retry=LATE)
    app = trip_app(make_app, world)

    async def main() -> None:
        async with app:
            receipt = await app.send(PlanTrip("t-1", ("flight", "slow")))
            await until(lambda: world.calls["book slow"] == 1)
            await until(lambda: has_attempt(receipt))
            await app.send(GiveUp("t-1"))
            with pytest.raises(InstanceFailedError, match="given up"):
                await receipt.result()
            assert world.calls["book slow"] == 1
            assert world.effects == ["book flight", "cancel slow", "cancel flight"]

    run(main)


def test_an_input_from_outside_meanwhile_is_a_dead_letter(make_app: MakeApp) -> None:
    world = World(plans={("book", "hotel"): ["refused"], ("cancel", "flight"): ["held"]}, hold=asyncio.Event())
    app = trip_app(make_app, world)

    async def main() -> None:
        async with app:
            receipt = await app.send(PlanTrip("t-1", ("flight", "hotel")))
            await world.held.wait()
            assert (await receipt.row()).status == "compensating"
            assert [row.id for row in await app.instances(status="compensating")] == ["t-1"]
            late = await app.send(GiveUp("t-1"), id="late")
            assert late.status == "dead letter"
            (letter,) = [letter for letter in await app.dead_letters() if letter.message_id == "late"]
            assert letter.reason == "Trip/t-1 is being compensated"
            assert world.hold is not None
            world.hold.set()
            with pytest.raises(InstanceFailedError):
                await receipt.result()

    run(main)


def test_a_suspended_compensation_goes_on_when_it_is_resumed(make_app: MakeApp) -> None:
    world = World(plans={("book", "hotel"): ["refused"], ("cancel", "flight"): ["held"]}, hold=asyncio.Event())
    app = trip_app(make_app, world)

    async def main() -> None:
        async with app:
            receipt = await app.send(PlanTrip("t-1", ("flight", "hotel")))
            await world.held.wait()
            await receipt.suspend("look at it")
            assert world.hold is not None
            world.hold.set()
            await until(lambda: has_waiting(receipt))
            assert (await receipt.row()).status == "suspended"
            await receipt.resume()
            with pytest.raises(InstanceFailedError, match="no hotel"):
                await receipt.result()
            assert world.effects == ["book flight", "cancel flight"]

    run(main)


def test_nobody_goes_back_behind_what_was_undone(make_app: MakeApp) -> None:
    world = World(plans={("book", "hotel"): ["refused"]})
    app = trip_app(make_app, world)

    async def main() -> None:
        async with app:
            receipt = await app.send(PlanTrip("t-1", ("flight", "hotel"), instead="train"))
            await receipt.result()
            with pytest.raises(OperationError, match="what it did was undone"):
                await receipt.reset(5)
            await receipt.reset(11)  # after Replan, where only the train was booked

    run(main)


def test_terminating_undoes_nothing(make_app: MakeApp) -> None:
    world = World(plans={("book", "hotel"): ["held"]}, hold=asyncio.Event())
    app = trip_app(make_app, world)

    async def main() -> None:
        async with app:
            receipt = await app.send(PlanTrip("t-1", ("flight", "hotel")))
            await world.held.wait()
            await receipt.terminate("a test order", actor="ann")
            with pytest.raises(InstanceFailedError, match="a test order"):
                await receipt.result()
            assert (await receipt.row()).status == "terminated"
            assert told(await receipt.stream())[-1] == "Terminated"
            assert world.effects == ["book flight"]
            with pytest.raises(OperationError, match="it has terminated"):
                await receipt.cancel()

    run(main)


def test_another_process_goes_on_with_the_compensations(make_app: MakeApp) -> None:
    world = World(plans={("book", "car"): ["refused"], ("cancel", "hotel"): ["held"]}, hold=asyncio.Event())

    async def main() -> None:
        first = trip_app(make_app, world)
        await first.start()
        await first.send(PlanTrip("t-1", ("flight", "hotel", "car")))
        await world.held.wait()
        await first.stop(timedelta(0))
        second = trip_app(make_app, world)
        async with second:
            with pytest.raises(InstanceFailedError, match="no car"):
                await second.instance(Trip, "t-1").result()
            assert world.effects[2:] == ["cancel hotel", "cancel flight"]

    run(main)


async def has_status(instance: Instance[Any, Any], status: str) -> bool:
    return (await instance.row()).status == status


async def has_waiting(instance: Instance[Any, Any]) -> bool:
    return bool(await instance.waiting())


async def has_output_that_waits(instance: Instance[Any, Any]) -> bool:
    return len(await instance.outputs()) == 2


async def has_attempt(instance: Instance[Any, Any]) -> bool:
    return any(output.attempts for output in await instance.outputs())
