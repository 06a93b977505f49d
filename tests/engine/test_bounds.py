"""Memory is bounded: inputs in flight, outputs in hand, instances remembered."""

import asyncio
from datetime import timedelta
from itertools import count
from typing import Any, cast

import pytest

from mainspring import Mainspring
from mainspring.app.internals import internals_of
from mainspring.engine.claiming import claimer as claims
from mainspring.engine.inputs import intake
from mainspring.engine.inputs.pending import Pending
from mainspring.engine.outputs import dispatcher as dispatch
from mainspring.engine.recording.stored_values import encode_context
from mainspring.engine.runtime import Runtime
from mainspring.engine.stepping.lanes import Lanes
from mainspring.engine.stepping.stepper import Stepper
from mainspring.errors import StoreClosedError, UnknownOutcomeError
from mainspring.port.records import Claims, Context, InputRow, Outcome, OutputClaim, Unit
from mainspring.stores.memory import MemoryStore
from mainspring.testing.clock import VirtualClock
from tests.engine.jobs import Done, Job, Start, Work, job
from tests.engine.shop import Note, PlaceOrder, Shop
from tests.engine.test_lost_inputs import Adding
from tests.engine.test_stepping import closed_shop
from tests.engine.test_timers import Open, Ticket, pass_time, ticket
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until


def test_a_flood_of_messages_waits_at_the_door(make_app: MakeApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "INPUTS_IN_FLIGHT", 10)
    most = 0

    async def main() -> None:
        nonlocal most
        async with closed_shop(make_app()) as app:
            submit = internals_of(app).engine.stepper.submit
            in_flight = 0

            def counted(pending: object) -> None:
                nonlocal in_flight, most
                in_flight += 1
                most = max(most, in_flight)
                submit(pending)  # pyright: ignore[reportArgumentType]

            internals_of(app).engine.stepper.submit = counted

            async def send(n: int) -> None:
                nonlocal in_flight
                await app.send(PlaceOrder(f"o-{n}"))
                in_flight -= 1

            await asyncio.gather(*(send(n) for n in range(100)))
            assert (await app.stats()).instances == {"running": 100}

    run(main)
    assert most <= 10


def test_outputs_over_a_workers_capacity_are_left_to_whoever_has_room(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "OUTPUTS_IN_HAND", 5)
    gate = asyncio.Event()
    waiting: list[int] = []

    async def work(command: Work) -> Done:
        await gate.wait()
        return Done(command.id, command.part)

    async def main() -> None:
        async with job(make_app(), work, concurrency=2) as app:
            receipt = await app.send(Start("j-1", times=3))
            await app.send_many([Start(f"k-{n}", times=3) for n in range(20)])
            [runner] = internals_of(app).engine.dispatcher.runners
            waiting.append(runner.waiting)
            assert (await app.stats()).outbox == 63
            gate.set()
            await receipt.result()
            for n in range(20):
                await app.instance(Job, f"k-{n}").result()

    run(main)
    assert waiting[0] <= 5 + 3


def test_timers_that_are_due_together_come_into_hand_a_few_at_a_time(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"INPUTS_IN_HAND": 10, "CLAIM_LIMIT": 5, "SHARE": 2, "MOST_IN_HAND": 20}.items():
        monkeypatch.setattr(claims, name, value)
    clock, most = VirtualClock(), 0

    async def main() -> None:
        async with ticket(make_app(clock)) as app:
            await app.send_many([Open(f"t-{n}") for n in range(100)])
            submit = internals_of(app).engine.stepper.submit

            def counted(pending: Pending) -> None:
                nonlocal most
                submit(pending)
                most = max(most, internals_of(app).engine.stepper.in_hand)

            internals_of(app).engine.stepper.submit = counted
            await pass_time(app, clock, 54)  # as below
            clock.advance(6)
            await until(lambda: _reminded(app))

    async def _reminded(app: Mainspring) -> bool:
        clock.advance(0.01)
        return len(await app.timers(limit=300)) == 200

    run(main)
    assert most <= 20 + 2


