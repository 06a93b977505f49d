"""What a worker holds by the store's word, and does not know of, is given back: once, and nothing else is.

Every look is made by the test, and every answer of the store that a look could cross is held back by a gate.
"""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from mainspring import Mainspring, Retry
from mainspring.app.internals import internals_of
from mainspring.engine.inputs.pending import Pending
from mainspring.errors import StoreError
from mainspring.port.records import Claims, Conflict, Unit
from mainspring.testing.clock import VirtualClock
from tests.engine.coordination.test_replies import AnswerNow, Ask, Desk
from tests.engine.coordination.trips import PlanTrip, World, trip_app
from tests.engine.jobs import Done, Job, Start, Work, job
from tests.engine.test_lost_inputs import Add, Adding, has_added
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until

AT_ONCE = Retry(max_attempts=3, first=timedelta(microseconds=1), cap=timedelta(microseconds=1))

LATER = Retry(max_attempts=3, first=timedelta(seconds=20), cap=timedelta(seconds=20))


@pytest.fixture(autouse=True)
def only_the_test_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mainspring.engine.engine.HEARTBEAT_SECONDS", 3600.0)
    monkeypatch.setattr("mainspring.engine.engine.LEASE_SECONDS", 7200.0)


class Gate:
    """Holds back what a store's method has found, while it is closed."""

    def __init__(self, store: Any, method: str, holds_back: Callable[[Any], bool] = lambda _: True) -> None:
        self._call = getattr(store, method)
        self._holds_back = holds_back
        self._open = asyncio.Event()
        self.waiting = asyncio.Event()
        setattr(store, method, self)

    async def __call__(self, *given: Any, **named: Any) -> Any:
        found = await self._call(*given, **named)
        if self._holds_back(found):
            self.waiting.set()
            await self._open.wait()
        return found

    @classmethod
    async def of_claims(cls, app: Mainspring, holds_back: Callable[[Claims], bool]) -> "Gate":
        """Hold back claims from now on: one that is under way goes past the gate, and may ask the store much later."""
        await until(lambda: internals_of(app).engine.claimer.idle)
        return cls(internals_of(app).engine.store, "claim", holds_back)

    def let_one_through(self) -> None:
        self.waiting.clear()
        self._open.set()
        self._open = asyncio.Event()

    def open(self) -> None:
        self._open.set()


def brings_outputs(claims: Claims) -> bool:
    return bool(claims.outputs)


def brings_inputs(claims: Claims) -> bool:
    return bool(claims.inputs)


async def look(app: Mainspring, times: int = 1) -> None:
    for _ in range(times):
        await internals_of(app).engine.strays.look()


async def look_at_rest(app: Mainspring, times: int = 1) -> None:
    """Look when nothing is under way: what a commit or a claim may still bring is not taken for lost."""
    for _ in range(times):
        await until(lambda: _is_idle(app))
        await internals_of(app).engine.strays.look()


def losses(caplog: pytest.LogCaptureFixture) -> int:
    return sum("was lost by this worker" in record.getMessage() for record in caplog.records)


