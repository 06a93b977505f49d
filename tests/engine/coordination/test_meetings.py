"""Children, fan-outs and requests where they meet resets, beginnings anew, business keys and erasure."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from mainspring import Connection, Decisions, Event, FeedEntry, Instance, Mainspring, StartChild, Workflow
from mainspring.app.internals import internals_of
from mainspring.core.events import Reset
from mainspring.errors import OperationError
from mainspring.sealing import Encrypted, FileKeys
from mainspring.testing.simulation import simulate
from tests.engine.coordination.family import (
    Adder,
    BookLeg,
    EndTrip,
    GoOn,
    Half,
    Leg,
    LegBooked,
    Number,
    PlanTrip,
    Squaring,
    Sum,
    Travelling,
    Trip,
    adding,
    travel,
)
from tests.engine.coordination.test_replies import Answer, AnswerNow, Ask, Desk, Visit, Visitor, office
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until

TOLD = ("result", "reply")


async def _is(app: Mainspring, id: str, status: str) -> bool:
    return any(row.id == id and row.status == status for row in await app.instances(id_prefix=id))


async def _told(instance: Instance[Any, Any]) -> list[str]:
    """Return the resets, and what others told the instance, in their order."""
    stream = await instance.stream()
    return [entry.kind or "reset" for entry in stream if entry.kind in TOLD or isinstance(entry.event, Reset)]


async def _is_told(instance: Instance[Any, Any], *expected: str) -> bool:
    return await _told(instance) == [*expected]


class _Again(Trip):
    name = "Trip"
    again = "anew"


def test_an_end_that_is_told_late_spares_the_children_of_the_next_beginning(make_app: MakeApp) -> None:
    async def main() -> None:
        app = make_app()
        app.add(_Again(), Leg())
        async with app:
            held: list[Any] = []
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(internals_of(app).engine.dispatcher.children, "tell", held.append)
                await app.send(PlanTrip("t-1", ("wait",)))
                await app.send(EndTrip("t-1"))
                await until(lambda: len(held) == 1)
                await app.send(PlanTrip("t-1", ("book", "wait")))
                await until(lambda: _is(app, "t-1.1", "running"))
            for claim in held:
                internals_of(app).engine.dispatcher.children.tell(claim)
            await until(lambda: _is(app, "t-1.0", "cancelled"))
            await until(lambda: not internals_of(app).engine.dispatcher.in_hand)
            assert await _is(app, "t-1.1", "running")

    run(main)


def test_a_parent_that_is_reset_behind_a_childs_outcome_gets_it_again(make_app: MakeApp) -> None:
    async def main() -> None:
        async with travel(make_app()) as app:
            await app.send(PlanTrip("t-1", ("fail", "wait")))
            await until(lambda: _failed(app, 1))
            await until(lambda: _is(app, "t-1.1", "running"))
            trip = app.instance(Trip, "t-1")
            for again in (1, 2):
                await trip.reset(4, "once more")
                await until(lambda again=again: _is_told(trip, "result", *["reset", "result"] * again))
                assert await _failed(app, 1)
            await app.send(GoOn("t-1.1"))
            await trip.result()
            assert await trip.state() == Travelling(("t-1.1",), (), (("Leg/t-1.0", "failed"),), 0)

    async def _failed(app: Mainspring, count: int) -> bool:
        return len((await app.instance(Trip, "t-1").state()).failed) == count

    run(main)


def test_a_child_that_is_reset_behind_its_own_childs_outcome_gets_it_again(make_app: MakeApp) -> None:
    async def main() -> None:
        async with travel(make_app()) as app:
            await app.send(PlanTrip("t-1", ("deep", "wait")))
            await until(lambda: _is(app, "t-1.0.deep", "running"))
            leg = app.instance(Leg, "t-1.0")
            await leg.suspend("look at it")
            await app.send(GoOn("t-1.0.deep"))
            await leg.resume()
            await until(lambda: _is(app, "t-1.0", "completed"))
            await leg.reset(3, "once more")
            await until(lambda: _is_told(leg, "result", "reset", "result"))
            assert await leg.result() == LegBooked("t-1.0")

    run(main)


def test_a_parent_that_is_reset_behind_its_join_is_joined_again(make_app: MakeApp) -> None:
    async def main() -> None:
        app = make_app()
        app.add(Adder(), Squaring())

        @app.handler
        async def half(command: Half) -> Number:
            return Number(command.number // 2)

        async with app:
            receipt = await app.send(Sum("s-1", (2, 4)))
            first = await receipt.result()
            await app.instance(Adder, "s-1").reset(3, "once more")
            await until(lambda: _is_told(receipt, "result", "reset", "result"))
            assert await receipt.result() == first

    run(main)


def test_parts_with_one_business_key_have_the_same_result(make_app: MakeApp) -> None:
    async def main() -> None:
        app = make_app()
        app.add(Adder(), Squaring())
        calls: list[int] = []

        @app.handler(idempotency_key=lambda command: f"half-{command.number}", concurrency=1)
        async def half(command: Half) -> Number:
            calls.append(command.number)
            return Number(command.number // 2)

        async with app:
            first = await (await app.send(Sum("s-1", (4,)))).result()
            again = await (await app.send(Sum("s-2", (4,)))).result()
            assert (again, calls) == (first, [4])

    run(main)


def test_a_parent_is_not_reset_to_where_children_were_open_that_ended_with_it(make_app: MakeApp) -> None:
    async def main() -> None:
        async with travel(make_app()) as app:
            await app.send(PlanTrip("t-1", ("wait",)))
            await until(lambda: _is(app, "t-1.0", "running"))
            await app.instance(Trip, "t-1").cancel("by mistake")
            await until(lambda: _is(app, "t-1.0", "cancelled"))
            with pytest.raises(OperationError, match="Choose a position before 3"):
                await app.instance(Trip, "t-1").reset(3, "go on")

    run(main)


def test_a_workflow_that_is_reset_behind_a_reply_gets_it_again(make_app: MakeApp) -> None:
    async def main() -> None:
        async with office(make_app()) as app:
            visit = await app.send(Visit("ann", "quick"))
            told = await visit.result()
            await app.instance(Visitor, "ann").reset(4, "once more")
            await until(lambda: _is_told(visit, "reply", "reset", "reply"))
            assert await visit.result() == told
            assert (await app.instance(Desk, "quick").state()).times == 1

    run(main)


def test_a_childs_failure_waits_for_code_that_listens_or_for_a_skip(make_app: MakeApp) -> None:
    class Deaf(Workflow[PlanTrip, Travelling, BookLeg]):
        name = "Trip"
        initial_state = Travelling()

        def route(self, message: PlanTrip) -> str | None:
            return message.trip_id

        def evolve(self, state: Travelling, event: Event[PlanTrip, BookLeg]) -> Travelling | None:
            return Travelling(open=1)

        def decide(self, message: PlanTrip, state: Travelling) -> Decisions[PlanTrip, BookLeg] | None:
            return [StartChild(BookLeg(f"{message.trip_id}.0", "fail"))]

    async def main() -> None:
        old, new = make_app(), travel(make_app())
        old.add(Deaf(), Leg())
        async with old as app:
            for trip in ("t-1", "t-2"):
                await app.send(PlanTrip(trip, ("fail",)))
                await until(lambda trip=trip: _is(app, trip, "suspended"))
            await app.instance(Deaf, "t-2").skip(actor="ann")
            assert (await app.instance(Deaf, "t-2").row()).status == "running"
        async with new as app:
            await app.instance(Trip, "t-1").resume()
            await app.instance(Trip, "t-1").result()
            assert (await app.instance(Trip, "t-1").state()).failed == (("Leg/t-1.0", "failed"),)

    run(main)


def test_requests_to_two_instances_may_have_the_same_id(make_app: MakeApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mainspring.app.requests.ELSEWHERE_SECONDS", 0.01)
    looks = 0

    async def main() -> None:
        async with office(make_app()) as app:
            kept = internals_of(app).engine.dispatcher.replies.kept

            async def counted(*asked: Any) -> Any:
                nonlocal looks
                looks += 1
                return await kept(*asked)

            assert await app.request(Ask("quick"), id="r-1") == Answer("0 before you")
            waits = asyncio.ensure_future(app.request(Ask("slow"), id="r-1", timeout=timedelta(seconds=60)))
            monkeypatch.setattr(internals_of(app).engine.dispatcher.replies, "kept", counted)
            # The second look begins when the first has found nothing under this id, of this instance.
            await until(lambda: looks > 1)
            assert not waits.done()
            await app.send(AnswerNow("slow"))
            assert await waits == Answer("at last")

    run(main)


def test_what_a_fan_out_holds_is_erased_with_the_instance_that_fanned_out(tmp_path: Path) -> None:
    async def main() -> None:
        keys = FileKeys(tmp_path / "keys")
        seal = Encrypted(keys, subject=lambda about, _: about.instance if about.workflow == "Adder" else None)
        app = adding(Mainspring(f"sqlite:///{tmp_path / 'test.db'}", seal=seal))
        async with app:
            for id in ("s-1", "s-2"):
                await (await app.send(Sum(id, (2, 4)))).result()
            keys.destroy("s-1")
            for _, ref, row in await internals_of(app).engine.store.feed(0, 1_000):
                if row.type is not None:
                    assert row.type.startswith("erased:") == ("s-1" in ref.id), (ref, row)

    run(main)


def test_a_simulation_leaves_out_read_models_in_tables_of_their_own() -> None:
    async def write(entry: FeedEntry, connection: Connection, table: str) -> None:
        raise AssertionError("there is no table")

    async def main() -> None:
        app = travel(Mainspring("sqlite:///never-opened.db"))
        app.projections.add(name="trips", create="CREATE TABLE {table} (id TEXT)")(write)
        async with simulate(app) as world:
            await world.send(PlanTrip("t-1", ("book",)))
            assert (await world.instance(Trip, "t-1").state()).booked == ("t-1.0",)
        assert "trips" in internals_of(app).registry.projections

    run(main)
