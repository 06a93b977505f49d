"""Waiting for an end costs the same, however many wait and however long the stream is: counted, not timed."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from unittest.mock import patch

import pytest

from mainspring import Mainspring
from mainspring.app.internals import internals_of
from mainspring.engine.operations.pauses import FLEET
from mainspring.engine.outputs.awaited_ends import ELSEWHERE_SECONDS, EVENTS_FROM_END
from mainspring.engine.runtime import Runtime, SystemClock
from mainspring.errors import (
    DamagedRecordError,
    DoNotRetryError,
    InstanceFailedError,
    InstanceSuspendedError,
    NoSuchInstanceError,
    StoreClosedError,
    StoreUnreachableError,
    WaitTimeoutError,
)
from mainspring.port.clock import Clock
from mainspring.port.records import EventRow, Loaded, Ref
from mainspring.stores.memory import MemoryStore
from mainspring.testing.clock import VirtualClock
from tests.engine.jobs import Done, Job, Start, Work
from tests.support.running import run

DAY = timedelta(days=1)


class CountedStore(MemoryStore):
    """Counts what is read, but for the pauses: for those every process looks, whether anybody waits or not."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.looks: list[list[Ref]] = []
        self.events_read = 0
        self.damaged: Ref | None = None

    async def load(self, refs: Sequence[Ref], most: int | None = None) -> list[Loaded | None]:
        if refs != [FLEET]:
            self.looks.append(list(refs))
        if self.damaged in refs:
            raise DamagedRecordError("instances", str(self.damaged))
        return await super().load(refs, most)

    async def stream(self, ref: Ref, after: int, limit: int) -> list[EventRow]:
        rows = await super().stream(ref, after, limit)
        self.events_read += len(rows)
        return rows


async def worked(command: Work) -> Done:
    return Done(command.id, command.part)


def app_on(store: CountedStore, clock: VirtualClock) -> Mainspring:
    app = Mainspring("memory://", runtime=Runtime(clock), store=store)
    app.add(Job())
    app.handler(worked)
    return app


