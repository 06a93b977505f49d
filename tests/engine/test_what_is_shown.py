"""What lists, logs and figures say of an instance is what became of it, in every place alike."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from mainspring import Complete, Decisions, Event, FanOut, Mainspring, Workflow
from mainspring.analysis.stuck.awaited import awaited_of
from mainspring.analysis.stuck.stuck import reasons_of
from mainspring.app.internals import internals_of
from mainspring.core.failures import ChildFailed
from mainspring.errors import InstanceFailedError
from mainspring.port.records import Ref
from mainspring.testing.clock import VirtualClock
from mainspring.testing.samples import Count as Tick
from mainspring.testing.samples import Counter
from tests.engine.coordination import expenses, family
from tests.engine.shop import Break, PlaceOrder, Shop, TimedOut
from tests.engine.test_stepping import closed_shop
from tests.support.apps import MakeApp
from tests.support.rows import row_of
from tests.support.running import run
from tests.support.waiting import until


class Fragile(Shop):
    name = "Shop"

    def decide(self, message: Any, state: Any) -> Any:
        raise RuntimeError("not today")


class Forgetful(Shop):
    """Reads what is recorded no longer."""

    name = "Shop"

    def evolve(self, state: Any, event: Any) -> Any:
        raise RuntimeError("what was that?")


@dataclass(frozen=True)
class Count:
    id: str
    parts: int


@dataclass(frozen=True)
class Square:
    of: int


@dataclass(frozen=True)
class Squared:
    of: int


@dataclass(frozen=True)
class AllSquared:
    results: tuple[Squared, ...]
    failures: tuple[ChildFailed, ...]


@dataclass(frozen=True)
class New:
    pass


class Squares(Workflow[Count | AllSquared | Squared, New, Square]):
    begins = Count
    initial_state = New()

    def route(self, message: Count | AllSquared | Squared) -> str | None:
        return message.id if isinstance(message, Count) else None

    def decide(self, message: Count | AllSquared | Squared, state: New) -> Decisions[Any, Square] | None:
        match message:
            case Count(_, parts):
                return [FanOut([Square(of) for of in range(parts)], into=AllSquared)]
            case AllSquared():
                return [Complete()]
            case _:
                return []

    def evolve(self, state: New, event: Event[Any, Square]) -> New | None:
        return None


def test_a_fault_in_the_very_first_step_is_in_the_log(make_app: MakeApp) -> None:
    async def main() -> None:
        async with closed_shop(make_app(), Fragile) as app:
            receipt = await app.send(PlaceOrder("o-1"), id="m-1", actor="ann")
            [line] = await receipt.log()
            assert (line.position, line.what, line.about) == (0, "Faulted", "RuntimeError: not today")
            row = await receipt.row()
            assert (line.state, line.time) == (row.state, (await receipt.log())[0].time)
            assert [(waits.message_id, waits.type) for waits in await receipt.waiting()] == [("m-1", "PlaceOrder")]

    run(main)


def test_a_suspended_instance_that_cannot_be_folded_keeps_the_state_that_it_was_in(make_app: MakeApp) -> None:
    async def main() -> None:
        async with closed_shop(make_app()) as app:
            await app.send(PlaceOrder("o-1"))
        async with closed_shop(make_app(), Forgetful) as app:
            receipt = await app.send(Break("o-1"))
            assert receipt.status == "suspended"
            assert [(row.status, row.state) for row in await app.instances()] == [("suspended", "Paying")]
        async with closed_shop(make_app()) as app:
            [row] = await app.instances()
            assert type(await app.instance(Shop, "o-1").state()).__name__ == row.state

    run(main)


def test_an_instance_that_failed_by_decision_is_listed_with_its_reason(make_app: MakeApp) -> None:
    async def main() -> None:
        async with closed_shop(make_app()) as app:
            receipt = await app.send(PlaceOrder("o-1"))
            await app.send(TimedOut("o-1"))
            [row] = await app.instances(status="failed")
            assert row.error == "nobody paid"
            assert [found.id for found in await app.instances(error="nobody")] == ["o-1"]
            with pytest.raises(InstanceFailedError, match="nobody paid"):
                await receipt.result()

    run(main)


def squaring(app: Mainspring, opened: asyncio.Event | None = None) -> Mainspring:
    """Numbers are squared one after the other; 0 and 1 only once it is opened."""
    app.add(Squares())

    @app.handler
    async def square(command: Square) -> Squared:
        if opened is not None and command.of < 2:
            await opened.wait()
        return Squared(command.of * command.of)

    return app


def test_fan_outs_are_not_counted_as_instances(make_app: MakeApp) -> None:
    async def main() -> None:
        async with squaring(make_app()) as app:
            receipt = await app.send(Count("c-1", 3))
            await receipt.result()
            assert (await app.stats()).instances == {"completed": 1}
            assert await internals_of(app).engine.store.tally() == {("Squares", "completed"): 1}

    run(main)


def test_a_parent_tells_how_many_parts_of_its_fan_out_are_done(make_app: MakeApp) -> None:
    async def main() -> None:
        opened = asyncio.Event()
        async with squaring(make_app(), opened) as app:
            receipt = await app.send(Count("c-1", 10))
            store = internals_of(app).engine.store

            async def progress() -> list[tuple[int | None, int | None]]:
                found = await awaited_of(store, await row_of(app, receipt))
                return [(child.done, child.total) for child in found.children]

            async def eight_are_done() -> bool:
                return await progress() == [(8, 10)]

            await until(eight_are_done)
            [reason] = await reasons_of(store, [Ref("Squares", "c-1")])
            assert (reason.cause, "8 of 10 parts done" in reason.text) == ("child", True)
            opened.set()
            await receipt.result()
            assert await progress() == []

    run(main)


def test_what_was_begun_in_a_part_that_was_left_is_not_waited_for(make_app: MakeApp) -> None:
    async def main() -> None:
        opened = asyncio.Event()
        async with squaring(make_app(), opened) as app:
            receipt = await app.send(Count("c-1", 2))
            before = (await receipt.row()).position
            await app.send(Count("c-1", 2))

            async def begun() -> list[int]:
                return [
                    child.position
                    for child in (await awaited_of(internals_of(app).engine.store, await row_of(app, receipt))).children
                ]

            first, second = await begun()
            assert first <= before < second
            await app.instance(Squares, "c-1").reset(before)
            left = await begun()
            opened.set()
            assert left == [first]

    run(main)


def test_a_child_that_is_waited_for_is_named_by_its_instance(make_app: MakeApp) -> None:
    async def main() -> None:
        async with family.adding(family.travel(make_app())) as app:
            receipt = await app.send(family.PlanTrip("t-1", ("wait", "wait")))
            found = await awaited_of(
                internals_of(app).engine.store, await row_of(app, receipt), internals_of(app).registry
            )
            assert [child.instance for child in found.children] == ["Leg/t-1.0", "Leg/t-1.1"]
            adder = await app.send(family.Sum("s-1", (0,), squares=True))
            [fan_out] = (
                await awaited_of(internals_of(app).engine.store, await row_of(app, adder), internals_of(app).registry)
            ).children
            assert fan_out.instance == "mainspring.FanOut/Adder/s-1/3"

    run(main)


def test_whoever_asks_again_and_again_may_look_at_the_last_part_of_a_stream(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with family.travel(make_app()) as app:
            receipt = await app.send(family.PlanTrip("t-1", ("wait", "wait", "wait")))
            row, store, reads = await row_of(app, receipt), internals_of(app).engine.store, list[int]()
            outlines = store.outlines

            async def counted(spots: Any, limit: int) -> Any:
                reads.append(limit)
                return await outlines(spots, limit)

            monkeypatch.setattr(store, "outlines", counted)
            found = await awaited_of(store, row, events=2)
            assert (row.version, found.since, [child.position for child in found.children]) == (5, 3, [4, 5])
            assert len(reads) == 2  # the second finds nothing more

    run(main)


def test_an_instance_tells_which_tasks_it_waits_for(make_app: MakeApp) -> None:
    async def main() -> None:
        async with expenses.app_of(make_app) as app:
            task = await expenses.opened(app)
            found = await awaited_of(
                internals_of(app).engine.store, await row_of(app, app.instance(expenses.Expenses, "e-1"))
            )
            assert (found.children, found.since, [str(one) for one in found.tasks]) == ([], 0, [task.id])

    run(main)


def test_an_instance_began_with_its_first_input_and_was_changed_with_its_last(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        app = make_app(clock)
        app.add(Counter())
        async with app:
            await app.send(Tick("c-1"))
            clock.advance(60)
            await app.send(Tick("c-1"))
            row = await app.instance(Counter, "c-1").row()
            assert row.updated - row.began == timedelta(seconds=60)

    run(main)