@pytest.mark.parametrize(("in_hand", "reminded"), [(15, {1}), (20, {0})])
def test_timers_fire_while_senders_keep_the_hands_full_and_not_while_nothing_more_fits(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch, in_hand: int, reminded: set[int]
) -> None:
    for name, value in {"INPUTS_IN_HAND": 10, "SHARE": 2, "MOST_IN_HAND": 20}.items():
        monkeypatch.setattr(claims, name, value)
    clock, tickets = VirtualClock(), [f"t-{n}" for n in range(10)]

    async def main() -> None:
        async with ticket(make_app(clock)) as app:
            await app.send_many([Open(id) for id in tickets])
            await pass_time(app, clock, 54)  # at once it would leap over the lease, and the worker be relieved
            monkeypatch.setattr(Stepper, "in_hand", property(lambda _: in_hand))
            clock.advance(6)
            rounds, sent = internals_of(app).engine.claimer.rounds, count()

            async def others_send() -> bool:
                await app.send(Open(f"other-{next(sent)}"))  # each a batch, which leaves a share to the timers
                return internals_of(app).engine.claimer.rounds >= rounds + 5 and await reminders(app) == reminded

            await until(others_send)

    async def reminders(app: Mainspring) -> set[int]:
        return {len((await app.instance(Ticket, id).state()).reminders) for id in tickets}

    run(main)