async def turns(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def store(clock: VirtualClock) -> CountedStore:
    return CountedStore(clock)


def test_many_who_wait_are_answered_by_one_look(store: CountedStore, clock: VirtualClock) -> None:
    many, looks = 50, 10

    async def main() -> None:
        client, worker = app_on(store, clock), app_on(store, clock)
        await client.start(work=False)
        receipts = await client.send_many([Start(f"j-{number}") for number in range(many)])
        results = asyncio.gather(*(receipt.result(timeout=DAY) for receipt in receipts))
        await turns()
        store.looks.clear()
        while len(store.looks) < looks:
            clock.advance(ELSEWHERE_SECONDS)
            before = len(store.looks)
            await turns()
            assert len(store.looks) <= before + 1, "one for all, and not one for each"
        assert {len(refs) for refs in store.looks} == {many}
        await worker.start()
        while not results.done():
            clock.advance(ELSEWHERE_SECONDS)
            await turns()
        assert len(results.result()) == many
        await client.stop()
        await worker.stop()

    run(main)


def test_those_who_are_too_many_for_one_look_take_turns(
    store: CountedStore, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mainspring.engine.outputs.awaited_ends.ASKED_AT_ONCE", 2)

    async def main() -> None:
        async with app_on(store, clock) as app:
            refs = [Ref("Job", f"j-{number}") for number in range(5)]
            for ref in refs:
                internals_of(app).engine.ends.end_of(ref)
            store.looks.clear()
            for _ in range(3):
                await internals_of(app).engine.ends.ask()
            asked = [ref for look in store.looks for ref in look]
            assert [len(look) for look in store.looks] == [2, 2, 2]
            assert set(asked) == set(refs)

    run(main)


class QueuedJob(Job):
    mode = "inbox"


def test_who_waits_in_vain_for_what_has_not_begun_is_told_so(store: CountedStore, clock: VirtualClock) -> None:
    async def main() -> None:
        app = Mainspring("memory://", runtime=Runtime(clock), store=store)
        app.add(QueuedJob())
        app.handler(worked)
        await app.start(work=False)
        second = timedelta(seconds=1)
        receipt = await app.send(Start("j-1"))
        assert receipt.status == "accepted"
        never = app.instance(QueuedJob, "j-9").result(second)
        waits = (receipt.result(second), app.request(Start("j-2"), timeout=second), never)
        waiting = asyncio.gather(*waits, return_exceptions=True)
        while not waiting.done():  # one that begins to wait later waits longer
            await turns()
            clock.advance(1)
        outcomes = waiting.result()
        assert [type(outcome) for outcome in outcomes] == [WaitTimeoutError, WaitTimeoutError, NoSuchInstanceError]
        assert "has not begun" in str(outcomes[0])
        await app.stop()

    run(main)


def test_nobody_looks_when_nobody_waits(store: CountedStore, clock: VirtualClock) -> None:
    async def main() -> None:
        app = app_on(store, clock)
        await app.start(work=False)
        receipt = await app.send(Start("j-1"))
        waiting = asyncio.ensure_future(receipt.result(timeout=timedelta(seconds=1)))
        while not waiting.done():  # as above
            await turns()
            clock.advance(1)
        with pytest.raises(WaitTimeoutError):
            await waiting
        await turns()
        store.looks.clear()
        for _ in range(10):
            clock.advance(ELSEWHERE_SECONDS)
            await turns()
        assert len(store.looks) <= 1, "the one that was under way"
        await app.stop()

    run(main)


def test_the_result_of_a_long_stream_is_read_from_its_end(store: CountedStore, clock: VirtualClock) -> None:
    async def main() -> None:
        async with app_on(store, clock) as app:
            await (await app.send(Start("j-1", times=1_000))).result(timeout=DAY)
        later = app_on(store, clock)
        await later.start(work=False)
        store.events_read = 0
        await later.instance(Job, "j-1").result()
        assert 0 < store.events_read <= EVENTS_FROM_END
        await later.stop()

    run(main)


def test_one_that_cannot_be_read_does_not_keep_the_others_waiting(store: CountedStore, clock: VirtualClock) -> None:
    async def main() -> None:
        async with app_on(store, clock) as app:
            await (await app.send(Start("j-1"))).result(timeout=DAY)
            damaged, fine = (
                internals_of(app).engine.ends.end_of(Ref("Job", "j-0")),
                internals_of(app).engine.ends.end_of(Ref("Job", "j-1")),
            )
            store.damaged = Ref("Job", "j-0")
            await internals_of(app).engine.ends.ask()
            assert fine.result().status == "completed"
            assert isinstance(damaged.exception(), DamagedRecordError)

    run(main)


def test_a_stop_tells_those_who_wait(store: CountedStore, clock: VirtualClock) -> None:
    async def main() -> None:
        app = app_on(store, clock)
        await app.start(work=False)
        receipt = await app.send(Start("j-1"))
        waiting = asyncio.ensure_future(receipt.result(timeout=DAY))
        await turns()
        await app.stop()
        with pytest.raises(StoreClosedError):
            await waiting

    run(main)


def test_an_end_by_an_operator_elsewhere_is_heard_of(store: CountedStore, clock: VirtualClock) -> None:
    async def main() -> None:
        client, operator = app_on(store, clock), app_on(store, clock)
        await client.start(work=False)
        await operator.start(work=False)
        receipt = await client.send(Start("j-1"))
        waiting = asyncio.ensure_future(receipt.result(timeout=DAY))
        await turns()
        await operator.instance(Job, "j-1").terminate()
        clock.advance(ELSEWHERE_SECONDS)
        with pytest.raises(InstanceFailedError, match="terminated"):
            await waiting
        await client.stop()
        await operator.stop()

    run(main)


def test_an_end_elsewhere_that_no_look_has_found_is_found_when_the_time_is_up(
    store: CountedStore, clock: VirtualClock
) -> None:
    async def main() -> None:
        client, worker = app_on(store, clock), app_on(store, clock)
        await client.start(work=False)
        receipt = await client.send(Start("j-1"))
        waiting = asyncio.ensure_future(receipt.result(timeout=timedelta(seconds=ELSEWHERE_SECONDS / 2)))
        await turns()
        await worker.start()
        await worker.instance(Job, "j-1").result(timeout=DAY)
        assert not waiting.done()
        clock.advance(ELSEWHERE_SECONDS / 2)
        await waiting
        await client.stop()
        await worker.stop()

    run(main)


def test_who_waits_for_one_that_is_suspended_hears_it_at_once(store: CountedStore, clock: VirtualClock) -> None:
    async def refused(command: Work) -> Done:
        raise DoNotRetryError(f"there is no part {command.part}")

    async def main() -> None:
        app = Mainspring("memory://", runtime=Runtime(clock), store=store)
        app.add(Job())
        app.handler(refused)
        async with app:
            receipt = await app.send(Start("j-1"))
            for _ in range(2):  # while it becomes so, and when it is so
                with pytest.raises(
                    InstanceSuspendedError, match=r"Job/j-1 is suspended: .* there is no part 0"
                ) as told:
                    await receipt.result(timeout=DAY)
                assert told.value.instance == "Job/j-1"

    run(main)


def test_who_waits_for_one_that_an_operator_suspends_hears_it_at_once_and_elsewhere_soon(
    store: CountedStore, clock: VirtualClock
) -> None:
    async def main() -> None:
        client, operator = app_on(store, clock), app_on(store, clock)
        await client.start(work=False)
        await operator.start(work=False)
        await client.send(Start("j-1"))
        here, there = (
            asyncio.ensure_future(app.instance(Job, "j-1").result(timeout=DAY)) for app in (operator, client)
        )
        await turns()
        await operator.instance(Job, "j-1").suspend("for a look")
        with pytest.raises(InstanceSuspendedError, match="for a look"):
            await here
        assert not there.done()
        clock.advance(ELSEWHERE_SECONDS)
        with pytest.raises(InstanceSuspendedError, match="for a look"):
            await there
        await client.stop()
        await operator.stop()

    run(main)


def test_who_stopped_waiting_for_a_reason_of_its_own_leaves_no_error_behind(
    store: CountedStore, clock: VirtualClock
) -> None:
    async def main() -> None:
        left_behind: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: left_behind.append(context))
        async with app_on(store, clock) as app:

            async def fail(*_: object) -> list[Loaded | None]:
                internals_of(app).engine.ends.fail(
                    StoreUnreachableError("memory:", "is away")
                )  # the look for all, meanwhile
                raise StoreUnreachableError("memory:", "is away")

            # Whoever keeps the error keeps what was waited for: here nobody does.
            with patch.object(store, "load", fail), suppress(StoreUnreachableError):
                await app.instance(Job, "j-1").result()
            gc.collect()
            assert left_behind == []

    run(main)


class OwnSleep(SystemClock):
    """The machine's clock, but for its sleep."""

    async def sleep(self, seconds: float) -> None:
        await super().sleep(0)


def test_who_waits_by_a_clock_that_sleeps_otherwise_sleeps_as_it_does() -> None:
    async def main() -> None:
        future = asyncio.get_running_loop().create_future()
        async with asyncio.timeout(30):
            assert not await Runtime(OwnSleep()).wait(future, DAY.total_seconds())

    asyncio.run(main())


def test_who_waits_by_the_machines_clock_waits_so_long_at_most_and_ends_nothing() -> None:
    async def main() -> None:
        runtime, future = Runtime(), asyncio.get_running_loop().create_future()
        assert not await runtime.wait(future, 0.001)
        future.set_result("done")  # it was not cancelled: whoever waits on may hear it still
        assert await runtime.wait(future, DAY.total_seconds())

    asyncio.run(main())
