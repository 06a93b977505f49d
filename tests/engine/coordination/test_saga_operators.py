"""Sagas in operators' hands: whatever is tried again, corrected, reset or suspended, what was done is undone."""

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from mainspring import (
    Ask,
    Compensate,
    Context,
    DoNotRetryError,
    Event,
    Instance,
    Mainspring,
    Received,
    Send,
    SendFailed,
    Workflow,
)
from mainspring.app.internals import internals_of
from mainspring.core.events import Compensated, Resent, Retried
from mainspring.errors import InstanceFailedError, OperationError
from mainspring.port.records import Conflict, Outcome, Ref, Unit
from tests.engine.coordination.trips import Book, Booked, CancelBooking, GiveUp, Planning, PlanTrip, Trip, World, book
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until


class DeafTrip(Workflow[PlanTrip | Booked | GiveUp, Planning, Book | CancelBooking]):
    """Does not listen to failures: they suspend it."""

    begins = PlanTrip
    initial_state = Planning()

    def route(self, message: Any) -> str | None:
        return getattr(message, "trip", None)

    def decide(self, message: Any, state: Planning) -> Any:
        match message:
            case PlanTrip(trip, steps):
                return [book(trip, steps[0])]
            case Booked():
                return [book(state.trip, state.steps[1])] if len(state.steps) > 1 else []
            case GiveUp():
                return [Compensate("given up")]

    def evolve(self, state: Planning, event: Event[Any, Any]) -> Planning | None:
        match event:
            case Received(PlanTrip(trip, steps)):
                return Planning(trip, steps)
            case Received(Booked()):
                return Planning(state.trip, state.steps[1:])


class PatientTrip(Trip):
    """Waits for an operator when something has failed."""

    unknown_transition = "ignore"

    def decide(self, message: Any, state: Planning) -> Any:
        return None if isinstance(message, SendFailed) else super().decide(message, state)


class TouchyTrip(Trip):
    """Cannot take in that it was undone."""

    def evolve(self, state: Planning, event: Event[Any, Any]) -> Planning | None:
        if isinstance(event, Compensated):
            raise ZeroDivisionError
        return super().evolve(state, event)


@dataclass(frozen=True)
class Refund:
    trip: str


class Refunds(Workflow[Refund, Planning, Booked]):
    """Another workflow that undoes something."""

    initial_state = Planning()

    def route(self, message: Refund) -> str | None:
        return message.trip

    def decide(self, message: Refund, state: Planning) -> Any:
        return []

    def evolve(self, state: Planning, event: Event[Any, Any]) -> Planning | None:
        return None


class PaidTrip(Workflow[PlanTrip, Planning, Book | Refund]):
    """Is undone by another workflow."""

    initial_state = Planning()

    def route(self, message: PlanTrip) -> str | None:
        return message.trip

    def evolve(self, state: Planning, event: Event[Any, Any]) -> Planning | None:
        return None

    def decide(self, message: Any, state: Planning) -> Any:
        match message:
            case PlanTrip(trip, steps):
                return [Send(Book(trip, steps[0]), compensate=Refund(trip))]


@dataclass(frozen=True)
class Guide:
    trip: str


class GuidedTrip(Workflow[PlanTrip | Booked, Planning, Book | CancelBooking | Guide]):
    """Does something after the booking that cannot be undone."""

    begins = PlanTrip
    initial_state = Planning()

    def route(self, message: Any) -> str | None:
        return getattr(message, "trip", None)

    def decide(self, message: Any, state: Planning) -> Any:
        return [book(message.trip, "flight") if isinstance(message, PlanTrip) else Send(Guide("t-1"))]

    def evolve(self, state: Planning, event: Event[Any, Any]) -> Planning | None:
        return None


class BusyTrip(Workflow[PlanTrip | Booked | GiveUp, Planning, Book | CancelBooking | Guide]):
    """Does something beside the booking that cannot be undone."""

    begins = PlanTrip
    initial_state = Planning()

    def route(self, message: Any) -> str | None:
        return getattr(message, "trip", None)

    def decide(self, message: Any, state: Planning) -> Any:
        match message:
            case PlanTrip(trip):
                return [book(trip, "flight"), Send(Guide(trip))]
            case Booked():
                return []
            case GiveUp():
                return [Compensate("given up")]

    def evolve(self, state: Planning, event: Event[Any, Any]) -> Planning | None:
        return None


def full_hotel() -> World:
    return World(plans={("book", "hotel"): ["refused"]})


def app_of(make_app: MakeApp, workflow: Workflow[Any, Any, Any], world: World) -> Mainspring:
    app = make_app()
    app.add(workflow)
    world.connect(app)
    return app


async def has_status(instance: Instance[Any, Any], status: str) -> bool:
    return (await instance.row()).status == status


async def has(instance: Instance[Any, Any], kind: type[Any], message: type[Any]) -> bool:
    events: list[Any] = [entry.event for entry in await instance.stream()]
    return any(isinstance(event, kind) and isinstance(event.message, message) for event in events)


