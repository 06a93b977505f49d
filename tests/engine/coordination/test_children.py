"""Children: their outcomes come to the parent once, and they end with it unless it abandons them."""

from typing import Any

import pytest

from mainspring import Decisions, Event, StartChild, Workflow
from mainspring.app import Mainspring
from mainspring.app.internals import internals_of
from mainspring.core.events import Cancelled, Kept
from mainspring.errors import StoreUnreachableError
from mainspring.port.records import Outcome, OutputClaim, Unit
from tests.engine.coordination.family import BookLeg, EndTrip, GoOn, Leg, PlanTrip, Travelling, Trip, travel
from tests.support.apps import MakeApp
from tests.support.rows import row_of
from tests.support.running import run
from tests.support.waiting import until


async def _status(app: Mainspring, workflow: Any, id: str) -> str:
    return (await app.instance(workflow, id).row()).status


async def _has(app: Mainspring, workflow: Any, id: str, status: str) -> bool:
    rows = await app.instances(id_prefix=id)
    return any(row.id == id and row.status == status for row in rows)


def test_a_childs_result_is_an_input_of_its_parent(make_app: MakeApp) -> None:
    async def main() -> None:
        async with travel(make_app()) as app:
            await (await app.send(PlanTrip("t-1", ("book", "silent", "book")))).result()
            state = await app.instance(Trip, "t-1").state()
            assert (sorted(state.booked), state.silent, state.failed) == (["t-1.0", "t-1.2"], ("Leg/t-1.1",), ())
            told = [entry for entry in await app.instance(Trip, "t-1").stream() if entry.kind == "result"]
            assert sorted(str(entry.message_id) for entry in told) == ["Trip/t-1/3/1", "Trip/t-1/4/1", "Trip/t-1/5/1"]
            assert not await app.dead_letters()
            await until(lambda: _quiet(app))

    run(main)


