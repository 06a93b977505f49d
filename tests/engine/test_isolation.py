"""A busy or an enormous instance takes no more than its share: counted in commits and turns, not in seconds."""

import asyncio
import gc
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from mainspring import Mainspring, Received, Retry
from mainspring.app.internals import internals_of
from mainspring.codec import Codec
from mainspring.engine.committing.committer import (
    BATCHES_PER_LULL,
    BATCHES_TO_BE_ALONE,
    UNITS_BESIDE_OTHERS,
    UNITS_PER_BATCH,
    UNITS_PER_INSTANCE,
    Committer,
    _shares,
)
from mainspring.engine.inputs import long_streams
from mainspring.engine.inputs.intake import INPUTS_PER_TURN
from mainspring.engine.inputs.long_streams import EVENTS_AT_ONCE
from mainspring.engine.registry import WorkflowEntry
from mainspring.engine.runtime import Runtime, SystemClock
from mainspring.engine.stepping.lanes import Lanes, Phase
from mainspring.engine.stepping.stepper import SHARES_UNDER_WAY
from mainspring.engine.this_worker import ThisWorker
from mainspring.port.records import Committed, EventRow, Outcome, Ref, Unit
from mainspring.stores.memory import MemoryStore
from mainspring.testing.clock import VirtualClock
from tests.engine.jobs import Done, Start, Work, job
from tests.engine.shop import Break, Charge, Note, PlaceOrder, Ship, Shop
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until

BURST = 2 * UNITS_PER_BATCH
LONG = 3 * EVENTS_AT_ONCE


class Unsnapped(Shop):
    """A shop whose states are folded from the first event on."""

    snapshot_every = None


class SlowStore(MemoryStore):
    """One whose commits take a turn of the event loop."""

    async def commit(self, worker: int, units: Sequence[Unit]) -> list[Outcome]:
        await asyncio.sleep(0)
        return await super().commit(worker, units)


def shop(app: Mainspring, workflow: Shop | None = None) -> Mainspring:
    app.add(workflow or Shop())
    app.external(Charge, Ship)
    return app


# ---- a hot one


def test_a_neighbour_does_not_wait_for_a_whole_burst(make_app: MakeApp) -> None:
    async def body() -> None:
        async with shop(make_app()) as app:
            for order in ("hot", "cool"):
                await app.send(PlaceOrder(order))
            burst = asyncio.create_task(app.send_many([Note("hot", str(n)) for n in range(BURST)]))
            lane = internals_of(app).engine.stepper.lanes.get(Ref("Shop", "hot"))
            assert lane is not None
            # Until much of it waits; a store in memory is too quick for that.
            while len(lane.queue) < 2 * UNITS_PER_INSTANCE and not burst.done():  # noqa: ASYNC110  turns are counted
                await asyncio.sleep(0)
            before = internals_of(app).engine.committer.committed
            await app.send(Note("cool", "me too"))
            # The batch that was under way, the one with the neighbour, and the next, which is sent before the answer.
            assert (
                internals_of(app).engine.committer.committed - before
                <= UNITS_PER_INSTANCE + 2 * UNITS_BESIDE_OTHERS + 1
            )
            await burst
            assert _notes(await app.instance(Shop, "hot").stream()) == [str(n) for n in range(BURST)]

    run(body)


def test_a_burst_leaves_turns_to_others_and_no_more_than_two_commits_of_it_wait(make_app: MakeApp) -> None:
    async def body() -> None:
        async with shop(make_app()) as app:
            await app.send(PlaceOrder("hot"))
            lane = internals_of(app).engine.stepper.lanes.get(Ref("Shop", "hot"))
            assert lane is not None
            burst = asyncio.create_task(app.send_many([Note("hot", str(n)) for n in range(BURST)]))
            turns = most = 0
            while not burst.done():
                turns += 1
                most = max(most, lane.under_way)
                await asyncio.sleep(0)
            assert turns >= 2 * BURST / INPUTS_PER_TURN  # they get their envelopes, and then are submitted
            assert 0 < most <= SHARES_UNDER_WAY * UNITS_PER_INSTANCE

    run(body)


def _notes(stream: Sequence[Any]) -> list[str]:
    events = (entry.event for entry in stream)
    return [event.message.text for event in events if isinstance(event, Received) and isinstance(event.message, Note)]


def test_a_batch_has_no_more_of_one_instance_than_its_share() -> None:
    hot = [Unit("W", "hot", consumes=n) for n in range(2 * UNITS_PER_BATCH)]
    cool = [Unit("W", f"cool-{n}") for n in range(50)]
    assert _shares([*hot, *cool], 32) == [*range(32), *range(len(hot), len(hot) + len(cool))]
    assert _shares([Unit("W", str(n)) for n in range(2 * UNITS_PER_BATCH)], 32) == list(range(UNITS_PER_BATCH))
    assert _shares([Unit("", "") for _ in range(50)], 32) == list(range(50)), "nobody's have no share"