async def must_be_cancelled(instance: Instance[Any, Any]) -> None:
    await instance.cancel("the customer called")
    with pytest.raises(InstanceFailedError, match="the customer called"):
        await instance.result()


def test_what_failed_and_was_retried_is_undone(make_app: MakeApp) -> None:
    world = full_hotel()
    app = app_of(make_app, DeafTrip(), world)

    async def main() -> None:
        async with app:
            receipt = await app.send(PlanTrip("t-1", ("flight", "hotel")))
            await until(lambda: has_status(receipt, "suspended"))
            world.refused.clear()
            (letter,) = await app.dead_letters()
            await app.retry_dead_letter(letter.id, actor="ann")
            await until(lambda: "hotel" in world.booked)
            (retried,) = [entry for entry in await receipt.stream() if isinstance(entry.event, Retried)]
            assert (retried.event, retried.actor) == (Retried(5), "ann")
            assert [line.about for line in await receipt.log() if line.what == "Retried"] == ["position 5"]
            await must_be_cancelled(receipt)
            assert world.effects == ["book flight", "book hotel", "cancel hotel", "cancel flight"]

    run(main)


def test_what_failed_and_was_corrected_is_undone(make_app: MakeApp) -> None:
    world = full_hotel()
    app = app_of(make_app, DeafTrip(), world)

    async def main() -> None:
        async with app:
            receipt = await app.send(PlanTrip("t-1", ("flight", "hotel")))
            await until(lambda: has_status(receipt, "suspended"))
            (letter,) = await app.dead_letters()
            await app.retry_dead_letter(letter.id, Book("t-1", "hotel"), actor="ann")
            await until(lambda: "hotel" in world.booked)
            resent = [entry.event for entry in await receipt.stream() if isinstance(entry.event, Resent)]
            assert resent == [Resent(Book("t-1", "hotel"), CancelBooking("t-1", "hotel"))]
            await must_be_cancelled(receipt)
            assert world.effects == ["book flight", "book hotel", "cancel hotel", "cancel flight"]

    run(main)


def test_a_compensation_waits_for_what_was_corrected(make_app: MakeApp) -> None:
    world = World(plans={("book", "hotel"): ["refused", "held"]}, hold=asyncio.Event())
    app = app_of(make_app, PatientTrip(), world)

    async def main() -> None:
        async with app:
            receipt = await app.send(PlanTrip("t-1", ("flight", "hotel")))
            await until(lambda: has(receipt, Received, SendFailed))
            (letter,) = await app.dead_letters()
            await app.retry_dead_letter(letter.id, Book("t-1", "hotel"))
            await world.held.wait()
            await app.send(GiveUp("t-1"))
            await until(lambda: has_outputs(receipt, 2))
            assert world.calls["cancel hotel"] == 0
            assert world.hold is not None
            world.hold.set()
            with pytest.raises(InstanceFailedError, match="given up"):
                await receipt.result()
            assert world.effects == ["book flight", "book hotel", "cancel hotel", "cancel flight"]

    run(main)


def test_what_failed_is_not_retried_after_the_rest_was_undone(make_app: MakeApp) -> None:
    world = full_hotel()
    app = app_of(make_app, DeafTrip(), world)

    async def main() -> None:
        async with app:
            receipt = await app.send(PlanTrip("t-1", ("flight", "hotel")))
            await until(lambda: has_status(receipt, "suspended"))
            await must_be_cancelled(receipt)
            (letter,) = await app.dead_letters()
            for message in (None, Book("t-1", "hotel")):
                with pytest.raises(OperationError, match="was compensated"):
                    await app.retry_dead_letter(letter.id, message)
            assert world.booked == set()

    run(main)


def test_another_workflow_gets_its_compensation_although_the_instance_is_suspended_then(make_app: MakeApp) -> None:
    app = make_app()
    app.add(Refunds())
    app.add(PaidTrip())
    held, hold = asyncio.Event(), asyncio.Event()

    @app.handler
    async def reserve(command: Book, context: Context) -> None:
        held.set()
        while not hold.is_set():
            try:
                await hold.wait()
            except asyncio.CancelledError:
                assert context.cancelled

    async def main() -> None:
        async with app:
            receipt = await app.send(PlanTrip("t-1", ("flight",)))
            await held.wait()
            await receipt.cancel("the customer called")
            await receipt.suspend("look at it")
            hold.set()
            await until(lambda: has_waiting(receipt))
            await receipt.resume()
            with pytest.raises(InstanceFailedError, match="the customer called"):
                await receipt.result()
            assert await has(app.instance(Refunds, "t-1"), Received, Refund)

    run(main)


def test_cancelling_tells_also_what_runs_and_has_no_compensation(make_app: MakeApp) -> None:
    world = World()
    app = app_of(make_app, GuidedTrip(), world)
    guided, told = asyncio.Event(), asyncio.Event()

    @app.handler
    async def guide(command: Guide, context: Context) -> None:
        guided.set()
        try:
            await asyncio.Event().wait()
        finally:
            told.set()

    async def main() -> None:
        async with app:
            receipt = await app.send(PlanTrip("t-1", ("flight",)))
            await guided.wait()
            await receipt.cancel("the customer called")
            await told.wait()
            with pytest.raises(InstanceFailedError, match="the customer called"):
                await receipt.result()
            assert world.effects == ["book flight", "cancel flight"]

    run(main)


