"""What is paused begins nothing more in any process, loses nothing, and goes on in its order when it is resumed."""

import asyncio
import logging
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from mainspring import Mainspring, message
from mainspring.analysis.stuck.held import held_among, not_going_on
from mainspring.analysis.stuck.stuck import reasons_of
from mainspring.app.internals import internals_of
from mainspring.engine.claiming.lone_trials import LOOKS
from mainspring.engine.operations.known_pauses import LOOK_SECONDS, pauses_of
from mainspring.errors import NoSuchNameError, StoreUnreachableError, WaitTimeoutError
from mainspring.port.records import Ref
from mainspring.port.suspects import SUSPECT
from mainspring.testing.clock import VirtualClock
from mainspring.testing.samples import Count, Counter
from tests.engine.jobs import Done, Job, Start, Work, has_status, job, look_for_work
from tests.engine.test_paused_workflows import Clock, Hands, Wind
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until


async def done(command: Work) -> Done:
    return Done(command.id, command.part)


async def looked(app: Mainspring, clock: VirtualClock, known: int) -> None:
    """Let a process look at what is paused, by itself."""
    clock.advance(LOOK_SECONDS)
    await until(lambda: len(internals_of(app).engine.pauses.pauses) == known)


# ---- handlers


def test_a_paused_handler_begins_nothing_and_its_commands_wait_without_an_attempt(make_app: MakeApp) -> None:
    async def main() -> None:
        async with job(make_app(), done) as app:
            await app.pauses.pause(Work)
            await app.send(Start("j-1", 3))
            await look_for_work(app)
            outputs = await app.instance(Job, "j-1").outputs()
            assert [(claim.type, claim.attempts) for claim in outputs] == [("Work", 0)] * 3
            assert await internals_of(app).engine.store.holds(internals_of(app).engine.committer.worker) == []
            await app.pauses.resume(Work)
            await until(lambda: has_status(app, "j-1", "completed"))
            assert await app.instance(Job, "j-1").attempts() == []

    run(main)


def test_what_runs_is_finished_and_what_has_not_begun_is_given_back(make_app: MakeApp) -> None:
    async def main() -> None:
        hands = Hands()
        async with job(make_app(), hands.work, concurrency=1) as app:
            await app.send(Start("j-1", 3))
            await until(lambda: hands.begun)
            await app.pauses.pause("Work")
            hands.open.set()
            await until(lambda: internals_of(app).engine.dispatcher.in_hand == 0)
            await until(lambda: internals_of(app).engine.committer.idle)
            await look_for_work(app)
            assert hands.begun == [0]
            outputs = await app.instance(Job, "j-1").outputs()
            assert sorted((claim.attempts, claim.error or "") for claim in outputs) == [(0, ""), (0, "")]
            assert await internals_of(app).engine.store.holds(internals_of(app).engine.committer.worker) == []
            await app.pauses.resume("Work")
            await until(lambda: has_status(app, "j-1", "completed"))
            assert sorted(hands.begun) == [0, 1, 2]

    run(main)


def test_a_command_that_comes_into_hand_after_the_pause_is_given_back(make_app: MakeApp) -> None:
    """It was claimed, or born claimed, before this worker knew."""

    async def main() -> None:
        hands = Hands()
        async with job(make_app(), hands.work) as app:
            runner = internals_of(app).engine.dispatcher.runners.of(internals_of(app).registry.handlers["Work"], "Work")
            runner.pause(True)
            await app.send(Start("j-1"))
            await until(lambda: internals_of(app).engine.committer.idle)
            runner.pause(False)
            hands.open.set()
            await until(lambda: has_status(app, "j-1", "completed"))
            assert hands.begun == [0]

    run(main)


def test_other_handlers_and_workflows_go_on(make_app: MakeApp) -> None:
    async def main() -> None:
        app = job(make_app(), done)
        app.add(Clock())
        async with app:
            await app.pauses.pause(Clock)
            await app.send(Start("j-1"))
            await until(lambda: has_status(app, "j-1", "completed"))

    run(main)