def test_the_share_of_an_instance_is_smaller_while_others_commit_too() -> None:
    async def body() -> None:
        committer = Committer(MemoryStore(SystemClock()), Runtime(), ThisWorker())
        hot, cool = Unit("W", "hot", releases=(1,)), Unit("W", "cool", releases=(1,))
        await committer.commit(hot)
        assert committer.share == UNITS_PER_INSTANCE
        await asyncio.gather(committer.commit(hot), committer.commit(cool))
        for _ in range(BATCHES_TO_BE_ALONE):
            assert committer.share == UNITS_BESIDE_OTHERS
            await committer.commit(hot)
        assert committer.share == UNITS_PER_INSTANCE
        committer.close()

    run(body)


def test_a_commit_leaves_nothing_to_the_garbage_collector(make_app: MakeApp) -> None:
    async def body() -> None:
        async with shop(make_app()) as app:
            await app.send(PlaceOrder("o-1"))
            gc.collect()
            gc.disable()  # what it finds and frees is what nobody else would have freed
            try:
                for n in range(100):
                    await app.send(Note("o-1", str(n)))
                assert gc.collect() < 100
            finally:
                gc.enable()

    run(body)


# ---- a poisoned one


@pytest.fixture
def nobody_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no claim begin by itself: a slow machine would have time for many."""
    monkeypatch.setattr("mainspring.engine.claiming.claimer.POLL_SECONDS", 3_600)


@pytest.mark.usefixtures("nobody_polls")
def test_an_input_that_waits_for_a_suspended_one_wakes_nobody_at_each_commit(make_app: MakeApp) -> None:
    async def body() -> None:
        async with shop(make_app()) as app:
            await app.send_many([PlaceOrder("poisoned"), PlaceOrder("cool")])
            await app.send(Break("poisoned"))
            await app.send(Note("poisoned", "behind it"))
            assert (await app.instance(Shop, "poisoned").row()).status == "suspended"
            await until(lambda: internals_of(app).engine.claimer.idle and internals_of(app).engine.committer.idle)
            before = internals_of(app).engine.claimer.rounds
            for n in range(50):
                await app.send(Note("cool", str(n)))
            assert internals_of(app).engine.claimer.rounds - before < 10

    run(body)


@pytest.mark.usefixtures("nobody_polls")
def test_a_command_that_is_tried_again_later_wakes_nobody_before(make_app: MakeApp) -> None:
    async def body() -> None:
        clock, tried = VirtualClock(), 0

        async def work(command: Work) -> Done:
            nonlocal tried
            tried += 1
            raise ConnectionError("down")

        retry = Retry(max_attempts=9, first=timedelta(hours=1), cap=timedelta(hours=1))
        async with job(make_app(clock), work, retry=retry, breaker=None) as app:
            before = internals_of(app).engine.claimer.rounds
            for n in range(30):
                await app.send(Start(f"j-{n}"))
            await until(lambda: tried == 30 and internals_of(app).engine.committer.idle)
            assert internals_of(app).engine.claimer.rounds - before < 10

    run(body)


def test_idle_lanes_are_not_walked_over_to_find_the_busy_ones() -> None:
    lanes, entry = Lanes(), WorkflowEntry(Shop(), Codec())
    for n in range(100):
        lanes.at(Ref("Shop", str(n)), entry)
    lanes.at(Ref("Shop", "7"), entry).phase = Phase.LOADING
    assert [lane.ref.id for lane in lanes.busy()] == ["7"]
    assert len(lanes._touched) == 1  # noqa: SLF001
    lanes.at(Ref("Shop", "7"), entry).phase = Phase.OPEN
    lanes.at(Ref("Shop", "8"), entry).under_way = 1
    assert [lane.ref.id for lane in lanes.busy()] == ["8"]


# ---- an enormous one


def test_work_that_can_wait_waits_for_a_lull_but_not_for_ever() -> None:
    async def body() -> None:
        committer = Committer(SlowStore(SystemClock()), Runtime(), ThisWorker())
        unit = Unit("W", "i", releases=(1,))
        await committer.lull()  # nothing is under way
        committer.add(unit, lambda _: None)
        await committer.lull()
        assert committer.idle
        assert committer.batches == 1

        def again(_: object) -> None:
            committer.add(unit, again)

        again(None)
        before = committer.batches
        await committer.lull()
        assert not committer.idle
        # The next one is sent before the last is reported.
        assert committer.batches - before <= BATCHES_PER_LULL + 1
        committer.close()

    run(body)


def test_nobody_waits_for_a_lull_when_no_commit_comes_back(tmp_path: Path) -> None:
    """SQLite has one writer: what a handler does in a transaction must not wait for commits that wait for its end."""

    async def body() -> None:
        async with shop(Mainspring(f"sqlite:///{tmp_path / 'test.db'}"), Unsnapped()) as app:
            await app.send_many([PlaceOrder("enormous"), PlaceOrder("cool")])
            await app.send_many([Note("enormous", str(n)) for n in range(LONG)])
            loan = await internals_of(app).engine.store.lend(internals_of(app).engine.committer.worker, 8.0)
            behind_it = asyncio.create_task(app.send(Note("cool", "I wait for the loan")))
            await until(lambda: not internals_of(app).engine.committer.idle)
            await app.instance(Unsnapped, "enormous").state()
            assert not behind_it.done()  # else the loan had to end first
            assert isinstance(await loan.commit(Unit("", "")), Committed)
            assert (await behind_it).status == "stepped"

    run(body)


def test_nobody_waits_for_a_lull_of_a_committer_that_was_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mainspring.engine.committing.committer.LULL_SECONDS", 3_600)

    async def body() -> None:
        never, runtime = asyncio.Event(), Runtime()
        store = MemoryStore(SystemClock())
        monkeypatch.setattr(store, "commit", lambda *_: never.wait())
        stuck = Committer(store, runtime, ThisWorker())
        stuck.add(Unit("W", "i", releases=(1,)), lambda _: None)
        waiting = asyncio.create_task(stuck.lull())
        await asyncio.sleep(0)
        assert not waiting.done()
        await runtime.cancel_tasks()
        await waiting

    run(body)


def test_what_an_operator_does_to_a_long_stream_reads_it_in_pieces(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body() -> None:
        async with shop(make_app()) as app:
            await app.send(PlaceOrder("enormous"))
            await app.send_many([Note("enormous", str(n)) for n in range(LONG)])
            instance = app.instance(Shop, "enormous")
            await instance.suspend()
            store, stream, limits, lulls = (
                internals_of(app).engine.store,
                internals_of(app).engine.store.stream,
                list[int](),
                0,
            )

            async def read(ref: Ref, after: int, limit: int) -> list[EventRow]:
                limits.append(limit)
                return await stream(ref, after, limit)

            async def lull() -> None:
                nonlocal lulls
                lulls += 1

            monkeypatch.setattr(store, "stream", read)
            monkeypatch.setattr(internals_of(app).engine.committer, "lull", lull)
            await instance.resume()
            assert max(limits) == EVENTS_AT_ONCE
            assert lulls == LONG // EVENTS_AT_ONCE
            assert (await instance.row()).status == "running"

    run(body)


def test_an_operator_reaches_a_long_stream_that_goes_on_in_every_lull(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body() -> None:
        async with shop(make_app()) as app:
            await app.send(PlaceOrder("enormous"))
            await app.send_many([Note("enormous", str(n)) for n in range(LONG)])

            async def lull() -> None:
                await app.send(Note("enormous", "meanwhile"))

            monkeypatch.setattr(internals_of(app).engine.committer, "lull", lull)
            await app.instance(Shop, "enormous").cancel()
            assert (await app.instance(Shop, "enormous").row()).status == "cancelled"

    run(body)


def test_a_long_stream_is_folded_in_pieces_while_others_are_loaded(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces: list[int] = []
    took, all_pieces = long_streams._take, asyncio.Event()  # noqa: SLF001  its calls are counted

    def take(folded: Any, entry: Any, ref: Any, page: list[EventRow]) -> None:
        pieces.append(len(page))
        took(folded, entry, ref, page)

    async def body() -> None:
        async with shop(make_app(), Unsnapped()) as app:
            for order in ("enormous", "cool"):
                await app.send(PlaceOrder(order))
            await app.send_many([Note("enormous", str(n)) for n in range(LONG)])
        async with shop(make_app(), Unsnapped()) as app:
            store, stream = internals_of(app).engine.store, internals_of(app).engine.store.stream

            async def held(ref: Ref, after: int, limit: int) -> list[EventRow]:
                await all_pieces.wait()
                return await stream(ref, after, limit)

            monkeypatch.setattr(long_streams, "_take", take)
            monkeypatch.setattr(store, "stream", held)
            enormous = asyncio.create_task(app.send(Note("enormous", "last")))
            await asyncio.sleep(0)
            await app.send(Note("cool", "I do not wait"))
            assert not enormous.done()
            all_pieces.set()
            assert (await enormous).status == "stepped"
            assert max(pieces) == EVENTS_AT_ONCE
            assert sum(pieces) > LONG
            [whole] = await store.load([Ref("Unsnapped", "enormous")])
            assert whole is not None
            at_once, _ = long_streams.state_of(internals_of(app).registry.workflows["Unsnapped"], whole)
            assert await app.instance(Unsnapped, "enormous").state() == at_once
            notes = _notes(await app.instance(Unsnapped, "enormous").stream())
            assert notes == [*(str(n) for n in range(LONG)), "last"]

    run(body)
