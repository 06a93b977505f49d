"""What no worker that runs can read is told after a minute, by what waits; what one of them can read is not."""

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from mainspring import Mainspring
from mainspring.analysis.stuck.held import held_among, unread_told
from mainspring.analysis.stuck.stuck import reasons_of
from mainspring.app.internals import internals_of
from mainspring.engine.fleet import knowledge, standing
from mainspring.engine.fleet.knowledge import Knowledge
from mainspring.engine.fleet.standing import Left, Standing
from mainspring.engine.fleet.unread import Fleet, Unread, fleet_of, unread_of
from mainspring.engine.handlers.hung_calls import Hung
from mainspring.port.records import InputRow, Ref, Unit
from mainspring.stores.memory import MemoryStore
from mainspring.testing.clock import VirtualClock
from tests.engine.jobs import Done, Start, Work, job
from tests.engine.releases import Change, begin, release
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until

TRIP = Ref("Trip", "t-1")
# What waits after each change, as the doctor says it and as `stuck` does, without the times.
WAITS: dict[Change, tuple[str, str]] = {
    "command": ("knows Ride: 1 has waited", "Ride was due ago, and no worker that runs knows it"),
    "timer": (
        "knows the timer Slept of Trip: 1 has waited",
        "the timer Slept was due ago, and no worker that runs knows it",
    ),
    "input": ("knows Ridden for Trip: 1 has waited", "Ridden came ago, and no worker that runs knows it"),
    "message version": ("knows Walk@2: 1 has waited", "Walk@2 was due ago, and no worker that runs knows it"),
    "workflow version": (
        "can read Trip/t-1: it runs under version 2 of its definition; its messages have waited",
        "no worker that runs can read it: it runs under version 2 of its definition",
    ),
}


def timeless(text: str) -> str:
    return re.sub(r"( for)?( \d+ (min|s))+", "", text)


async def leave_behind(app: Mainspring, change: Change) -> None:
    """Begin a trip of a release that is gone afterwards, with what only it knows waiting."""
    await release(app, change).start(work=change == "timer")
    await app.send(begin(change, TRIP.id))
    store = internals_of(app).engine.store
    if change == "timer":
        await until(lambda: has_timer(app))
    if change == "input":
        body = b'{"id": "t-1", "round": 1}'
        ridden = InputRow(
            *("Trip", "t-1", "m-1", "command", "Ridden"), 1, body, store.now_us(), b'{"correlation_id":"c"}'
        )
        await store.commit(0, [Unit("Trip", "t-1", accepts=(ridden,))])
    await app.stop()


async def has_timer(app: Mainspring) -> bool:
    return bool(await internals_of(app).engine.store.outputs(TRIP, timers=True, limit=1))


async def some_seconds(clock: VirtualClock, *apps: Mainspring) -> None:
    """Let 5 seconds pass, and each heart beat: by itself it may not do so in time, for time does not wait for it."""
    clock.advance(5)
    for app in apps:
        await internals_of(app).engine._renew()  # noqa: SLF001  there is no other way to let it beat now


async def unread_after_a_while(app: Mainspring, clock: VirtualClock) -> list[Unread]:
    async def look() -> list[Unread]:
        await some_seconds(clock, app)
        return await unread_of(internals_of(app).engine.store)

    return await until(look)


