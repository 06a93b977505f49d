"""Requests by which an instance that has ended begins anew: whoever looks for the reply meanwhile waits on."""

import asyncio
from datetime import timedelta
from typing import Any, ClassVar

import pytest

from mainspring import Complete, Decisions, Event, Mainspring, Reply, Workflow
from mainspring.app import requests
from mainspring.app.internals import internals_of
from mainspring.port.records import Ref
from tests.engine.coordination.test_no_reply import Shut
from tests.engine.coordination.test_replies import Answer, AnswerNow, Ask, Asked
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until


class Window(Workflow[Ask | AnswerNow | Shut, Asked, Answer]):
    """Is opened by whoever asks, again and again."""

    begins = Ask
    again = "anew"
    mode: ClassVar[Any] = {Ask: "inbox", AnswerNow: "inbox"}
    initial_state = Asked()

    def route(self, message: Ask | AnswerNow | Shut) -> str | None:
        return message.counter if isinstance(message, Shut) else message.desk

    def evolve(self, state: Asked, event: Event[Any, Answer]) -> Asked | None:
        return None

    def decide(self, message: Ask | AnswerNow | Shut, state: Asked) -> Decisions[Any, Answer]:
        match message:
            case Ask():
                return []
            case AnswerNow(_, to):
                return [Reply(Answer("at last"), to=to)]
            case Shut():
                return [Complete()]


@pytest.fixture(autouse=True)
def looked_for_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let whoever waits look for what happens elsewhere at every moment."""
    for place in ("mainspring.app.requests", "mainspring.engine.engine"):
        monkeypatch.setattr(f"{place}.ELSEWHERE_SECONDS", 0.01)


def windows(make_app: MakeApp) -> Mainspring:
    app = make_app()
    app.add(Window())
    return app


async def is_open(app: Mainspring) -> bool:
    return bool(await app.instances(workflow="Window", status="running"))


async def shut(make_app: MakeApp) -> None:
    async with windows(make_app) as app:
        await app.send(Ask("w-1"))
        await until(lambda: is_open(app))
        await app.send(Shut("w-1"))
        assert (await app.instance(Window, "w-1").row()).status == "completed"


def test_a_request_by_which_an_instance_begins_anew_while_it_is_looked_for_waits_for_its_reply(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        await shut(make_app)
        client, worker = windows(make_app), windows(make_app)
        await client.start(work=False)
        store, taken, looked = internals_of(client).engine.store, asyncio.Event(), False

        def then_it_is_taken(read: Any) -> Any:
            async def first(*args: Any, **options: Any) -> Any:
                nonlocal looked
                found = await read(*args, **options)
                if not looked:
                    looked = True
                    await worker.start()
                    await until(lambda: is_open(worker))
                    taken.set()
                return found

            return first

        for name in ("inbox", "outputs"):
            monkeypatch.setattr(store, name, then_it_is_taken(getattr(store, name)))
        waiting = asyncio.create_task(client.request(Ask("w-1"), id="r-1", timeout=timedelta(days=1)))
        await taken.wait()
        await worker.send(AnswerNow("w-1", to="r-1"))
        assert await waiting == Answer("at last")
        await worker.stop()
        await client.stop()

    run(main)


def test_a_request_that_may_stand_behind_many_others_waits_for_its_reply(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "INPUTS", 1)

    async def main() -> None:
        await shut(make_app)
        client = windows(make_app)
        await client.start(work=False)
        await client.send(AnswerNow("w-1"))
        looks, inbox = list[Ref](), internals_of(client).engine.store.inbox

        async def counted(ref: Ref, limit: int) -> Any:
            looks.append(ref)
            return await inbox(ref, limit)

        monkeypatch.setattr(internals_of(client).engine.store, "inbox", counted)
        waiting = asyncio.create_task(client.request(Ask("w-1"), id="r-1", timeout=timedelta(days=1)))
        await until(lambda: len(looks) > 1 or waiting.done())
        assert not waiting.done()
        async with windows(make_app) as app:
            await until(lambda: is_open(app))
            await app.send(AnswerNow("w-1", to="r-1"))
            assert await waiting == Answer("at last")
        await client.stop()

    run(main)