def test_a_batch_that_is_reported_while_a_share_is_claimed_is_followed_by_the_next_share(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nothing is found by looking from time to time.
    settings = {"INPUTS_IN_HAND": 10, "SHARE": 2, "MOST_IN_HAND": 20, "POLL_SECONDS": 1e9}
    for name, value in settings.items():
        monkeypatch.setattr(claims, name, value)
    clock, tickets, slow = VirtualClock(), [f"t-{n}" for n in range(10)], [True]

    async def main() -> None:
        async with ticket(make_app(clock)) as app:
            await app.send_many([Open(id) for id in tickets])
            await pass_time(app, clock, 54)
            claim = internals_of(app).engine.store.claim

            async def answers_late(*arguments: Any) -> Claims:
                answer = await claim(*arguments)
                if slow:
                    slow.clear()
                    await app.send(Open("meanwhile"))
                    await until(lambda: not waits_for_a_batch(internals_of(app).engine.claimer))
                return answer

            monkeypatch.setattr(internals_of(app).engine.store, "claim", answers_late)
            monkeypatch.setattr(Stepper, "in_hand", property(lambda _: 15))
            clock.advance(6)
            await until(lambda: reminded(app))

    def waits_for_a_batch(claimer: claims.Claimer) -> bool:
        batch = claimer._batch  # noqa: SLF001  nothing else tells when it was heard of
        return batch is not None and not batch.done()

    async def reminded(app: Mainspring) -> bool:
        return all([(await app.instance(Ticket, id).state()).reminders == (1,) for id in tickets])

    run(main)


def test_states_of_idle_instances_are_forgotten_and_read_again(make_app: MakeApp) -> None:
    async def main() -> None:
        async with closed_shop(make_app()) as app:
            internals_of(app).engine.stepper.lanes = Lanes(limit=10)
            await app.send_many([PlaceOrder(f"o-{n}") for n in range(50)])
            assert internals_of(app).engine.stepper.lanes.count <= 50
            await app.send(PlaceOrder("o-50"))
            for n in range(50):
                await app.send(Note(f"o-{n}", "still known"))
            await until(lambda: internals_of(app).engine.stepper.lanes.count <= 12)
            state = await app.instance(Shop, "o-0").state()
            assert "still known" in repr(state)

    run(main)


def test_a_mistake_on_one_instances_way_back_does_not_stop_the_others(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(command: Work) -> Done:
        return Done(command.id, command.part)

    async def main() -> None:
        async with job(make_app(), work) as app:
            begin = internals_of(app).engine.dispatcher._begin  # noqa: SLF001  the mistake is planted there

            def broken(claim: OutputClaim, message: Work) -> None:
                if message.id == "j-0":
                    raise RuntimeError("planted")
                begin(claim, message)

            monkeypatch.setattr(internals_of(app).engine.dispatcher, "_begin", broken)
            await app.send_many([Start(f"j-{n}") for n in range(3)])
            await app.instance(Job, "j-1").result()
            await app.instance(Job, "j-2").result()
            [letter] = await app.dead_letters()
            assert (letter.reason, letter.error) == ("it cannot be carried out", "RuntimeError: planted")

    run(main)


def test_nobody_waits_for_a_committer_that_died(make_app: MakeApp, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with closed_shop(make_app()) as app:
            committer = internals_of(app).engine.committer

            def broken(*_: object) -> None:
                monkeypatch.undo()
                raise RuntimeError("planted")

            monkeypatch.setattr(committer, "_withdraw", broken)
            with pytest.raises(RuntimeError, match="planted"):
                await app.send(PlaceOrder("o-1"))
            assert (await app.send(PlaceOrder("o-2"))).status == "stepped"

    run(main)


def test_who_waits_for_a_commit_that_a_stop_does_not_wait_for_is_told_so(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        app = closed_shop(make_app())
        await app.start()
        engine, begun = internals_of(app).engine, asyncio.Event()

        async def hangs(*_: object) -> list[Outcome]:
            begun.set()
            return await asyncio.Future[list[Outcome]]()

        monkeypatch.setattr(engine.store, "commit", hangs)
        under_way = asyncio.create_task(app.send(PlaceOrder("o-1")))
        await begun.wait()
        waiting = asyncio.create_task(app.send(PlaceOrder("o-2")))
        await asyncio.sleep(0)  # it has been handed over
        stopping = asyncio.create_task(app.stop(timedelta(0)))
        await until(lambda: engine.worker.closing)
        stopping.cancel()
        for sending in (under_way, waiting):
            with pytest.raises(UnknownOutcomeError, match="Send it again with the same id"):
                await sending
        await asyncio.wait((stopping,))

    run(main)


def test_who_sends_many_while_the_app_stops_is_told_and_nothing_goes_on_afterwards(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        app = make_app()
        app.add(Shop())
        await app.start(work=False)
        rests, stopped = asyncio.Event(), asyncio.Event()

        async def rest() -> None:
            rests.set()
            await stopped.wait()

        monkeypatch.setattr(internals_of(app).engine.intake, "rest", rest)
        sending = asyncio.create_task(app.send_many([PlaceOrder(f"o-{n}") for n in range(3 * intake.INPUTS_PER_TURN)]))
        await rests.wait()
        await app.stop()
        assert not sending.done()
        stopped.set()
        (told,) = await asyncio.gather(sending, return_exceptions=True)
        # The memory store can be written to after its end.
        assert isinstance(told, list if internals_of(app).url == "memory://" else StoreClosedError)
        await asyncio.sleep(0)
        assert {task.get_name() for task in asyncio.all_tasks() - {asyncio.current_task()}} == set()

    run(main)


def test_a_claim_that_comes_back_full_is_followed_by_another_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "CLAIM_LIMIT", 2)

    async def main() -> None:
        clock = VirtualClock()
        store = MemoryStore(clock)
        for n in range(5):
            body = b'{"id":"a-%d","number":1}' % n
            row = InputRow("Adding", f"a-{n}", "m-1", "command", "Add", 1, body, 0, encode_context(Context("c-1")))
            await store.commit(0, [Unit("Adding", f"a-{n}", accepts=(row,))])
        app = Mainspring("memory://", runtime=Runtime(clock), store=store)
        app.add(Adding())
        commit, may_commit = store.commit, asyncio.Event()

        async def later(*units: Any) -> Any:
            await may_commit.wait()
            return await commit(*units)

        monkeypatch.setattr(store, "commit", later)
        async with app:
            await until(lambda: internals_of(app).engine.claimer.rounds > 0 and internals_of(app).engine.claimer.idle)
            # Nobody has asked again by the clock, which stands still, nor because of a commit.
            taken = internals_of(app).engine.claimer.taken
            may_commit.set()
            assert taken == 5

    run(main)


def test_what_was_promised_is_taken_back_though_nobody_can_be_told_of_its_commit(make_app: MakeApp) -> None:
    """Else a handler would get one command less for each, until its worker is started anew."""

    async def main() -> None:
        async def done(command: Work) -> Done:
            return Done(command.id, command.part)

        async with job(make_app(), done) as app:
            stepper, told = internals_of(app).engine.stepper, list[str]()

            class Deaf:
                def taking(self, *_: Any) -> None: ...

                def taken(self, *_: Any) -> None:
                    told.append("planted")
                    raise RuntimeError("planted")

            stepper._observer = cast("Any", Deaf())  # noqa: SLF001
            sent = asyncio.create_task(app.send(Start("j-1", 3)))
            await until(lambda: told)
            stepper._observer = None  # noqa: SLF001
            await until(lambda: internals_of(app).engine.committer.idle)
            assert internals_of(app).engine.dispatcher._promised.total() == 0  # noqa: SLF001
            sent.cancel()

    run(main)
