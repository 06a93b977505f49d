"""What goes wrong with one instance or one handler stays there."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from mainspring import Decisions, Event, Mainspring, Workflow
from mainspring.app.internals import internals_of
from mainspring.engine.engine import LEASE_SECONDS
from mainspring.engine.recording.stored_values import encode_context
from mainspring.engine.runtime import Runtime
from mainspring.errors import DamagedRecordError, StoreError
from mainspring.port.records import Context, InputRow, InstanceFilter, Ref, Unit
from mainspring.stores.memory import MemoryStore
from mainspring.testing.clock import VirtualClock
from tests.engine.jobs import Done, Job, Start, Work, job, look_for_work
from tests.engine.shop import Break, Input, Note, Output, PlaceOrder, Shop, State
from tests.engine.test_stepping import closed_shop
from tests.engine.test_timers import settle
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until


class Fragile(Shop):
    name = "Shop"

    def decide(self, message: Any, state: Any) -> Any:
        raise RuntimeError("not today")


def test_a_damaged_record_blocks_its_own_instance_only(make_app: MakeApp, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with closed_shop(make_app()) as app:
            await app.send_many([PlaceOrder("o-1"), PlaceOrder("o-2")])
        async with closed_shop(make_app()) as app:
            load = internals_of(app).engine.store.load

            async def damaged(refs: list[Ref], most: int | None = None) -> Any:
                if Ref("Shop", "o-1") in refs:
                    raise DamagedRecordError("events", "Shop/o-1, version 2")
                return await load(refs, most)

            monkeypatch.setattr(internals_of(app).engine.store, "load", damaged)
            first, second = await asyncio.gather(app.send(Note("o-1", "a")), app.send(Note("o-2", "b")))
            assert (first.status, second.status) == ("suspended", "stepped")
            [row] = await app.instances(status="suspended")
            assert "damaged record" in (row.error or "")

    run(main)


def test_an_error_that_cannot_be_shown_harms_nobody_else(make_app: MakeApp) -> None:
    class UnspeakableError(Exception):
        def __str__(self) -> str:
            raise ValueError("no words")

    class Speechless(Shop):
        name = "Shop"

        def decide(self, message: Any, state: Any) -> Any:
            if isinstance(message, Break):
                raise UnspeakableError
            return super().decide(message, state)

    async def main() -> None:
        async with closed_shop(make_app(), Speechless) as app:
            await app.send(PlaceOrder("o-1"))
            receipt = await app.send(Break("o-1"))
            assert (receipt.status, (await receipt.row()).error) == ("suspended", "UnspeakableError")
            assert (await app.send(PlaceOrder("o-2"))).status == "stepped"

    run(main)


def test_claims_go_on_after_an_unexpected_error(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("mainspring.engine.claiming.claimer.PAUSE_AFTER_STORE_ERROR_SECONDS", 0.01)

    async def work(command: Work) -> Done:
        return Done(command.id, command.part)

    async def main() -> None:
        sender = job(make_app(), work)
        await sender.start(work=False)
        async with job(make_app(), work) as app:
            # A claim that is under way would not fail, and might bring what is sent.
            await until(lambda: internals_of(app).engine.claimer.idle)
            claim, failures = (
                internals_of(app).engine.store.claim,
                [RuntimeError("planted"), StoreError("s", "is ill", "Wait.")],
            )

            async def ill(*arguments: Any) -> Any:
                if failures:
                    raise failures.pop()
                return await claim(*arguments)

            monkeypatch.setattr(internals_of(app).engine.store, "claim", ill)
            await sender.send(Start("j-1"))
            await app.instance(Job, "j-1").result()
            assert failures == []
        await sender.stop()

    run(main)
    failed = [record for record in caplog.records if "claiming failed, will be tried again" in record.getMessage()]
    # A mistake of ours is logged with where it happened; a store in trouble has said it all.
    assert [record.exc_info is not None for record in failed] == [False, True]


def test_a_handler_with_full_hands_does_not_stop_the_others(make_app: MakeApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mainspring.engine.outputs.dispatcher.OUTPUTS_IN_HAND", 3)
    gate = asyncio.Event()

    async def work(command: Work) -> Done:
        await gate.wait()
        return Done(command.id, command.part)

    async def main() -> None:
        app = job(make_app(), work, concurrency=1)
        app.add(Shop())
        app.external(*_shop_outputs())
        async with app:
            await app.send_many([Start(f"j-{n}", times=3) for n in range(4)])
            receipt = await app.send(PlaceOrder("o-1"))
            await receipt.suspend()
            await app.send(Note("o-1", "waits in the inbox"))
            await receipt.resume()
            await until(lambda: _noted(app))
            gate.set()
            for n in range(4):
                await app.instance(Job, f"j-{n}").result()

    run(main)


def _shop_outputs() -> tuple[type[Any], ...]:
    from tests.engine.shop import Charge, Ship  # noqa: PLC0415  only here

    return Charge, Ship


async def _noted(app: Mainspring) -> bool:
    return "waits in the inbox" in repr(await app.instance(Shop, "o-1").state())


def test_a_worker_that_stood_still_for_longer_than_its_lease_does_not_relieve_itself(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    clock, begun, gate, calls = VirtualClock(), asyncio.Event(), asyncio.Event(), Counter[str]()

    async def work(command: Work) -> Done:
        calls[command.id] += 1
        begun.set()
        await gate.wait()
        return Done(command.id, command.part)

    async def main() -> None:
        async with job(make_app(clock), work) as app:
            receipt = await app.send(Start("j-1"))
            await begun.wait()
            clock.advance(LEASE_SECONDS + 1)
            await settle(app)
            gate.set()
            await receipt.result()

    run(main)
    assert calls == {"j-1": 1}
    assert "relieved" not in caplog.text


def test_a_worker_that_stood_still_while_its_heart_beat_does_not_relieve_itself(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The store has extended the lease; when the worker hears of it, the lease is over."""
    clock, begun, gate, calls = VirtualClock(), asyncio.Event(), asyncio.Event(), Counter[str]()

    async def work(command: Work) -> Done:
        calls[command.id] += 1
        begun.set()
        await gate.wait()
        return Done(command.id, command.part)

    async def main() -> None:
        async with job(make_app(clock), work) as app:
            engine, heartbeat, stood = (
                internals_of(app).engine,
                internals_of(app).engine.store.heartbeat,
                asyncio.Event(),
            )

            async def stand_still(worker: int, standing: str) -> bool:
                lives = await heartbeat(worker, standing)
                monkeypatch.setattr(engine.store, "heartbeat", heartbeat)
                clock.advance(LEASE_SECONDS + 1)
                stood.set()
                return lives

            receipt = await app.send(Start("j-1"))
            await begun.wait()
            monkeypatch.setattr(engine.store, "heartbeat", stand_still)
            await engine._beat()  # noqa: SLF001  as its tasks do, one behind the other
            assert stood.is_set()
            await engine._relieve()  # noqa: SLF001  as above
            gate.set()
            await receipt.result()

    run(main)
    assert calls == {"j-1": 1}
    assert "relieved" not in caplog.text