def test_a_start_that_comes_again_while_the_first_is_not_durable_settles_nothing_early(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that was relieved meanwhile claims the start again; then the commit of the first one fails."""

    async def main() -> None:
        async with travel(make_app()) as app:
            store, dispatcher = internals_of(app).engine.store, internals_of(app).engine.dispatcher
            commit, start = store.commit, dispatcher.children.start
            starts: list[tuple[OutputClaim, Any]] = []

            def begun(claim: OutputClaim, message: Any) -> None:
                starts.append((claim, message))
                start(claim, message)

            async def refused(worker: int, units: list[Unit]) -> list[Outcome]:
                if not any(unit.workflow == "Leg" and unit.expected_version == 0 for unit in units):
                    return await commit(worker, units)
                monkeypatch.setattr(store, "commit", commit)
                dispatcher.begin(*starts[0])
                raise StoreUnreachableError("the store", "refused")

            monkeypatch.setattr("mainspring.engine.stepping.inbox.PAUSE_AFTER_STORE_ERROR_SECONDS", 0.01)
            monkeypatch.setattr(dispatcher.children, "start", begun)
            monkeypatch.setattr(store, "commit", refused)
            await app.send(PlanTrip("t-1", ("wait",)))
            await until(lambda: _has(app, Leg, "t-1.0", "running"))
            assert len(starts) == 2

    run(main)


def test_a_parent_that_listens_is_told_of_a_childs_failure(make_app: MakeApp) -> None:
    async def main() -> None:
        async with travel(make_app()) as app:
            await (await app.send(PlanTrip("t-1", ("fail", "wait")))).row()
            await until(lambda: _has(app, Leg, "t-1.1", "running"))
            await app.instance(Leg, "t-1.1").cancel("strike", actor="ann")
            await app.instance(Trip, "t-1").result()
            state = await app.instance(Trip, "t-1").state()
            assert sorted(state.failed) == [("Leg/t-1.0", "failed"), ("Leg/t-1.1", "cancelled")]

    run(main)


def test_a_parent_that_does_not_listen_is_suspended_with_the_reason(make_app: MakeApp) -> None:
    async def main() -> None:
        app = make_app()
        app.add(Deaf(), Leg())
        async with app:
            await app.send(PlanTrip("t-1", ("fail",)))
            await until(lambda: _has(app, Deaf, "t-1", "suspended"))
            error = (await app.instance(Deaf, "t-1").row()).error
            assert error == "its child Leg/t-1.0 has failed: no seats"

    run(main)


def test_a_childs_id_that_is_taken_is_no_silent_join(make_app: MakeApp) -> None:
    async def main() -> None:
        async with travel(make_app()) as app:
            await app.send(BookLeg("t-1.0", "wait"))
            receipt = await app.send(PlanTrip("t-1", ("book",)))
            await receipt.result()
            assert (await app.instance(Trip, "t-1").state()).failed == (("Leg/t-1.0", "refused"),)
            assert await _status(app, Leg, "t-1.0") == "running"
            [told] = [entry for entry in await receipt.stream() if entry.kind == "result"]
            assert "there is an instance Leg/t-1.0 already" in repr(told.event)

    run(main)


def test_a_child_that_could_not_begin_and_is_cancelled_is_told_of(make_app: MakeApp) -> None:
    async def main() -> None:
        async with travel(make_app()) as app:
            await app.send(PlanTrip("t-1", ("broken",)))
            await until(lambda: _has(app, Leg, "t-1.0", "suspended"))
            await app.instance(Leg, "t-1.0").cancel("hopeless")
            await app.instance(Trip, "t-1").result()
            assert (await app.instance(Trip, "t-1").state()).failed == (("Leg/t-1.0", "refused"),)

    run(main)


def test_cancelling_a_parent_cancels_its_open_children_and_theirs(make_app: MakeApp) -> None:
    async def main() -> None:
        async with travel(make_app()) as app:
            await app.send(PlanTrip("t-1", ("wait", "deep", "book")))
            await until(lambda: _has(app, Leg, "t-1.1.deep", "running"))
            await until(lambda: _booked(app))
            await app.instance(Trip, "t-1").cancel("ill", actor="ann")
            for leg in ("t-1.0", "t-1.1", "t-1.1.deep"):
                await until(lambda leg=leg: _has(app, Leg, leg, "cancelled"))
            assert await _status(app, Leg, "t-1.2") == "completed"
            last = (await app.instance(Leg, "t-1.1.deep").stream())[-1].event
            assert last == Cancelled("its parent Leg/t-1.1 has cancelled")
            await until(lambda: _quiet(app))
            kept = [e for e in await app.instance(Trip, "t-1").stream() if isinstance(e.event, Kept)]
            assert not kept, "a parent that cancels its children need not be told of it"

    async def _booked(app: Mainspring) -> bool:
        return (await app.instance(Trip, "t-1").state()).booked == ("t-1.2",)

    run(main)


def test_an_end_that_waits_for_a_child_to_begin_is_not_held_meanwhile(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start that was set aside is tried only while its worker holds nothing: both would wait for each other."""
    monkeypatch.setattr("mainspring.engine.outputs.child_deliveries.LOOKS_FOR_A_START", 2)

    async def main() -> None:
        async with travel(make_app()) as app:
            await app.send(PlanTrip("t-1", ("wait",)))
            await until(lambda: _has(app, Leg, "t-1.0", "running"))
            children, looks = internals_of(app).engine.dispatcher.children, 0

            async def just_beginning(*_: object) -> bool:
                nonlocal looks
                looks += 1
                return False

            with monkeypatch.context() as patch:
                patch.setattr(children, "_cancel_children", just_beginning)
                await app.instance(Trip, "t-1").cancel("no more")
                await until(lambda: looks > 0 and not children.in_hand)
            await until(lambda: _has(app, Leg, "t-1.0", "cancelled"))
            assert not await app.dead_letters()

    run(main)


def test_a_parent_that_ends_by_itself_cancels_its_open_children(make_app: MakeApp) -> None:
    async def main() -> None:
        async with travel(make_app()) as app:
            for trip, well in (("t-1", True), ("t-2", False)):
                await app.send(PlanTrip(trip, ("wait",)))
                await app.send(EndTrip(trip, well))
                await until(lambda trip=trip: _has(app, Leg, f"{trip}.0", "cancelled"))

    run(main)


def test_an_abandoned_child_goes_on_and_its_outcome_is_kept(make_app: MakeApp) -> None:
    async def main() -> None:
        async with travel(make_app()) as app:
            await app.send(PlanTrip("t-1", ("wait",), abandon=True))
            await until(lambda: _has(app, Leg, "t-1.0", "running"))
            await app.instance(Trip, "t-1").cancel("ill")
            await until(lambda: _quiet(app))
            await app.send(GoOn("t-1.0"))
            await app.instance(Leg, "t-1.0").result()
            await until(lambda: _kept(app))

    async def _kept(app: Mainspring) -> bool:
        return isinstance((await app.instance(Trip, "t-1").stream())[-1].event, Kept)

    run(main)


def test_a_parent_is_known_as_such_when_its_story_is_read_from_a_snapshot(make_app: MakeApp) -> None:
    class Chatty(Trip):
        name = "Trip"
        snapshot_every = 2

    async def main() -> None:
        first = make_app()
        first.add(Chatty(), Leg())
        async with first as app:
            await app.send(PlanTrip("t-1", ("wait", "book", "silent")))
            await until(lambda: _one_left(app))
        second = make_app()
        second.add(Chatty(), Leg())
        async with second as app:
            [loaded] = await internals_of(app).engine.store.load([app.instance(Chatty, "t-1")._ref])  # noqa: SLF001
            assert loaded is not None
            assert "ChildStarted" not in [row.event for row in loaded.events]
            await app.send(EndTrip("t-1"))
            await until(lambda: _has(app, Leg, "t-1.0", "cancelled"))

    async def _one_left(app: Mainspring) -> bool:
        return (await app.instance(Chatty, "t-1").state()).open == 1

    run(main)


def test_who_never_started_a_child_pays_nothing_at_its_end(make_app: MakeApp) -> None:
    async def main() -> None:
        async with travel(make_app()) as app:
            receipt = await app.send(BookLeg("l-1", "book"))
            await receipt.result()
            rows = await internals_of(app).engine.store.stream(receipt._ref, 0, 10)  # noqa: SLF001
            assert [(row.event, row.detail) for row in rows][-1] == ("Completed", None)

    run(main)


def test_a_child_knows_who_began_it(make_app: MakeApp) -> None:
    async def main() -> None:
        async with travel(make_app()) as app:
            await app.send(PlanTrip("t-1", ("wait",)), id="m-1")
            await until(lambda: _has(app, Leg, "t-1.0", "running"))
            context = (await row_of(app, app.instance(Leg, "t-1.0"))).context
            assert b'"parent":"Trip/t-1/3"' in context
            assert b'"correlation_id":"m-1"' in context

    run(main)


class Deaf(Workflow[PlanTrip, Travelling, BookLeg]):
    """Starts a child and does not care what becomes of it."""

    initial_state = Travelling()

    def route(self, message: PlanTrip) -> str | None:
        return message.trip_id

    def evolve(self, state: Travelling, event: Event[PlanTrip, BookLeg]) -> Travelling | None:
        return None

    def decide(self, message: PlanTrip, state: Travelling) -> Decisions[PlanTrip, BookLeg] | None:
        return [StartChild(BookLeg(f"{message.trip_id}.0", message.legs[0]))]


def test_a_result_that_the_parent_does_not_listen_for_is_kept(make_app: MakeApp) -> None:
    async def main() -> None:
        app = make_app()
        app.add(Deaf(), Leg())
        async with app:
            for trip, how in (("t-1", "book"), ("t-2", "silent")):
                await app.send(PlanTrip(trip, (how,)))
                await until(lambda trip=trip: _kept(app, trip))
                assert await _status(app, Deaf, trip) == "running"

    async def _kept(app: Mainspring, trip: str) -> bool:
        return isinstance((await app.instance(Deaf, trip).stream())[-1].event, Kept)

    run(main)


async def _quiet(app: Mainspring) -> bool:
    stats = await app.stats()
    return stats.outbox == stats.inbox == 0
