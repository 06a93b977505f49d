"""Requests that get no reply: whoever asks is told so, and why; and that is never told of one that comes."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from mainspring import Complete, Decisions, Event, Mainspring, Reply, Workflow
from mainspring.app.internals import internals_of
from mainspring.engine.inputs.pending import Pending
from mainspring.engine.outputs.awaited_ends import ELSEWHERE_SECONDS, AwaitedEnds
from mainspring.errors import InstanceSuspendedError, NoReplyError, NoSuchInstanceError
from mainspring.port.records import Ref
from mainspring.testing.clock import VirtualClock
from tests.engine.coordination.test_replies import Answer, Asked
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until


@dataclass(frozen=True)
class Begin:
    counter: str


@dataclass(frozen=True)
class Question:
    counter: str


@dataclass(frozen=True)
class Breaks:
    counter: str


@dataclass(frozen=True)
class Shut:
    counter: str


@dataclass(frozen=True)
class Passing:
    counter: str


class Counter(Workflow[Begin | Question | Breaks | Shut | Passing, Asked, Answer]):
    """Takes questions and answers none of them, unless it is shut."""

    begins = (Begin, Passing)
    initial_state = Asked()

    def route(self, message: Begin | Question | Breaks | Shut | Passing) -> str:
        return message.counter

    def evolve(self, state: Asked, event: Event[Any, Any]) -> None:
        return None

    def decide(self, message: Begin | Question | Breaks | Shut | Passing, state: Asked) -> Decisions[Any, Answer]:
        match message:
            case Breaks():
                raise ValueError("broken")
            case Shut():
                return [Reply(Answer("shut")), Complete()]
            case Passing():
                return [Complete()]
            case _:
                return []


def test_a_request_to_an_instance_that_is_suspended_by_a_later_step_says_so_at_once(make_app: MakeApp) -> None:
    async def main() -> None:
        client, app = counters(make_app), counters(make_app)
        await client.start(work=False)
        async with app:
            for asked, id in ((app, "here"), (client, "elsewhere")):
                waiting = await asking(app, asked, id)
                await app.send(Breaks(id))
                await until(waiting.done)
                with pytest.raises(InstanceSuspendedError, match="broken"):
                    waiting.result()
        await client.stop()

    run(main)


def test_a_request_to_an_instance_that_ends_without_a_reply_says_so_at_once(make_app: MakeApp) -> None:
    async def main() -> None:
        client, app = counters(make_app), counters(make_app)
        await client.start(work=False)
        async with app:
            for asked, id in ((app, "here"), (client, "elsewhere")):
                waiting = await asking(app, asked, id)
                await app.send(Shut(id))
                await until(waiting.done)
                with pytest.raises(NoReplyError, match="has completed and does not reply to 'q'"):
                    waiting.result()
                with pytest.raises(NoReplyError):
                    await asked.request(Question(id), id="after the end")
        await client.stop()

    run(main)


def test_whoever_has_no_time_to_look_again_is_told_that_no_reply_comes(make_app: MakeApp) -> None:
    async def main() -> None:
        async with counters(make_app) as app:
            with pytest.raises(NoReplyError, match="has completed"):
                await app.request(Passing("c-1"), timeout=timedelta(milliseconds=1))

    run(main)


def test_whoever_has_no_time_to_look_again_is_told_that_it_is_suspended(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        client, app = counters(make_app, clock), counters(make_app, clock)
        await client.start(work=False)
        async with app:
            waiting = await asking(app, client, "c-1", timedelta(milliseconds=100))
            await until(internals_of(client).engine.ends.anybody.is_set)  # its time counts
            await app.send(Breaks("c-1"))
            clock.advance(0.1)
            await until(waiting.done)
            with pytest.raises(InstanceSuspendedError, match="broken"):
                waiting.result()
        await client.stop()

    run(main)


def test_whoever_has_no_time_to_look_again_gets_a_reply_that_is_there(make_app: MakeApp) -> None:
    async def main() -> None:
        client, app = counters(make_app), counters(make_app)
        await client.start(work=False)
        async with app:
            await app.send(Begin("c-1"))
            answered = internals_of(client).engine.intake.answered

            async def is_kept() -> bool:
                return (await internals_of(app).engine.dispatcher.replies.kept("q"))[0]

            async def answered_late(pending: Pending) -> Any:
                status = await answered(pending)
                await until(is_kept)
                return status

            internals_of(client).engine.intake.answered = answered_late  # type: ignore[method-assign]
            reply = await client.request(Shut("c-1"), id="q", timeout=timedelta(microseconds=1))
            assert reply == Answer("shut")
        await client.stop()

    run(main)


def test_a_request_that_is_sent_again_hears_at_once_that_no_reply_comes(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()  # it stands still, so nobody looks again
        client, app = counters(make_app, clock), counters(make_app, clock)
        await client.start(work=False)
        async with app:
            await app.send(Passing("c-1"))
            for asked in (app, client, app, client):
                with pytest.raises(NoReplyError):
                    await at_once(asked.request(Question("c-1"), id="to one that has ended"))
                with pytest.raises(NoSuchInstanceError):
                    await at_once(asked.request(Question("nobody"), id="to nobody"))
        await client.stop()

    run(main)


async def at_once(asking: Coroutine[Any, Any, Any]) -> Any:
    task = asyncio.create_task(asking)
    await until(task.done)
    return task.result()


async def nobody_looks(_: AwaitedEnds) -> None:
    return


def test_an_end_is_heard_by_whoever_looks_for_the_reply_meanwhile(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        client, app = counters(make_app, clock), counters(make_app, clock)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(AwaitedEnds, "ask", nobody_looks)  # the look for all comes when it is called
            await client.start(work=False)
        async with app:
            waiting = await asking(app, client, "c-1")
            await until(internals_of(client).engine.ends.anybody.is_set)
            looks, goes_on = asyncio.Event(), asyncio.Event()
            replies = internals_of(client).engine.dispatcher.replies
            kept = replies.kept

            async def kept_slowly(request: str, ref: Ref | None = None) -> tuple[bool, Any]:
                looks.set()
                await goes_on.wait()
                return await kept(request, ref)

            replies.kept = kept_slowly  # type: ignore[method-assign]
            await app.send(Shut("c-1"))
            clock.advance(ELSEWHERE_SECONDS)
            await looks.wait()
            await internals_of(client).engine.ends.ask()
            goes_on.set()
            await until(waiting.done)
            with pytest.raises(NoReplyError):
                waiting.result()
        await client.stop()

    run(main)


def counters(make_app: MakeApp, clock: VirtualClock | None = None) -> Mainspring:
    app = make_app(clock)
    app.add(Counter())
    return app


async def asking(
    app: Mainspring, asked: Mainspring, id: str, timeout: timedelta = timedelta(days=1)
) -> asyncio.Task[Any]:
    """Return a request that is taken, and waits for its reply."""

    async def is_taken() -> bool:
        return any(
            row.type == "Question" for row in await internals_of(app).engine.store.stream(Ref("Counter", id), 0, 100)
        )

    await app.send(Begin(id))
    waiting = asyncio.create_task(asked.request(Question(id), id="q", timeout=timeout))
    await until(is_taken)
    return waiting


def test_a_request_that_is_answered_as_its_instance_ends_gets_the_reply(make_app: MakeApp) -> None:
    async def main() -> None:
        app = make_app()
        app.add(Counter())
        async with app:
            await app.send(Begin("c-1"))
            assert await app.request(Shut("c-1")) == Answer("shut")
            with pytest.raises(NoReplyError):
                await app.request(Shut("c-1"))

    run(main)


def test_a_request_to_an_id_that_nobody_has_says_so(make_app: MakeApp) -> None:
    async def main() -> None:
        app = make_app()
        app.add(Counter())
        async with app:
            with pytest.raises(NoSuchInstanceError):
                await app.request(Question("nobody"))
            assert len(await app.dead_letters()) == 1
            with pytest.raises(NoSuchInstanceError):
                await app.request(Question("nobody"), must_exist=True)
            assert len(await app.dead_letters()) == 1, "whoever asks for it leaves none"
            receipt = await app.send(Question("nobody"))
            with pytest.raises(NoSuchInstanceError):
                await receipt.result()

    run(main)
