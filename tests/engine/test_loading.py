"""A lane is loaded by one answer, and never over what it does meanwhile."""

import asyncio
from typing import Any

import pytest

from mainspring import Mainspring
from mainspring.app.internals import internals_of
from mainspring.codec import Codec
from mainspring.core.messages import Kind
from mainspring.engine.inputs.pending import Pending
from mainspring.engine.registry import WorkflowEntry
from mainspring.engine.runtime import Runtime, SystemClock
from mainspring.engine.stepping import loader as loading
from mainspring.engine.stepping.lanes import Lane, Phase
from mainspring.engine.stepping.loader import Loader
from mainspring.errors import StoreError, StoreUnreachableError, WorkersLostError
from mainspring.port.records import Context, InstanceRow, Ref
from mainspring.stores.memory import MemoryStore
from tests.engine.shop import Charge, Note, PlaceOrder, Ship, Shop
from tests.support.running import run
from tests.support.waiting import until


def lost(id: str, entry: WorkflowEntry) -> Lane:
    """Return the lane of an instance whose input took its workers down."""
    lane = Lane(Ref("Shop", id), entry, 0)
    error = WorkersLostError(f"an input of {lane.ref}", 5)
    lane.queue.append(Pending(lane.ref, None, "Note", 1, b"{}", "m-1", Kind.COMMAND, Context("c"), 0, unreadable=error))
    return lane


async def no_lull() -> None:
    """Go on at once."""


@pytest.mark.parametrize("error", [StoreError("the store", "is slow", "Try again."), ValueError("planted")])
def test_a_lane_that_was_given_up_is_not_read_because_its_neighbours_load_failed(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(loading, "PAUSE_AFTER_STORE_ERROR_SECONDS", 0.0)
    asked: list[str] = []

    async def row_alone(_: Any, ref: Ref) -> InstanceRow:
        asked.append(ref.id)
        if asked == ["a", "a", "b"]:
            raise error
        return InstanceRow(7, "Shop", ref.id, 3, "running", "New", None, 1, b"{}", 0, 0)

    monkeypatch.setattr(loading, "row_alone", row_alone)

    async def main() -> None:
        runtime, entry, ready = Runtime(), WorkflowEntry(Shop(), Codec()), list[str]()
        loader = Loader(MemoryStore(SystemClock()), runtime, lambda lane: ready.append(lane.ref.id), no_lull)
        first, second = lost("a", entry), lost("b", entry)
        loader.request(first)
        loader.request(second)
        await until(lambda: not loader.loads(first) and not loader.loads(second))
        await runtime.cancel_tasks()
        assert ready == ["a", "b"], "each has its answer once"
        assert (first.phase, second.phase) == (Phase.OPEN, Phase.OPEN)

    run(main)


def test_a_lane_whose_answer_is_on_its_way_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        store, runtime, ready = MemoryStore(SystemClock()), Runtime(), list[str]()
        loads, answer, load = list[list[Ref]](), asyncio.Event(), store.load

        async def slow(refs: list[Ref], *more: Any) -> Any:
            loads.append(list(refs))
            await answer.wait()
            return await load(refs, *more)

        monkeypatch.setattr(store, "load", slow)
        loader = Loader(store, runtime, lambda lane: ready.append(lane.ref.id), no_lull)
        lane = Lane(Ref("Shop", "a"), WorkflowEntry(Shop(), Codec()), 0)
        loader.request(lane)
        await until(lambda: loads)
        lane.phase = Phase.BROKEN  # a commit was refused, and what was under way has come back
        loader.request(lane)
        answer.set()
        await until(lambda: ready)
        assert (loads, ready, lane.phase) == ([[lane.ref]], ["a"], Phase.OPEN)
        await runtime.cancel_tasks()

    run(main)


def test_a_lane_whose_answer_is_on_its_way_is_not_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the answer would fill a lane beside the one in which the instance goes on by then."""
    monkeypatch.setattr(loading, "PAUSE_AFTER_STORE_ERROR_SECONDS", 0.0)

    async def main() -> None:
        app = Mainspring("memory://")
        app.add(Shop())
        app.external(Charge, Ship)
        async with app:
            store, lanes, ref = (
                internals_of(app).engine.store,
                internals_of(app).engine.stepper.lanes,
                Ref("Shop", "o-1"),
            )
            away = StoreUnreachableError("the store", "planted")
            loads, commits, commit, load = list[int](), asyncio.Event(), store.commit, store.load
            may_load = asyncio.Event()

            async def refused(worker: int, units: Any) -> Any:
                if all(not unit.dead_letters for unit in units):
                    return await commit(worker, units)
                await commits.wait()
                raise away

            async def unreachable(refs: Any, *more: Any) -> Any:
                if ref not in refs:
                    return await load(refs, *more)  # of what is paused, for instance
                loads.append(len(refs))
                if len(loads) == 2:
                    raise away
                if len(loads) > 2:
                    await may_load.wait()
                return await load(refs, *more)

            monkeypatch.setattr(store, "commit", refused)
            monkeypatch.setattr(store, "load", unreachable)
            # There is no such instance: it is to be a dead letter, and the commit of that is under way.
            unknown = asyncio.create_task(app.send(Note("o-1", "first")))
            await until(lambda: loads == [1] and (lane := lanes.get(ref)) is not None and lane.under_way == 1)
            with pytest.raises(StoreUnreachableError):
                await app.send(Note("o-1", "second"))  # read anew, in vain: nobody waits, and it is read once more
            await until(lambda: len(loads) == 3)
            lane = lanes.get(ref)
            commits.set()
            with pytest.raises(StoreUnreachableError):
                await unknown
            assert lane is not None
            assert lanes.get(ref) is lane
            placed = asyncio.create_task(app.send(PlaceOrder("o-1")))
            may_load.set()
            assert (await placed).status == "stepped"
            assert (lanes.get(ref), lane.version > 0) == (lane, True)

    run(main)
