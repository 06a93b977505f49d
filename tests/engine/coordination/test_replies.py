"""Replies: to a workflow, to a caller outside, late, repeated, and to nobody."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from mainspring import (
    CancelSchedule,
    Complete,
    Decisions,
    Envelope,
    Event,
    Mainspring,
    Received,
    Reply,
    Schedule,
    Send,
    Workflow,
)
from mainspring.core.events import Replied
from mainspring.core.story import tell
from mainspring.errors import (
    InstanceSuspendedError,
    OperationError,
    UnexpectedReplyError,
    WaitTimeoutError,
)
from mainspring.testing.clock import VirtualClock
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until


@dataclass(frozen=True)
class Ask:
    desk: str
    asked_by: str = ""


@dataclass(frozen=True)
class AnswerNow:
    desk: str
    to: str | None = None


@dataclass(frozen=True)
class Answer:
    text: str


@dataclass(frozen=True)
class Asked:
    times: int = 0


class Desk(Workflow[Ask | AnswerNow, Asked, Answer]):
    """Answers when it is told to."""

    begins = (Ask, AnswerNow)
    initial_state = Asked()

    def route(self, message: Ask | AnswerNow) -> str | None:
        return message.desk

    def evolve(self, state: Asked, event: Event[Any, Any]) -> Asked | None:
        return Asked(state.times + 1) if isinstance(event, Received) else None

    def decide(self, message: Ask | AnswerNow, state: Asked) -> Decisions[Any, Answer] | None:
        match message:
            case Ask(desk) if desk.startswith("quick"):
                return [Reply(Answer(f"{state.times} before you"))]
            case Ask():
                return []
            case AnswerNow(_, to):
                return [Reply(Answer("at last"), to)]


@dataclass(frozen=True)
class Visit:
    visitor: str
    desk: str


@dataclass(frozen=True)
class NoAnswer:
    visitor: str


@dataclass(frozen=True)
class Told:
    text: str


@dataclass(frozen=True)
class Waiting:
    pass


class Visitor(Workflow[Visit | Answer | NoAnswer, Waiting, Ask | Told]):
    """Asks a desk, and waits for twenty seconds."""

    begins = Visit
    initial_state = Waiting()

    def route(self, message: Any) -> str | None:
        return getattr(message, "visitor", None)

    def evolve(self, state: Waiting, event: Event[Any, Any]) -> Waiting | None:
        return None

    def decide(self, message: Envelope[Visit | Answer | NoAnswer], state: Waiting) -> Decisions[Any, Any] | None:
        match message.message:
            case Visit(visitor, desk):
                return [Send(Ask(desk, visitor)), Schedule(NoAnswer(visitor), after=timedelta(seconds=20))]
            case Answer(text):
                return [CancelSchedule(NoAnswer), Complete(Told(f"{message.kind}: {text}"))]
            case NoAnswer():
                return [Complete(Told("nobody answered"))]


def office(app: Mainspring) -> Mainspring:
    app.add(Desk(), Visitor())
    return app


def test_a_reply_to_a_workflow_comes_as_a_reply_past_route(make_app: MakeApp) -> None:
    async def main() -> None:
        async with office(make_app()) as app:
            assert await (await app.send(Visit("v-1", "quick"))).result() == Told("reply: 0 before you")

    run(main)


def test_a_workflow_that_waits_for_a_reply_has_a_timeout_by_schedule_and_keeps_a_late_one(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with office(make_app(clock)) as app:
            receipt = await app.send(Visit("v-1", "slow"))
            await until(lambda: _asked(app, 1))
            clock.advance(21)
            assert await receipt.result() == Told("nobody answered")
            await app.send(AnswerNow("slow", to="Visitor/v-1/3"))
            await until(lambda: _kept(app))

    async def _kept(app: Mainspring) -> bool:
        last = (await app.instance(Visitor, "v-1").stream())[-1]
        return type(last.event).__name__ == "Kept" and last.kind == "reply"

    run(main)


def test_a_reply_is_of_the_type_that_its_caller_asks_for(make_app: MakeApp) -> None:
    async def main() -> None:
        async with office(make_app()) as app:
            assert (await app.request(Ask("quick"), Answer)).text == "0 before you"
            assert await app.request(Ask("quick"), Told | Answer) == Answer("1 before you")
            assert (await app.workflow(Desk).request(Ask("quick"), Answer)).text == "2 before you"

    run(main)


def test_a_reply_of_another_type_is_an_error_that_has_it(make_app: MakeApp) -> None:
    async def main() -> None:
        async with office(make_app()) as app:
            with pytest.raises(UnexpectedReplyError, match="to 'r-1', which is no Told") as caught:
                await app.request(Ask("quick"), Told, id="r-1")
            assert caught.value.reply == await app.reply("r-1") == Answer("0 before you")
            with pytest.raises(UnexpectedReplyError, match="which is no "):
                await app.workflow(Desk).request(Ask("quick"), Told | Waiting)

    run(main)


def test_a_caller_outside_waits_no_longer_than_it_wants_and_finds_a_late_reply(make_app: MakeApp) -> None:
    async def main() -> None:
        async with office(make_app()) as app:
            with pytest.raises(WaitTimeoutError, match="the reply to r-1"):
                await app.request(Ask("slow"), id="r-1", timeout=timedelta(milliseconds=20))
            with pytest.raises(OperationError, match="r-1 has no reply"):
                await app.reply("r-1")
            await app.send(AnswerNow("slow", to="r-1"))
            await until(lambda: _come(app))
            assert await app.reply("r-1") == Answer("at last")
            assert await app.request(Ask("slow"), id="r-1") == Answer("at last"), "asked again, answered the same"
            assert (await app.instance(Desk, "slow").state()).times == 2

    async def _come(app: Mainspring) -> bool:
        try:
            return await app.reply("r-1") is not None
        except OperationError:
            return False

    run(main)


def test_the_same_request_at_once_and_again_is_taken_once_and_answered_the_same(make_app: MakeApp) -> None:
    async def main() -> None:
        async with office(make_app()) as app:
            answers = await asyncio.gather(*(app.request(Ask("quick"), id="r-1") for _ in range(5)))
            assert set(answers) == {Answer("0 before you")}
        async with office(make_app()) as app:
            assert await app.request(Ask("quick"), id="r-1") == Answer("0 before you")
            assert (await app.instance(Desk, "quick").state()).times == 1

    run(main)


def test_a_reply_with_nobody_to_receive_it_is_marked_in_the_stream_that_people_read(make_app: MakeApp) -> None:
    async def main() -> None:
        async with office(make_app()) as app:
            receipt = await app.send(Ask("quick"))
            entry = (await receipt.stream())[-1]
            assert (type(entry.event), entry.undelivered) == (Replied, True)
            assert tell([entry])[0].message == "Answer(text='0 before you') (undelivered)"
            await until(lambda: _at_rest(app))

    run(main)


def test_a_reply_to_a_message_that_never_came_is_a_dead_letter_that_says_so(make_app: MakeApp) -> None:
    async def main() -> None:
        async with office(make_app()) as app:
            await app.send(AnswerNow("slow", to="r-404"))
            await until(lambda: _buried(app))
            [letter] = await app.dead_letters()
            assert letter.reason == "there is no receiver of the reply: r-404 is no sent input"

    async def _buried(app: Mainspring) -> bool:
        return bool(await app.dead_letters())

    run(main)


def test_a_reply_waits_for_a_worker_that_knows_the_workflow_that_asked(make_app: MakeApp) -> None:
    async def main() -> None:
        app = office(make_app())
        await app.start(work=False)
        await app.send(Visit("v-1", "quick"))
        await app.stop()
        desk = make_app()
        desk.add(Desk())
        async with desk:
            await until(lambda: _asked(desk, 1))
        async with office(make_app()) as app:
            assert await app.instance(Visitor, "v-1").result() == Told("reply: 0 before you")

    run(main)


async def _asked(app: Mainspring, times: int) -> bool:
    rows = await app.instances(workflow="Desk")
    return bool(rows) and (await app.instance(Desk, rows[0].id).state()).times >= times


async def _at_rest(app: Mainspring) -> bool:
    stats = await app.stats()
    return stats.outbox == stats.inbox == 0


def test_a_request_to_one_that_is_suspended_says_so_at_once_and_is_answered_when_it_goes_on(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        client = make_app(clock)
        client.add(Desk())
        await client.start(work=False)
        app = make_app(clock)
        app.add(Desk())
        async with app:
            desk = app.instance(Desk, "quick")
            await app.send(Ask("quick"))
            await desk.suspend("for a look")
            for id, asked in (("r-1", app), ("r-2", client)):
                with pytest.raises(InstanceSuspendedError, match="for a look"):
                    await asked.request(Ask("quick"), id=id)
            await desk.resume()
            assert await app.request(Ask("quick"), id="r-1") == Answer("1 before you")
            assert await app.request(Ask("quick"), id="r-2") == Answer("2 before you")
        await client.stop()

    run(main)