def test_what_a_worker_holds_and_does_not_know_of_is_carried_out_again(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Once: while it is on its way here again, a look does not take it for lost a second time."""
    calls: list[str] = []

    async def work(command: Work) -> Done:
        calls.append(command.id)
        return Done(command.id, command.part)

    async def main() -> None:
        async with job(make_app(), work) as app:
            with monkeypatch.context() as losing:
                lost = asyncio.Event()
                losing.setattr(internals_of(app).engine.dispatcher, "begin", lambda *_: lost.set())
                receipt = await app.send(Start("j-1"))
                await lost.wait()
            gate = await Gate.of_claims(app, brings_outputs)
            await look_at_rest(app)
            assert losses(caplog) == 0
            await look_at_rest(app)
            assert losses(caplog) == 1
            await gate.waiting.wait()
            await look(app, 3)
            gate.open()
            await receipt.result()

    run(main)
    assert calls == ["j-1"]
    assert losses(caplog) == 1


def test_a_look_that_a_new_key_overtakes_counts_for_nothing(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What was missing under the old key may be on its way here again under the new one."""

    async def work(command: Work) -> Done:
        return Done(command.id, command.part)

    async def main() -> None:
        async with job(make_app(), work) as app:
            engine, store = internals_of(app).engine, internals_of(app).engine.store

            async def is_claimed_anew() -> bool:
                return bool(await store.holds(engine.committer.worker)) and engine.claimer.idle

            with monkeypatch.context() as losing:
                lost = asyncio.Event()
                losing.setattr(engine.dispatcher, "begin", lambda *_: lost.set())
                receipt = await app.send(Start("j-1"))
                await lost.wait()
                gate = Gate(store, "holds")
                looking = asyncio.create_task(look(app))
                await gate.waiting.wait()
                await store.release_worker(engine.committer.worker)
                await engine._renew()  # noqa: SLF001  as the task does that looks for the dead
                gate.open()
                await looking
                await until(is_claimed_anew)
            await look_at_rest(app)
            assert losses(caplog) == 0
            await look_at_rest(app)
            assert losses(caplog) == 1
            await receipt.result()

    run(main)


def test_what_failed_and_is_claimed_once_more_between_two_looks_is_not_lost(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[str] = []

    async def work(command: Work) -> Done:
        calls.append(command.id)
        if len(calls) == 1:
            raise RuntimeError("planted")
        return Done(command.id, command.part)

    async def main() -> None:
        sender = job(make_app(), work)
        await sender.start(work=False)
        async with job(make_app(), work, retry=AT_ONCE) as app:
            gate = await Gate.of_claims(app, brings_outputs)
            receipt = await sender.send(Start("j-1"))
            await gate.waiting.wait()
            await look(app)
            gate.let_one_through()
            await gate.waiting.wait()
            assert len(calls) == 1
            await look(app, 3)
            gate.open()
            await receipt.result()
        await sender.stop()

    run(main)
    assert calls == ["j-1", "j-1"]
    assert losses(caplog) == 0


def test_what_comes_into_hand_and_goes_during_a_look_is_not_lost(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[str] = []
    clock = VirtualClock()

    async def work(command: Work) -> Done:
        calls.append(command.id)
        if len(calls) == 1:
            raise RuntimeError("planted")
        return Done(command.id, command.part)

    async def main() -> None:
        sender = job(make_app(clock), work)
        await sender.start(work=False)
        async with job(make_app(clock), work, retry=LATER) as app:
            claims = await Gate.of_claims(app, brings_outputs)
            await sender.send(Start("j-1"))
            internals_of(app).engine.wakeups.due_at(0)  # where news come by polling, no time passes for that
            await claims.waiting.wait()
            holds = Gate(internals_of(app).engine.store, "holds")
            first = asyncio.create_task(look(app))
            await holds.waiting.wait()
            claims.let_one_through()
            # It fails and is given back while the answer of the look is on its way.
            await until(lambda: len(calls) == 1 and _is_idle(app))
            holds.open()
            await first
            clock.advance(30)
            await claims.waiting.wait()
            await look(app, 3)
            claims.open()
            await app.instance(Job, "j-1").result()
        await sender.stop()

    run(main)
    assert calls == ["j-1", "j-1"]
    assert losses(caplog) == 0


def test_an_input_that_is_lost_is_taken_again_and_not_lost_on_its_way(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        sender, app = make_app(), make_app()
        sender.add(Adding())
        app.add(Adding())
        await sender.start(work=False)
        async with app:
            submit = internals_of(app).engine.stepper.submit
            await until(lambda: _is_idle(app))
            # Nothing is held, so that only what is taken makes it ask again.
            await look_at_rest(app, 2)

            def lose(pending: Pending) -> None:
                internals_of(app).engine.stepper.submit = submit
                raise RuntimeError(f"planted for {pending.id}")

            internals_of(app).engine.stepper.submit = lose
            await sender.send(Add("a-1", 1))
            await until(lambda: internals_of(app).engine.stepper.submit == submit and _is_idle(app))
            gate = await Gate.of_claims(app, brings_inputs)
            await look_at_rest(app, 2)
            assert losses(caplog) == 1
            await gate.waiting.wait()
            await look(app, 3)
            gate.open()
            await until(lambda: has_added(app, (1,)))
        await sender.stop()

    run(main)
    assert losses(caplog) == 1


def _is_idle(app: Mainspring) -> bool:
    return internals_of(app).engine.committer.idle and internals_of(app).engine.claimer.idle


def test_a_reply_whose_addressee_is_looked_up_for_long_is_not_lost(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        app = make_app()
        app.add(Desk())
        async with app:
            request = asyncio.create_task(app.request(Ask("slow"), id="r-1"))
            await until(lambda: _has_begun(app))
            gate = Gate(internals_of(app).engine.store, "stream")
            await app.send(AnswerNow("slow", to="r-1"))
            await gate.waiting.wait()
            await look(app, 3)
            gate.open()
            await request
            await until(lambda: _is_idle(app))
            assert not internals_of(app).engine.dispatcher.outputs_in_hand()

    run(main)
    assert losses(caplog) == 0


async def _has_begun(app: Mainspring) -> bool:
    return bool(await app.instances(workflow="Desk"))


def test_a_compensation_that_waits_to_be_looked_up_is_not_lost(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(plans={("book", "hotel"): ["refused"]})

    async def main() -> None:
        async with trip_app(make_app, world) as app:
            gate = Gate(internals_of(app).engine.store, "outputs")
            receipt = await app.send(PlanTrip("t-1", ("flight", "hotel")))
            await gate.waiting.wait()
            await look(app, 3)
            gate.open()
            await until(lambda: _has_failed(receipt))

    async def _has_failed(receipt: Any) -> bool:
        return (await receipt.row()).status == "failed"

    run(main)
    assert world.effects == ["book flight", "cancel flight"]
    assert losses(caplog) == 0


def test_a_result_that_waits_to_be_queued_once_more_is_not_lost(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[str] = []
    clock = VirtualClock()

    async def work(command: Work) -> Done:
        calls.append(command.id)
        return Done(command.id, command.part)

    async def main() -> None:
        async with job(make_app(clock), work) as app:
            store = internals_of(app).engine.store
            commit, refused = store.commit, list[str]()

            async def ill(worker: int, units: list[Unit]) -> Any:
                """Send a result to the inbox, and fail to take it in there: so it waits a second."""
                if not any(unit.settles for unit in units):
                    return await commit(worker, units)
                [unit] = units
                if unit.accepts:
                    refused.append("the inbox")
                    raise StoreError("the store", "is in trouble", "Wait.")
                refused.append("the step")
                return [Conflict("inbox")]

            monkeypatch.setattr(store, "commit", ill)
            receipt = await app.send(Start("j-1"))
            await until(lambda: refused == ["the step", "the inbox"] and internals_of(app).engine.committer.idle)
            await look(app, 3)
            monkeypatch.setattr(store, "commit", commit)
            # Its patience is of the same clock.
            result = asyncio.ensure_future(receipt.result(timeout=timedelta(days=1)))
            # More than once: nothing tells when the wait of a second has begun.
            await until(lambda: clock.advance(1) or result.done())
            await result

    run(main)
    assert calls == ["j-1"]
    assert losses(caplog) == 0


def test_two_looks_at_once_hear_of_all_that_comes_meanwhile(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Else what came during both is missing at one of them, and lost when it is on its way here a second time."""
    fails = asyncio.Event()
    calls: list[str] = []

    async def work(command: Work) -> Done:
        calls.append(command.id)
        if len(calls) == 1:
            await fails.wait()
            raise ValueError("planted")
        return Done(command.id, command.part)

    async def main() -> None:
        async with job(make_app(), work, retry=AT_ONCE) as app:
            held_back: list[Any] = []
            with monkeypatch.context() as losing:
                losing.setattr(internals_of(app).engine.dispatcher, "begin", lambda *given: held_back.append(given))
                receipt = await app.send(Start("j-1"))
                await until(lambda: held_back)
            holds = Gate(internals_of(app).engine.store, "holds")
            first = asyncio.create_task(look(app))
            await holds.waiting.wait()
            second = asyncio.create_task(look(app))
            await asyncio.sleep(0)  # it begins, if it does not wait for the first
            internals_of(app).engine.dispatcher.begin(*held_back[0])
            holds.open()
            await asyncio.gather(first, second)
            claim = await Gate.of_claims(app, brings_outputs)
            fails.set()
            await claim.waiting.wait()
            await look(app)
            assert losses(caplog) == 0
            claim.open()
            await receipt.result()

    run(main)
    assert calls == ["j-1", "j-1"]