# ---- the fleet


def test_another_worker_knows_of_a_pause_and_of_its_end_after_one_look(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        # Each has its own: a look that another's time begins may still be under way when its own time comes.
        clock, others = VirtualClock(), VirtualClock()
        first, second = job(make_app(clock), done), job(make_app(others), done)
        async with first, second:
            with caplog.at_level(logging.WARNING, "mainspring.engine"):
                await first.pauses.pause(Work, "the bank moves", actor="ann")
                await looked(second, others, 1)
                told = [record.getMessage() for record in caplog.records]
                assert len(told) == 2
                assert all("Work is paused by ann since " in text and "the bank moves" in text for text in told)
                await first.send(Start("j-1"))
                await second.send(Start("j-2"))
                await look_for_work(first)
                await look_for_work(second)
                for id in ("j-1", "j-2"):
                    assert len(await first.instance(Job, id).outputs()) == 1
                caplog.clear()
                await second.pauses.resume(Work)
                await looked(first, clock, 0)
                assert [record.getMessage() for record in caplog.records] == [
                    "the handler Work is not paused any more, and goes on"
                ] * 2
            for id in ("j-1", "j-2"):
                await until(lambda job=id: has_status(first, job, "completed"))

    run(main)


def test_a_worker_that_starts_knows_what_is_paused_before_it_begins(make_app: MakeApp) -> None:
    async def main() -> None:
        hands = Hands()
        async with job(make_app(), hands.work) as first:
            await first.pauses.pause(Work)
            await first.send(Start("j-1"))
        async with job(make_app(), hands.work) as second:
            await look_for_work(second)
            assert hands.begun == []
            assert [pause.what for pause in internals_of(second).engine.pauses.pauses] == ["handler:Work"]

    run(main)


def test_a_process_that_only_sends_holds_its_messages_back_too(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        worker, client = make_app(clock), make_app(clock)
        for app in (worker, client):
            app.add(Clock())
        async with worker, AsyncExitStack() as exits:
            await client.start(work=False)
            exits.push_async_callback(client.stop)
            await worker.pauses.pause(Clock)
            await looked(client, clock, 1)
            assert (await client.send(Wind("c-1"))).status == "accepted"
            # And what it asks for is held at once where it runs.
            await client.pauses.resume(Clock)
            assert (await client.send(Wind("c-2"))).status == "stepped"

    run(main)


def test_what_was_known_last_holds_while_the_store_is_in_trouble(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with job(make_app(clock), done) as app:
            await app.pauses.pause(Work)
            looks = 0

            async def away(*_: Any) -> Any:
                nonlocal looks
                looks += 1
                raise StoreUnreachableError("the store", "it is away")

            monkeypatch.setattr(internals_of(app).engine.store, "load", away)
            await until(lambda: clock.advance(LOOK_SECONDS) or looks > 1)
            monkeypatch.undo()
            assert internals_of(app).engine.dispatcher.capacity("Work") == 0

    run(main)


def test_two_who_pause_at_once_both_succeed(make_app: MakeApp) -> None:
    async def main() -> None:
        first, second = job(make_app(), done), job(make_app(), done)
        async with first, second:
            await asyncio.gather(first.pauses.pause(Work), second.pauses.pause(Job))
            paused = {pause.what for pause in await pauses_of(internals_of(first).engine.store)}
            assert paused == {"handler:Work", "workflow:Job"}

    run(main)


@pytest.mark.parametrize("paused", ["handler:Work", "workflow:Job"])
def test_what_was_set_aside_is_not_tried_alone_while_it_is_paused(make_app: MakeApp, paused: str) -> None:
    async def main() -> None:
        clock, hands = VirtualClock(), Hands()
        hands.open.set()
        sender = job(make_app(clock), hands.work)
        await sender.start(work=False)
        store, of_handler = internals_of(sender).engine.store, paused == "handler:Work"
        await sender.pauses.pause(paused)
        await sender.send(Start("j-1"))
        for _ in range(SUSPECT):
            worker = await store.register_worker("doomed", 1_000_000)
            claims = await store.claim(worker, ["Work"], ["Job"], 10)
            assert (len(claims.outputs), len(claims.inputs)) == ((1, 0) if of_handler else (0, 1))
            clock.advance(2)
            assert await store.relieve() == 1
        async with job(make_app(clock), hands.work) as app:
            for _ in range(LOOKS + 1):
                await internals_of(app).engine.lone_trials.look(relieved=False)
            assert [suspect.aside for suspect in await store.suspects(10)] == [True]
            assert not internals_of(app).engine.dispatcher.resting
            assert hands.begun == []
            await app.pauses.resume(paused)
            await internals_of(app).engine.lone_trials.look(relieved=True)
            await until(lambda: clock.advance(0.1) or app.instances(status="completed"))
        await sender.stop()

    run(main)


# ---- what is asked and told


def test_the_list_says_what_is_paused_by_whom_since_when_and_how_many_wait(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        counting = make_app(clock)
        counting.add(Counter())
        async with job(counting, done) as app:
            assert await app.pauses.list() == []
            await app.pauses.pause(Work, "the bank moves", actor="ann")
            await app.send(Start("j-1", 3))
            clock.advance(1)
            await app.pauses.pause("workflow:Job")
            await app.send(Start("j-2"))
            await app.pauses.pause(Counter)
            await app.send(Count("c-1"))
            await app.send(Count("c-2"))
            found = [(one.what, one.reason, one.actor, one.waiting, one.more) for one in await app.pauses.list()]
            assert found == [
                ("handler:Work", "the bank moves", "ann", 3, False),
                ("workflow:Job", "by an operator", None, 1, False),
                ("workflow:Counter", "by an operator", None, 2, False),
            ]

    run(main)


def test_pausing_again_tells_who_since_when_and_why_of_one_person(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with job(make_app(clock), done) as app:
            await app.pauses.pause(Work, "first", actor="ann")
            (before,) = await app.pauses.list()
            clock.advance(1)
            await app.pauses.pause(Work, "second", actor="bob")
            (after,) = await app.pauses.list()
            assert (after.reason, after.actor) == ("second", "bob")
            assert after.since - before.since == timedelta(seconds=1)

    run(main)


def test_the_stream_tells_who_paused_and_resumed(make_app: MakeApp) -> None:
    async def main() -> None:
        async with job(make_app(), done) as app:
            await app.pauses.pause(Work, actor="ann")
            await app.pauses.resume(Work, actor="bob")
            log = await app.instance_at("mainspring.Pauses/fleet").log()
            assert [line.actor for line in log if line.actor] == ["ann", "bob"]

    run(main)


def test_an_unknown_name_is_refused_with_those_that_there_are(make_app: MakeApp) -> None:
    async def main() -> None:
        async with job(make_app(), done) as app:
            for act in (app.pauses.pause, app.pauses.resume):
                with pytest.raises(NoSuchNameError, match=r"This app has handler:Work, workflow:Job\."):
                    await act("Charge")
            with pytest.raises(NoSuchNameError, match="can be paused"):
                await app.pauses.pause("mainspring.FanOut")

    run(main)


def test_what_only_another_release_knows_can_be_resumed(make_app: MakeApp) -> None:
    async def main() -> None:
        async with job(make_app(), done) as old:
            await old.pauses.pause(Work)
        new = make_app()
        new.add(Clock())
        async with new:
            assert [one.what for one in await new.pauses.list()] == ["handler:Work"]
            await new.pauses.resume("Work")
            assert await new.pauses.list() == []

    run(main)


def test_a_pause_holds_when_its_message_is_renamed_with_an_alias(make_app: MakeApp) -> None:
    async def main() -> None:
        @message(name="NewWork", aliases=["Work"])
        @dataclass(frozen=True)
        class Renamed:
            id: str
            part: int

        async def carry_out(command: Renamed) -> None: ...

        carry_out.__annotations__["command"] = Renamed
        async with job(make_app(), done) as old:
            await old.pauses.pause(Work)
        new = make_app()
        new.add(Clock())
        new.handler(carry_out)
        async with new:
            assert internals_of(new).engine.dispatcher.capacity("NewWork") == 0
            assert await new.pauses.resume("NewWork")
            assert internals_of(new).engine.dispatcher.capacity("NewWork") > 0

    run(main)


def test_an_empty_reason_is_replaced(make_app: MakeApp) -> None:
    async def main() -> None:
        async with job(make_app(), done) as app:
            await app.pauses.pause(Work, "  ")
            assert [pause.reason for pause in await app.pauses.list()] == ["by an operator"]

    run(main)


def test_resuming_what_is_not_paused_changes_nothing(make_app: MakeApp) -> None:
    async def main() -> None:
        async with job(make_app(), done) as app:
            assert not await app.pauses.resume(Work)
            await app.pauses.pause(Job)
            before = await app.instance_at("mainspring.Pauses/fleet").row()
            assert not await app.pauses.resume(Work)
            assert (await app.instance_at("mainspring.Pauses/fleet").row()).position == before.position
            assert await app.pauses.resume(Job)
            assert await app.pauses.list() == []

    run(main)


def test_nothing_is_paused_where_somebody_has_ended_the_instance_that_remembers(make_app: MakeApp) -> None:
    async def main() -> None:
        async with job(make_app(), done) as app:
            await app.pauses.pause(Work)
            await app.instance_at("mainspring.Pauses/fleet").terminate()
            await internals_of(app).engine.look_at_pauses()
            assert await app.pauses.list() == []
            await app.pauses.pause(Job)
            assert [one.what for one in await app.pauses.list()] == ["workflow:Job"]

    run(main)


def test_an_instance_that_waits_for_what_is_paused_says_so(make_app: MakeApp) -> None:
    async def main() -> None:
        async with job(make_app(), done) as app:
            store, ref = internals_of(app).engine.store, Ref("Job", "j-1")
            await app.pauses.pause(Work, "the bank moves", actor="ann")
            await app.send(Start("j-1"))
            (pause,) = await pauses_of(store)
            assert (await reasons_of(store, [ref]))[0].cause == "paused"
            assert (await reasons_of(store, [ref]))[0].texts[0] == str(pause)
            assert await held_among(store, ref, [], await store.outputs(ref, timers=False, limit=10)) == [str(pause)]
            assert await not_going_on(store) == [str(pause)]
            await app.pauses.resume(Work)
            await until(lambda: has_status(app, "j-1", "completed"))
            assert await not_going_on(store) == []

    run(main)


def test_an_instance_whose_workflow_is_paused_says_so_when_something_waits_for_it(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        app = make_app(clock)
        app.add(Clock())
        async with app:
            store, ref = internals_of(app).engine.store, Ref("Clock", "c-1")
            await app.send(Wind("c-1"))
            await app.pauses.pause(Clock)
            assert (await reasons_of(store, [ref]))[0].cause == "timer"
            clock.advance(61)
            assert (await reasons_of(store, [ref]))[0].cause == "paused"

    run(main)


def test_who_waits_in_vain_is_told_of_the_pause(make_app: MakeApp) -> None:
    async def main() -> None:
        app = job(make_app(), done)
        app.add(Clock())
        async with app:
            await app.pauses.pause(Clock, "we wind it anew")
            with pytest.raises(WaitTimeoutError, match=r"the workflow Clock is paused since .*: we wind it anew"):
                await app.request(Wind("c-1"), timeout=timedelta(milliseconds=1))
            await app.pauses.pause(Work)
            await app.send(Start("j-1"))
            with pytest.raises(WaitTimeoutError, match="the handler Work is paused"):
                await app.instance(Job, "j-1").result(timedelta(milliseconds=1))

    run(main)
