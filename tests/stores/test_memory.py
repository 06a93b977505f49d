"""The memory store keeps the port's contract; its wake-ups are its own."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from mainspring.port.records import Committed, Unit
from mainspring.stores.memory import MemoryStore
from mainspring.testing.clock import VirtualClock
from mainspring.testing.store_contract import StoreContract
from mainspring.testing.store_contract.rig import accept, send, step
from tests.proof.counted_work.calls import counted_calls


class TestMemoryStore(StoreContract):
    durable = False
    second_handle = False

    def make_store(self, clock: VirtualClock, tmp_path: Path) -> MemoryStore:
        return MemoryStore(clock)


# More than a wake-up takes; time is virtual here, and passes for nobody.
TURNS = 20


def ends_at_once(*units: Unit, worker: int = 1, before: Sequence[Unit] = ()) -> bool:
    """Return True if somebody who waits for work is woken by a commit; `before` was committed before the wait."""

    async def body() -> bool:
        store = MemoryStore(VirtualClock())
        await store.open()
        await store.register_worker("first", 1_000_000)
        await store.commit(worker, before)
        waiting = asyncio.create_task(store.wait_for_work(3_600))
        await asyncio.sleep(0)
        await store.commit(worker, units)
        for _ in range(TURNS):
            await asyncio.sleep(0)
        done = waiting.done()
        waiting.cancel()
        return done

    return asyncio.run(body())


@pytest.mark.parametrize("unit", [accept("w-1"), step("m-1", send())], ids=["input", "output"])
def test_new_work_wakes_who_waits_for_it(unit: Unit) -> None:
    assert ends_at_once(unit)


@pytest.mark.parametrize(
    "unit", [accept("w-1", claimed=True), step("m-1", send(claimed=True))], ids=["input", "output"]
)
def test_work_that_its_worker_takes_at_once_wakes_nobody(unit: Unit) -> None:
    assert not ends_at_once(unit)


def test_resuming_an_instance_wakes_who_waits() -> None:
    suspended = (step("m-1", status="suspended"), accept("w-1", claimed=True))
    resumed = Unit("Orders", "o-1", expected_version=2)

    assert not ends_at_once(*suspended)
    assert ends_at_once(resumed, before=suspended)


def test_an_end_costs_the_same_however_much_waits_for_others() -> None:
    async def calls_of_an_end(others: int) -> int:
        store = MemoryStore(VirtualClock())
        waiting = [step(f"m-{number}", send(), on=f"o-{number}") for number in range(others)]
        await store.commit(1, waiting)
        with counted_calls("stores/memory") as calls:
            ends = step("the end", after=3, on="o-0", status="completed", cancel_all="unclaimed")
            (outcome,) = await store.commit(1, [ends])
        assert isinstance(outcome, Committed), outcome
        assert (await store.stats()).outbox == others - 1
        return calls.total()

    assert asyncio.run(calls_of_an_end(others=100)) == asyncio.run(calls_of_an_end(others=10))


def test_work_that_came_before_the_wait_is_not_missed() -> None:
    async def body() -> None:
        store = MemoryStore(VirtualClock())
        await store.commit(1, [accept("w-1")])
        await asyncio.wait_for(store.wait_for_work(3_600), timeout=60)

    asyncio.run(body())


def test_sleepers_wake_in_the_order_of_their_time() -> None:
    clock = VirtualClock()
    woken: list[str] = []

    async def sleeper(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(name)

    async def body() -> None:
        async with asyncio.TaskGroup() as tasks:
            for name, seconds in [("late", 3), ("soon", 1), ("twin", 1), ("now", 0)]:
                tasks.create_task(sleeper(name, seconds))
            await asyncio.sleep(0)
            clock.advance(5)

    asyncio.run(body())
    assert woken == ["now", "soon", "twin", "late"]


def test_a_sleeper_is_not_woken_early() -> None:
    async def body() -> None:
        clock = VirtualClock()
        sleeping = asyncio.create_task(clock.sleep(1))
        await asyncio.sleep(0)
        clock.advance(0.999_999)
        await asyncio.sleep(0)
        assert not sleeping.done()
        sleeping.cancel()

    asyncio.run(body())


def test_a_cancelled_sleeper_is_forgotten() -> None:
    async def body() -> None:
        clock = VirtualClock()
        sleeping = asyncio.create_task(clock.sleep(1))
        await asyncio.sleep(0)
        assert clock.next_us == clock.now_us() + 1_000_000
        sleeping.cancel()
        await asyncio.wait({sleeping})
        assert clock.next_us is None

    asyncio.run(body())
