"""Whatever fails, and wherever the process dies: everything is done, or everything is undone, or a letter names it."""

import asyncio
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mainspring import Mainspring
from mainspring.app.internals import internals_of
from mainspring.engine.runtime import SystemClock
from mainspring.errors import InstanceFailedError, StoreUnreachableError
from mainspring.port.records import Unit
from mainspring.port.store import Store
from mainspring.stores import open_store
from mainspring.stores.memory import MemoryStore
from tests.engine.coordination.trips import STEPS, PlanTrip, Trip, World
from tests.support.running import run
from tests.support.waiting import until

When = Literal["before", "after"]


class MortalStore:
    """A store whose process dies at a commit: before it is made, or after it and before anybody learns of it."""

    def __init__(self, store: Store, at: int, when: When) -> None:
        self._store = store
        self._left = at
        self._when = when
        self.died = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def commit(self, worker: int, units: list[Unit]) -> Any:
        self._left -= 1
        if self._left == 0 and self._when == "after":
            await self._store.commit(worker, units)
        if self._left <= 0:
            self.died.set()
            raise StoreUnreachableError("mortal", "it died")
        return await self._store.commit(worker, units)


def trip(world: World, store: Any) -> Mainspring:
    app = Mainspring("memory://", store=store)
    app.add(Trip())
    world.connect(app)
    return app


async def until_death(world: World, store: Store, at: int, when: When) -> bool:
    """Plan a trip in a process that dies at a commit. Return whether it lived to see the end."""
    mortal = MortalStore(store, at, when)
    app = trip(world, mortal)
    await app.start()
    sending = asyncio.ensure_future(app.send(PlanTrip("t-1", STEPS[:4]), id="m-1"))
    ended = internals_of(app).engine.ends.end_of(app.instance(Trip, "t-1")._ref)  # noqa: SLF001
    dying = asyncio.ensure_future(mortal.died.wait())
    await asyncio.wait((ended, dying), return_when=asyncio.FIRST_COMPLETED)
    # Killed: nothing of it goes on, and the next one to look finds its worker dead.
    await internals_of(app).engine.runtime.cancel_tasks()
    internals_of(app).engine.committer.close()
    for task in (sending, dying):
        task.cancel()
    await asyncio.gather(sending, dying, return_exceptions=True)
    await store.release_worker(internals_of(app).engine.committer.worker)
    return not mortal.died.is_set()


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_process_that_dies_at_any_commit_leaves_nothing_half_undone(kind: str, when: When, tmp_path: Path) -> None:
    async def life(at: int) -> bool:
        world = World(plans={("book", "tour"): ["refused"]})
        url = f"sqlite:///{tmp_path / f'{at}.db'}"
        store: Store = MemoryStore(SystemClock()) if kind == "memory" else open_store(url, SystemClock())
        if kind == "sqlite":
            await store.open()
        lived = await until_death(world, store, at, when)
        if kind == "sqlite":
            await store.close()
            store = open_store(url, SystemClock())
        async with trip(world, store) as app:
            await app.send(PlanTrip("t-1", STEPS[:4]), id="m-1")
            with pytest.raises(InstanceFailedError, match="no tour"):
                await app.instance(Trip, "t-1").result()
            assert world.effects == [*booked(STEPS[:3]), *cancelled(STEPS[2::-1])]
            assert await app.dead_letters() == []
            assert await app.instance(Trip, "t-1").outputs() == []
        return lived

    async def main() -> None:
        for at in range(1, 60):
            if await life(at):
                assert at > 8, "there were fewer commits than steps"
                return
        raise AssertionError("it never lived")

    run(main)


def booked(steps: tuple[str, ...]) -> list[str]:
    return [f"book {step}" for step in steps]


def cancelled(steps: tuple[str, ...]) -> list[str]:
    return [f"cancel {step}" for step in steps]


turns = st.lists(st.sampled_from(["done", "refused", "broken", "lost"]), max_size=4)
plans = st.dictionaries(st.tuples(st.sampled_from(["book", "cancel"]), st.sampled_from(STEPS)), turns)


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(plans, st.booleans())
def test_random_failures_leave_all_done_or_all_undone_or_a_named_letter(
    plans: dict[tuple[str, str], list[str]], twice: bool
) -> None:
    world = World(plans={place: list(plan) for place, plan in plans.items()})

    async def main() -> None:
        async with trip(world, MemoryStore(SystemClock())) as app:
            receipt = await app.send(PlanTrip("t-1"), id="m-1")
            if twice:
                await app.send(PlanTrip("t-1"), id="m-1")
            while await rests(receipt) == "suspended":
                await check_named_letter(app, receipt, world)
            check_end(world, (await receipt.row()).status, await undone_steps(receipt))

    run(main)


async def rests(receipt: Any) -> str:
    async def at_rest() -> bool:
        return (await receipt.row()).status in ("completed", "failed", "suspended")

    await until(at_rest)
    return (await receipt.row()).status


async def check_named_letter(app: Mainspring, receipt: Any, world: World) -> None:
    """A compensation failed for good: its letter and the error name what remains; it is retried until it is done."""
    letter = (await app.dead_letters())[-1]
    assert letter.type == "CancelBooking"
    error = (await receipt.row()).error
    left = [step for step in await undone_steps(receipt) if f"cancel {step}" not in world.effects]
    assert error.count("CancelBooking") >= len(left)
    assert world.booked <= set(await undone_steps(receipt))
    await app.retry_dead_letter(letter.id)


async def undone_steps(receipt: Any) -> list[str]:
    """Return the steps that have to be undone, the latest first: all sent ones that are not known to have failed."""
    steps: list[str] = []
    for entry in await receipt.stream():
        event: Any = entry.event
        if type(event).__name__ == "Sent" and event.compensate is not None:
            steps.insert(0, event.message.step)
        elif getattr(getattr(event, "message", None), "definite", False):
            steps.pop(0)
    return steps


def check_end(world: World, status: str, steps: list[str]) -> None:
    cancels = [effect for effect in world.effects if effect.startswith("cancel")]
    if status == "completed":
        assert world.booked == set(STEPS)
        assert cancels == []
    else:
        assert world.booked == set()
        assert cancels == cancelled(tuple(steps))
    assert len(set(world.effects)) == len(world.effects)