def test_a_skipped_first_input_is_kept_as_a_dead_letter(make_app: MakeApp) -> None:
    async def main() -> None:
        async with closed_shop(make_app(), Fragile) as app:
            receipt = await app.send(PlaceOrder("o-1"), id="m-1")
            await receipt.skip(actor="ann")
            [letter] = await app.dead_letters()
            assert (letter.message_id, letter.reason) == ("m-1", "skipped by ann")

    run(main)


def test_an_instance_that_was_cancelled_before_it_began_does_not_begin(make_app: MakeApp) -> None:
    async def main() -> None:
        async with closed_shop(make_app(), Fragile) as app:
            receipt = await app.send(PlaceOrder("o-1"), id="m-1")
            await receipt.cancel("never mind", actor="ann")
            await until(lambda: _one_letter(app))
        async with closed_shop(make_app()) as app:
            assert (await app.send(PlaceOrder("o-1"), id="m-2")).status == "dead letter"
            [row] = await internals_of(app).engine.store.instances(InstanceFilter(), 10)
            assert (row.status, row.version) == ("cancelled", 0)

    async def _one_letter(app: Mainspring) -> bool:
        return len(await app.dead_letters()) == 1

    run(main)


def test_what_is_in_a_commit_for_longer_than_some_beats_is_not_carried_out_again(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mainspring.engine.engine.HEARTBEAT_SECONDS", 0.005)
    calls: list[str] = []

    async def work(command: Work) -> Done:
        calls.append(command.id)
        return Done(command.id, command.part)

    async def main() -> None:
        async with job(make_app(), work) as app:
            store = internals_of(app).engine.store
            commit, holds = store.commit, store.holds
            looks = 0

            async def counted_holds(worker: int) -> Any:
                nonlocal looks
                looks += 1
                return await holds(worker)

            async def some_looks() -> None:
                first = looks
                await until(lambda: looks >= first + 3)

            async def slow_commit(worker: int, units: Sequence[Unit]) -> Any:
                await some_looks()
                outcomes = await commit(worker, units)
                await some_looks()
                return outcomes

            monkeypatch.setattr(store, "holds", counted_holds)
            monkeypatch.setattr(store, "commit", slow_commit)
            await (await app.send(Start("j-1"))).result()

    run(main)
    assert calls == ["j-1"]


def test_a_worker_that_holds_nothing_asks_for_strays_only_after_it_has_worked(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mainspring.engine.engine.HEARTBEAT_SECONDS", 0.005)
    asked = beats = 0

    async def work(command: Work) -> Done:
        return Done(command.id, command.part)

    async def main() -> None:
        nonlocal asked, beats
        async with job(make_app(), work) as app:
            store = internals_of(app).engine.store
            holds, heartbeat = store.holds, store.heartbeat

            async def counted_holds(worker: int) -> Any:
                nonlocal asked
                asked += 1
                return await holds(worker)

            async def counted_heartbeat(worker: int, standing: str) -> bool:
                nonlocal beats
                beats += 1
                return await heartbeat(worker, standing)

            async def some_beats() -> int:
                """Return how often the store was asked within a few beats."""
                first, since = beats, asked
                await until(lambda: beats >= first + 5)
                return asked - since

            async def silent() -> bool:
                return not await some_beats()

            monkeypatch.setattr(store, "holds", counted_holds)
            monkeypatch.setattr(store, "heartbeat", counted_heartbeat)
            await until(silent)
            before = asked
            await (await app.send(Start("j-1"))).result()
            await some_beats()
            # Counted from before the work: a beat may have come between its end and here.
            assert asked > before
            await until(silent)

    run(main)


@pytest.mark.parametrize("slow", ["the step", "the result", "the result, refused at first"])
def test_a_commit_that_takes_many_heartbeats_loses_nothing(
    slow: str, make_app: MakeApp, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What a commit has made is there before this worker is told, and what it is to settle is there until it has."""
    monkeypatch.setattr("mainspring.engine.engine.HEARTBEAT_SECONDS", 0.005)
    monkeypatch.setattr("mainspring.engine.committing.committer.PAUSE_AFTER_STORE_ERROR_SECONDS", 0.2)
    calls: list[str] = []

    async def work(command: Work) -> None:
        calls.append(command.id)

    async def main() -> None:
        async with job(make_app(), work) as app:
            store = internals_of(app).engine.store
            holds, commit = store.holds, store.commit
            asked = 0

            async def counted_holds(worker: int) -> Any:
                nonlocal asked
                held = await holds(worker)
                asked += 1
                return held

            async def slow_commit(worker: int, units: list[Unit]) -> Any:
                settles = any(unit.settles for unit in units)
                if settles is (slow == "the step"):
                    return await commit(worker, units)
                monkeypatch.setattr(store, "commit", commit)
                outcomes = await commit(worker, units) if slow == "the step" else []
                if slow == "the result, refused at first":
                    raise StoreError("the store", "is in trouble", "Wait.")
                last = asked
                await until(lambda: asked > last + 4)
                return outcomes or await commit(worker, units)

            monkeypatch.setattr(store, "holds", counted_holds)
            monkeypatch.setattr(store, "commit", slow_commit)
            await app.send(Start("j-1"))
            await until(lambda: bool(calls) and store.commit == commit)
            last = asked
            await until(lambda: asked > last + 2 or internals_of(app).engine.committer.idle)
            await until(lambda: _is_settled(app))

    run(main)
    assert calls == ["j-1"]
    assert "was lost by this worker" not in caplog.text


async def _is_settled(app: Mainspring) -> bool:
    return (await app.stats()).outbox == 0


def test_a_stop_that_is_cancelled_leaves_nothing_running(make_app: MakeApp) -> None:
    async def work(command: Work) -> None:
        await asyncio.Event().wait()  # hangs, until it is cancelled

    async def main() -> None:
        before = asyncio.all_tasks()
        app = job(make_app(), work)
        await app.start()
        await app.send(Start("j-1"))
        await until(lambda: internals_of(app).engine.dispatcher.in_hand > 0)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(app.stop(), 0.05)
        await until(lambda: {t for t in asyncio.all_tasks() if "mainspring" in t.get_name()} <= before)

    run(main)


@dataclass(frozen=True)
class Praise:
    order_id: str


def test_an_input_of_a_type_that_a_worker_does_not_know_waits_for_one_that_does(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "mainspring.engine")

    class Tomorrow(Workflow[Input | Praise, State, Output]):
        name = "Shop"
        begins = PlaceOrder
        initial_state = Shop.initial_state
        mode = "inbox"

        def route(self, message: Input | Praise) -> str | None:
            return message.order_id

        def evolve(self, state: State, event: Event[Input | Praise, Output]) -> State | None:
            return Shop().evolve(state, event)  # pyright: ignore[reportArgumentType]

        def decide(self, message: Input | Praise, state: State) -> Decisions[Input | Praise, Output] | None:
            return [] if isinstance(message, Praise) else Shop().decide(message, state)

    def tomorrow(app: Mainspring) -> Mainspring:
        app.add(Tomorrow())
        app.external(*_shop_outputs())
        return app

    async def main() -> None:
        client = tomorrow(make_app())
        await client.start(work=False)
        async with closed_shop(make_app()) as old:
            await old.send(PlaceOrder("o-1"))
            assert (await client.send(Praise("o-1"))).status == "accepted"
            assert (await client.send(Note("o-1", "behind it"))).status == "accepted"
            await until(lambda: "this worker does not know Praise at version 1" in caplog.text)
            await look_for_work(old)
            assert (await old.instance(Shop, "o-1").row()).status == "running"
            assert [row.type for row in await old.instance(Shop, "o-1").waiting()] == ["Praise", "Note"]
            async with tomorrow(make_app()) as new:
                await until(lambda: _empty_inbox(new))
                stream: list[Any] = await new.instance(Tomorrow, "o-1").stream()
                told = [entry.event.message for entry in stream if entry.event.direction == "input"]
                assert told == [PlaceOrder("o-1"), Praise("o-1"), Note("o-1", "behind it")]
        await client.stop()

    async def _empty_inbox(app: Mainspring) -> bool:
        return (await app.stats()).inbox == 0

    run(main)


def test_what_stands_behind_an_input_of_an_unknown_type_is_given_back_with_it() -> None:
    async def main() -> None:
        clock = VirtualClock()
        store = MemoryStore(clock)
        context, body = encode_context(Context("c-1")), b'{"order_id":"o-1"}'
        rows = [InputRow("Shop", "o-1", t, "command", t, 1, body, 0, context) for t in ("Praise", "PlaceOrder")]
        await store.commit(0, [Unit("Shop", "o-1", accepts=tuple(rows))])
        async with closed_shop(Mainspring("memory://", runtime=Runtime(clock), store=store)) as app:
            claimer, committer = internals_of(app).engine.claimer, internals_of(app).engine.committer
            await until(lambda: claimer.rounds > 0 and claimer.idle and committer.idle)
            # No time has passed: it was never held for as long as one that came before its turn is.
            assert await store.holds_inputs(committer.worker) == []
            assert [row.type for row in await store.inbox(Ref("Shop", "o-1"), 10)] == ["Praise", "PlaceOrder"]

    run(main)