def test_a_retry_beside_a_compensation_that_failed_does_not_let_the_rest_go_on(make_app: MakeApp) -> None:
    world = World(plans={("cancel", "flight"): ["refused"]})
    app = app_of(make_app, BusyTrip(), world)
    hold = asyncio.Event()

    @app.handler
    async def guide(command: Guide) -> None:
        await hold.wait()
        raise DoNotRetryError("no guide")

    async def main() -> None:
        async with app:
            receipt = await app.send(PlanTrip("t-1"))
            await until(lambda: has(receipt, Received, Booked))
            await app.send(GiveUp("t-1"))
            await until(lambda: has_status(receipt, "suspended"))
            hold.set()
            await until(lambda: has_letters(app, 2))
            letters = {letter.type: letter.id for letter in await app.dead_letters()}
            await app.discard_dead_letter(letters["CancelBooking"])
            await app.retry_dead_letter(letters["Guide"], force=True)
            with pytest.raises(OperationError, match="a compensation of it failed for good"):
                await receipt.resume()

    run(main)


async def has_letters(app: Mainspring, count: int) -> bool:
    return len(await app.dead_letters()) == count


def held_trip(workflow: Workflow[Any, Any, Any]) -> tuple[Mainspring, World]:
    """Return an app whose compensation of a car waits until `hold` is set."""
    world = World(plans={("cancel", "car"): ["held"]}, hold=asyncio.Event())
    app = Mainspring("memory://")
    app.add(workflow)
    world.connect(app)
    return app, world


def test_what_is_told_to_stop_when_an_instance_is_cancelled_is_not_its_compensation() -> None:
    async def main() -> None:
        app, world = held_trip(DeafTrip())
        assert world.hold is not None
        async with app:
            receipt = await app.send(PlanTrip("t-1", ("car",)))
            await until(lambda: has(receipt, Received, Booked))
            await receipt.cancel("the customer called")
            await world.held.wait()
            # As when a claim brings the compensation before the commit that sent it is heard of.
            internals_of(app).engine.dispatcher.runners.cancel(Ref("DeafTrip", "t-1"), "forward")
            world.hold.set()
            with pytest.raises(InstanceFailedError, match="the customer called"):
                await receipt.result()
            assert world.effects == ["book car", "cancel car"]

    run(main)


class AskingTrip(DeafTrip):
    """Asks somebody whether to give up."""

    def decide(self, message: Any, state: Planning) -> Any:
        asks = [Ask("Give up?", GiveUp, role="manager")] if isinstance(message, PlanTrip) else []
        return [*super().decide(message, state), *asks]


def test_nobody_is_asked_any_more_while_a_cancelled_instance_is_undone() -> None:
    async def main() -> None:
        app, world = held_trip(AskingTrip())
        assert world.hold is not None
        async with app:
            receipt = await app.send(PlanTrip("t-1", ("car",)))
            await until(lambda: has(receipt, Received, Booked))
            assert [task.title for task in await app.tasks.list()] == ["Give up?"]
            await receipt.cancel("the customer called")
            await world.held.wait()
            assert await app.tasks.list() == []
            world.hold.set()

    run(main)


def test_what_a_compensation_came_to_cannot_be_skipped(make_app: MakeApp) -> None:
    world = full_hotel()
    app = app_of(make_app, TouchyTrip(), world)

    async def main() -> None:
        async with app:
            receipt = await app.send(PlanTrip("t-1", ("flight", "hotel")))
            await until(lambda: has_status(receipt, "suspended"))
            with pytest.raises(OperationError, match="Mend its evolve"):
                await receipt.skip()

    run(main)


def test_a_compensation_that_failed_is_told_however_often_others_were_first(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(plans={("book", "hotel"): ["refused"], ("cancel", "flight"): ["refused"]})
    app = app_of(make_app, Trip(), world)
    lost: list[Unit] = []

    async def main() -> None:
        async with app:
            store = internals_of(app).engine.store
            commit = store.commit

            async def commit_late(worker: int, units: list[Unit]) -> list[Outcome]:
                outcomes: list[Outcome] = []
                for unit in units:
                    if any(event.event == "Suspended" for event in unit.events) and len(lost) < 7:
                        lost.append(unit)
                        outcomes.append(Conflict("version"))
                    else:
                        outcomes += await commit(worker, [unit])
                return outcomes

            monkeypatch.setattr(store, "commit", commit_late)
            receipt = await app.send(PlanTrip("t-1", ("flight", "hotel")))
            await until(lambda: has_status(receipt, "suspended"))
            assert (len(lost), await receipt.waiting()) == (7, [])
            await receipt.skip()
            with pytest.raises(InstanceFailedError, match="no hotel"):
                await receipt.result()

    run(main)


async def has_waiting(instance: Instance[Any, Any]) -> bool:
    return bool(await instance.waiting())


async def has_outputs(instance: Instance[Any, Any], count: int) -> bool:
    return len(await instance.outputs()) == count
