"""What instances did is mined from real streams: every step once, and what rows do not tell is said."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from mainspring import Decisions, Event, Mainspring, Received, Workflow
from mainspring.analysis.diagram.mining import BEGIN, MOVES_KEPT, Mined, MinedStep, Miner, Trail, mine
from mainspring.analysis.reading.model import COMPENSATED
from mainspring.app.internals import internals_of
from mainspring.core.fold import fold
from mainspring.engine.inputs.stored_streams import whole_stream
from mainspring.errors import InstanceFailedError
from mainspring.port.records import InstanceFilter, InstanceRow, Outline, Ref
from tests.unit.analysis.door_orders import Built, Delivered, Door, GiveUp, Look, Order, doors
from tests.unit.analysis.example_apps import APPS

STATES = ("New", "Building", "OnTheWay", "Undoing", "Gone")


def mined_after(url: str, work: Callable[[Mainspring], Awaitable[Any]], sample: int | None = None) -> Mined:
    """Let an app work, and return what can be mined of it."""

    async def run() -> Mined:
        async with doors(url) as app:
            await work(app)
            miner = Miner("Door", "New", STATES)
            return await mine(internals_of(app).engine.store, InstanceFilter(workflow="Door"), miner, sample)

    return asyncio.run(run())


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'doors.db'}"


def steps(mined: Mined) -> dict[tuple[str, str, str, str | None], int]:
    return {(step.source, step.message, step.target, step.ends): step.count for step in mined.steps}


def test_every_step_is_counted_once_with_what_it_decided(url: str) -> None:
    async def work(app: Mainspring) -> None:
        for id in ("a", "b", "c"):
            await app.send(Order(id))
        for id in ("a", "b"):
            await app.send(Built(id))
        await app.send(Delivered("a"))

    mined = mined_after(url, work)

    assert steps(mined) == {
        ("New", "Order", "Building", None): 3,
        ("Building", "Built", "OnTheWay", None): 2,
        ("OnTheWay", "Delivered", "OnTheWay", "completed"): 1,
    }
    assert mined.steps[0].outputs == ("Send(Build)", "Schedule(TooLate)")
    assert mined.instances == 3
    assert {state.name: (state.visits, state.now) for state in mined.states} == {"Building": (3, 1), "OnTheWay": (2, 1)}
    assert mined.notes == ()


def test_a_guard_that_ends_is_another_step_than_one_that_goes_on(url: str) -> None:
    async def work(app: Mainspring) -> None:
        for id, width in (("a", 90), ("b", 300)):
            await app.send(Order(id))
            await app.send(Built(id, width))

    mined = mined_after(url, work)

    assert steps(mined)["Building", "Built", "OnTheWay", None] == 1
    assert steps(mined)["Building", "Built", "OnTheWay", "failed"] == 1


def test_what_failed_behind_its_compensation_is_where_its_row_says(url: str) -> None:
    async def work(app: Mainspring) -> None:
        receipt = await app.send(Order("a"))
        await app.send(GiveUp("a"))
        with pytest.raises(InstanceFailedError):
            await receipt.result(timeout=timedelta(minutes=2))

    mined = mined_after(url, work)

    assert steps(mined) == {
        ("New", "Order", "Building", None): 1,
        ("Building", "GiveUp", "Undoing", None): 1,
        ("Undoing", COMPENSATED, "Gone", "failed"): 1,
    }


def test_a_reset_goes_back_to_the_state_of_that_version_and_what_was_done_before_counts(url: str) -> None:
    async def work(app: Mainspring) -> None:
        await app.send(Order("a"))
        await app.send(Look("a"))
        version = (await app.instance(Door, "a").row()).position
        await app.send(Built("a"))
        await app.instance(Door, "a").reset(version, actor="ann")
        await app.send(Built("a", 100))

    mined = mined_after(url, work)

    assert steps(mined)["Building", "Built", "OnTheWay", None] == 2
    assert not any(source == "OnTheWay" for source, *_ in steps(mined))
    assert mined.notes == ("1 reset to an earlier version: what was done before is counted too.",)


def test_who_begins_anew_begins_in_the_initial_state(url: str) -> None:
    async def work(app: Mainspring) -> None:
        for _ in range(2):
            await app.send(Order("a"))
            await app.send(Built("a"))
            await app.send(Delivered("a"))

    mined = mined_after(url, work)

    assert steps(mined)["New", "Order", "Building", None] == 2
    assert mined.notes == ("1 instance that began anew after its end.",)


def test_who_was_ended_from_outside_is_told_and_not_drawn(url: str) -> None:
    async def work(app: Mainspring) -> None:
        for id in ("a", "b", "c"):
            await app.send(Order(id))
        await app.instance(Door, "a").terminate("a test", actor="ann")
        await app.instance(Door, "b").terminate("a test", actor="ann")

    mined = mined_after(url, work)

    assert steps(mined) == {("New", "Order", "Building", None): 3}
    assert mined.notes == ("2 terminated from outside in Building.",)
    assert [(state.name, state.now) for state in mined.states] == [("Building", 1)]


def test_what_an_operators_cancelling_undid_is_no_step_of_the_workflow(url: str) -> None:
    async def work(app: Mainspring) -> None:
        receipt = await app.send(Order("a"))
        await app.instance(Door, "a").cancel("a test", actor="ann")
        with pytest.raises(InstanceFailedError):
            await receipt.result(timeout=timedelta(minutes=2))

    mined = mined_after(url, work)

    assert steps(mined) == {("New", "Order", "Building", None): 1}
    assert mined.notes == ("1 cancelled from outside in Undoing.",)


def test_a_sample_has_so_many_instances_and_always_the_same(url: str, tmp_path: Path) -> None:
    async def work(app: Mainspring) -> None:
        if not await app.instances(limit=1):
            await app.send_many([Order(f"o-{n}") for n in range(50)])
            await app.send_many([Built(f"o-{n}", 90 + n) for n in range(25)])

    first, second = mined_after(url, work, 20), mined_after(url, work, 20)

    assert first == second
    assert first.instances == 20
    assert steps(first)["New", "Order", "Building", None] == 20
    assert 0 < steps(first)["Building", "Built", "OnTheWay", None] < 20


@dataclass(frozen=True)
class Tick:
    id: str


@dataclass(frozen=True)
class Even:
    pass


@dataclass(frozen=True)
class Odd:
    pass


class Clock(Workflow[Tick, Even | Odd, Tick]):
    initial_state = Even()
    history = "state"

    def route(self, message: Tick) -> str | None:
        return message.id

    def decide(self, message: Tick, state: Even | Odd) -> Decisions[Tick, Tick] | None:
        return []

    def evolve(self, state: Even | Odd, event: Event[Tick, Tick]) -> Even | Odd | None:
        return (Odd() if state == Even() else Even()) if isinstance(event, Received) else None


def test_a_history_that_is_not_kept_tells_no_steps(tmp_path: Path) -> None:
    async def run() -> Mined:
        app = Mainspring(f"sqlite:///{tmp_path / 'clock.db'}")
        app.add(Clock())
        async with app:
            for n in range(5):
                await app.send(Tick("a"), id=f"t-{n}")
            return await mine(internals_of(app).engine.store, InstanceFilter(workflow="Clock"), Miner("Clock", "Even"))

    mined = asyncio.run(run())

    assert mined.steps == ()
    assert mined.notes == ("5 steps are not counted: it is not recorded in which state they were taken.",)


# ---- streams as they may be found


def outline(version: int, event: str, type: str | None = None, state: str | None = None, time_us: int = 0) -> Outline:
    return (7, version, event, time_us, type, None, 1, state, None, None, None, 0)


def row(state: str | None, version: int, status: Any = "running") -> InstanceRow:
    return InstanceRow(7, "W", "i", version, status, state, None, 1, b"{}", 0, 0)


def mined_of(instance: InstanceRow, *outlines: Outline, initial: str | None = "New", states: Any = ()) -> Mined:
    miner = Miner("W", initial, states)
    take(miner, instance, *outlines)
    return miner.mined()


def take(miner: Miner, instance: InstanceRow, *outlines: Outline) -> None:
    walk = Trail(miner, instance)
    for each in outlines:
        walk.take(each)
    walk.end()


def test_a_step_behind_a_gap_is_not_counted_and_the_next_one_is() -> None:
    mined = mined_of(
        row("C", 9),
        outline(1, "Began"),
        outline(2, "InitiatedBy", "Go", "A"),
        outline(7, "Received", "Go", "B"),
        outline(8, "Received", "Go", "C"),
    )

    assert steps(mined) == {("New", "Go", "A", None): 1, ("B", "Go", "C", None): 1}
    assert mined.notes == ("1 step is not counted: it is not recorded in which state it was taken.",)


def test_after_a_migration_only_states_that_the_code_has_are_trusted() -> None:
    stream = (
        outline(1, "Began"),
        outline(2, "InitiatedBy", "Go", "Former"),
        outline(3, "Migrated"),
        outline(4, "Received", "Go", "Present"),
        outline(5, "Received", "Go", "Present"),
    )

    mined = mined_of(row("Present", 5), *stream, states=("New", "Present"))

    assert steps(mined) == {("New", "Go", "Former", None): 1, ("Present", "Go", "Present", None): 1}
    assert mined.notes == (
        "1 migration to another version of the workflow.",
        "1 step is not counted: it is not recorded in which state it was taken.",
    )


def test_without_its_code_a_workflow_begins_at_the_begin_mark() -> None:
    mined = mined_of(row("A", 2), outline(1, "Began"), outline(2, "InitiatedBy", "Go", "A"), initial=None)

    assert mined.steps == (MinedStep(BEGIN, "Go", "A", 1),)


def test_the_time_in_a_state_is_that_of_those_who_left_it() -> None:
    miner = Miner("W", "New")
    for key, left_us in enumerate((1_000_000, 3_000_000, 8_000_000)):
        take(
            miner,
            row("B", 4),
            outline(1, "Began"),
            outline(2, "InitiatedBy", "Go", "A"),
            outline(3, "Received", "Look", "A", left_us // 2),
            outline(4, "Received", "Go", "B", left_us + key),
        )

    a, b = sorted(miner.mined().states, key=lambda state: state.name)

    assert (a.visits, a.dwell_seconds) == (3, pytest.approx(3.0, abs=0.001))
    assert (b.visits, b.dwell_seconds) == (3, None)


def test_an_initial_state_is_visited_by_those_who_stay_in_it() -> None:
    miner = Miner("W", "New")
    take(miner, row("New", 2), outline(1, "Began"), outline(2, "InitiatedBy", "Look", "New", 5))
    take(miner, row("A", 2), outline(1, "Began"), outline(2, "InitiatedBy", "Go", "A", 5))

    assert {state.name: (state.visits, state.now) for state in miner.mined().states} == {"New": (1, 1), "A": (1, 1)}


def test_a_reset_over_more_moves_than_are_kept_does_not_guess() -> None:
    miner = Miner("W", "New")
    walk = Trail(miner, row("B", 3 * MOVES_KEPT))
    walk.take(outline(1, "Began"))
    last = 2 * MOVES_KEPT + 10
    for version in range(2, last):
        walk.take(outline(version, "Received", "Go", "AB"[version % 2]))
    walk.take(outline(last, "Reset"), back_to=2)
    walk.take(outline(last + 1, "Received", "Go", "C"))
    walk.end()

    mined = miner.mined()

    assert not any(target == "C" for _, _, target, _ in steps(mined))
    assert "1 step is not counted: it is not recorded in which state it was taken." in mined.notes


# ---- held against an independent computation


@pytest.mark.parametrize("example", APPS)
def test_steps_and_times_of_the_examples_are_those_that_folding_their_streams_gives(
    examples: Path, example: str
) -> None:
    async def run() -> list[tuple[Mined, Counter[tuple[str, str, str]]]]:
        app = APPS[example]
        await app.start(work=False)
        try:
            return [
                (await _mined(app, name), await _folded(app, name))
                for name in internals_of(app).registry.workflows
                if not name.startswith("mainspring.")
            ]
        finally:
            await app.stop()

    for mined, expected in asyncio.run(run()):
        counted = Counter({(s.source, s.message, s.target): 0 for s in mined.steps})
        for step in mined.steps:
            counted[step.source, step.message, step.target] += step.count
        assert {step: n for step, n in counted.items() if step[1] != COMPENSATED} == expected
        assert sum(expected.values()) > 0


async def _mined(app: Mainspring, name: str) -> Mined:
    entry = internals_of(app).registry.workflows[name]
    miner = Miner(name, entry.definition.states[type(entry.workflow.initial_state)])
    return await mine(internals_of(app).engine.store, InstanceFilter(workflow=name), miner)


async def _folded(app: Mainspring, name: str) -> Counter[tuple[str, str, str]]:
    """Count steps by folding every stream event by event, and looking at the states themselves."""
    entry, store = internals_of(app).registry.workflows[name], internals_of(app).engine.store
    counted: Counter[tuple[str, str, str]] = Counter()
    for instance in await store.instances(InstanceFilter(workflow=name), 1_000):
        state: Any = entry.workflow.initial_state
        message, source = None, ""
        ref = Ref(name, instance.id)
        for event in entry.recorder.folded(ref, await whole_stream(store, ref)):
            if isinstance(event, Received):
                if message is not None:
                    counted[source, message, type(state).__name__] += 1
                message, source = type(event.message).__name__, type(state).__name__
            state = fold(entry.workflow, state, [event])
            if type(event).__name__ == "Compensating" and message is not None:
                counted[source, message, type(state).__name__] += 1
                message = None
        if message is not None:
            counted[source, message, type(state).__name__] += 1
    return counted