@pytest.mark.parametrize("change", WAITS)
def test_what_no_running_worker_knows_is_told_after_a_minute(change: Change, make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        await leave_behind(make_app(clock), change)
        async with release(make_app(clock), None) as old:
            store = internals_of(old).engine.store
            began_us = store.now_us()
            (found,) = await unread_after_a_while(old, clock)
            assert store.now_us() - began_us > 60e6
            doctor, stuck = WAITS[change]
            assert timeless(unread_told(found, store.now_us())) == f"No worker that runs {doctor}"
            (reason,) = await reasons_of(store, [TRIP])
            assert (reason.cause, timeless(reason.texts[0])) == ("unread", stuck)
            outputs = [output for timers in (False, True) for output in await store.outputs(TRIP, timers, 9)]
            assert await held_among(store, TRIP, await store.inbox(TRIP, 9), outputs) == [reason.texts[0]]
            async with release(make_app(clock), change):
                assert await unread_of(store) == []

    run(main)


def test_what_another_running_worker_takes_is_not_told(make_app: MakeApp) -> None:
    """Workers of two pools: each takes what the other does not."""

    async def work(command: Work) -> Done:
        await asyncio.Event().wait()
        return Done(command.id, command.part)

    async def main() -> None:
        clock = VirtualClock()
        far, near = (
            job(make_app(clock), work, pool="far", concurrency=1, timeout=timedelta(hours=1)) for _ in range(2)
        )
        async with near_and_far(near, far):
            store = internals_of(near).engine.store
            await near.send(Start("j-1", 5))

            # Time goes on: by it the other worker looks whether there is something for it.
            async def taken() -> int:
                await some_seconds(clock, near, far)
                return internals_of(far).engine.dispatcher.in_hand

            await until(taken)
            ends_us = store.now_us() + 90_000_000

            async def later() -> Fleet | None:
                await some_seconds(clock, near, far)
                fleet = await fleet_of(store)
                return fleet if fleet and len(fleet.known) == 2 and fleet.now_us > ends_us else None

            fleet = await until(later)
            assert any(claim.due_us < fleet.before_us for claim in await store.outputs(None, timers=False, limit=9))
            assert await unread_of(store) == []
            await far.stop(timedelta(0))
            (found,) = await unread_after_a_while(near, clock)
            assert (found.kind, found.type) == ("output", "Work")

    run(main)


@asynccontextmanager
async def near_and_far(near: Mainspring, far: Mainspring) -> AsyncGenerator[None]:
    await near.start(pools=["near"])
    await far.start(pools=["far"])
    try:
        yield
    finally:
        await near.stop()


KNOWN = Knowledge(frozenset(), {}, frozenset({"Trip"}))
ELSEWHERE = Knowledge(frozenset(), {}, frozenset({"Job"}))


def test_an_instance_is_told_when_every_worker_that_has_its_workflow_leaves_it() -> None:
    left = {TRIP: "why"}
    full = {Ref("Trip", f"t-{n}"): "why" for n in range(2, standing.MOST_TOLD + 2)}
    assert Fleet([KNOWN], [left], 0).leaves(TRIP) == "why"
    assert Fleet([KNOWN, KNOWN], [left, {}], 0).leaves(TRIP) is None
    assert Fleet([KNOWN, ELSEWHERE], [left, {}], 0).leaves(TRIP) == "why"
    assert Fleet([KNOWN, KNOWN], [left, full], 0).leaves(TRIP) == "why"
    assert Fleet([KNOWN], [{}], 0).leaves(TRIP) is None


def test_nothing_is_told_while_a_worker_runs_that_has_not_said_what_it_knows() -> None:
    async def main() -> None:
        store = MemoryStore(VirtualClock())
        assert await fleet_of(store) is None
        await store.register_worker("new", 30_000_000, knowledge.written(KNOWN))
        assert await fleet_of(store) is not None
        await store.register_worker("old", 20_000_000)
        assert await fleet_of(store) is None

    run(main)


def test_a_worker_that_knows_more_than_is_written_says_nothing() -> None:
    much = Knowledge(frozenset(map(str, range(100_000))), {}, frozenset())
    assert knowledge.written(much) == ""
    assert knowledge.read('{"destinations": 7}') is None


def test_what_is_left_to_others_is_kept_with_the_heartbeat() -> None:
    runs_nothing: Any = SimpleNamespace(by_queue={}, threads_taken=None)
    left = {Ref("Trip", f"t-{n}"): "why" for n in range(standing.MOST_TOLD + 1)}
    kept = standing.read(standing.written(standing.standing_of(runs_nothing, Hung(lambda: 0), left, {})))
    assert kept.left[0] == Left("Trip", "t-0", "why")
    assert len(kept.left) == standing.MOST_TOLD
    assert standing.written(Standing()) == ""
