"""Authors' code outside a step that does not return: it is named, ended, and has the same end as if it had raised."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import pytest

from mainspring import Complete, Event, FeedEntry, Mainspring, Publish, Received, Retry, Send, StartChild, Workflow
from mainspring import message as declared
from mainspring.app.internals import internals_of
from mainspring.app.states import state_at
from mainspring.engine.watching import code_watch
from mainspring.errors import RouteError
from mainspring.port.records import Ref
from tests.engine.jobs import Done, Start, Work, job
from tests.support.apps import MakeApp
from tests.support.heard import hearing
from tests.support.running import run
from tests.support.waiting import PATIENCE_SECONDS, until

endless = threading.Event()


def spin() -> None:
    """Go round until the test is over."""
    while endless.is_set():
        _turn()


def _turn() -> None:
    """Do nothing of use."""


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(code_watch, "STEP_SECONDS", 0.2)
    endless.set()
    yield
    endless.clear()


@dataclass(frozen=True)
class Ask:
    id: str
    how: str = ""


@dataclass(frozen=True)
class More:
    id: str
    how: str = ""


@dataclass(frozen=True)
class Asked:
    count: int = 0


class Plain(Workflow[Ask | More, Asked, Ask]):
    """Does what it is asked, and takes its time where that is `route` or `evolve`. It has no snapshots."""

    snapshot_every = None

    begins = Ask
    initial_state = Asked()

    def route(self, message: Ask | More) -> str | None:
        if message.how == "route":
            spin()
        return message.id

    def evolve(self, state: Asked, event: Event[Ask | More, Ask]) -> Asked | None:
        if isinstance(event, Received) and event.message.how == "evolve" and state.count > 1:
            spin()
        return Asked(state.count + 1)

    def decide(self, message: Ask | More, state: Asked) -> Any:
        return [Complete()] if message.how == "end" else []


class Asks(Plain):
    """One that can be searched."""

    name = "Asks"

    def attributes(self, state: Asked) -> dict[str, Any]:
        if state.count > 2:
            spin()
        return {"count": state.count}


@dataclass(frozen=True)
class Begin:
    id: str
    by: str


class Sender(Workflow[Begin, Asked, Ask]):
    """Sends a message whose route does not end to another workflow."""

    begins = Begin
    initial_state = Asked()

    def route(self, message: Begin) -> str | None:
        return message.id

    def evolve(self, state: Asked, event: Event[Begin, Ask]) -> Asked | None:
        return None

    def decide(self, message: Begin, state: Asked) -> Any:
        ask = Ask("a-1", "route")
        return [{"send": Send, "publish": Publish, "start": StartChild}[message.by](ask)]


def test_whoever_sends_what_cannot_be_routed_in_time_gets_a_route_error(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        app = make_app()
        app.add(Plain())
        async with app:
            with pytest.raises(
                RouteError, match=r"TimeoutError: Plain.route had not returned after 0.2 s, and was ended"
            ):
                await app.send(Ask("a-1", "route"))
            assert (await app.send(Ask("a-1"))).status == "stepped"

    run(main)
    assert "Plain.route goes on for 0 s; nothing else goes on in this worker" in caplog.text


@pytest.mark.parametrize("by", ["send", "publish"])
def test_what_another_workflow_cannot_route_in_time_is_a_dead_letter(by: str, make_app: MakeApp) -> None:
    async def main() -> None:
        app = make_app()
        app.add(Plain(), Sender())
        async with app:
            await app.send(Begin("s-1", by))
            await until(lambda: has_letters(app))
            (letter,) = await app.dead_letters()
            assert "Plain.route had not returned after 0.2 s" in (letter.error or "")

    run(main)


async def has_letters(app: Mainspring) -> bool:
    return (await app.stats()).dead_letters > 0


def test_a_child_that_cannot_be_routed_in_time_is_refused(make_app: MakeApp) -> None:
    async def main() -> None:
        app = make_app()
        app.add(Plain(), Sender())
        async with app:
            await app.send(Begin("s-1", "start"))
            await until(lambda: was_told(app, "Plain.route had not returned after 0.2 s"))

    run(main)


async def was_told(app: Mainspring, text: str) -> bool:
    return any(text in str(event) for event in await app.instance(Sender, "s-1").stream())


def test_attributes_without_an_end_suspend_their_instance(make_app: MakeApp) -> None:
    async def main() -> None:
        app = make_app()
        app.add(Asks())
        async with app:
            await app.send(Ask("a-1"))
            assert (await app.send(More("a-1"))).status == "suspended"
            (row,) = await app.instances(status="suspended")
            assert "Asks.attributes had not returned after 0.2 s" in (row.error or "")

    run(main)


def test_a_long_stream_whose_fold_has_no_end_suspends_its_instance(make_app: MakeApp) -> None:
    async def main() -> None:
        endless.clear()
        first = make_app()
        first.add(Plain())
        async with first:
            await first.send(Ask("a-1"))
            await first.send_many([More("a-1", "evolve") for _ in range(120)])
        endless.set()
        second = make_app()
        second.add(Plain())
        async with second:
            assert (await second.send(More("a-1"))).status == "suspended"
            (row,) = await second.instances(status="suspended")
            assert "its step for 100 recorded events had not ended after 0.2 s" in (row.error or "")

    run(main)


def test_whoever_looks_at_a_state_whose_fold_has_no_end_is_told_so(make_app: MakeApp) -> None:
    async def main() -> None:
        endless.clear()
        app = make_app()
        app.add(Plain())
        async with app:
            await app.send(Ask("a-1"))
            await app.send_many([More("a-1", "evolve") for _ in range(3)])
            endless.set()
            (loaded,) = await internals_of(app).engine.store.load([Ref("Plain", "a-1")])
            assert loaded is not None
            shown = await state_at(app, loaded, 4)
            assert "its step for 4 recorded events at once had not ended after 0.2 s" in (shown.problem or "")

    run(main)


@declared(name="Work", version=2, upcasters=[lambda body: spin() or body])
@dataclass(frozen=True)
class NewWork:
    id: str
    part: int


class NewJob(Workflow[Start | Done, Asked, NewWork]):
    """The job of a release whose upcaster does not end."""

    name = "Job"
    begins = Start
    initial_state = Asked()

    def route(self, message: Start | Done) -> str | None:
        return message.id

    def evolve(self, state: Asked, event: Event[Any, Any]) -> Asked | None:
        return None

    def decide(self, message: Start | Done, state: Asked) -> Any:
        return []


async def idle(command: Work) -> Done:
    return Done(command.id, command.part)


def test_a_command_whose_upcaster_has_no_end_is_a_dead_letter(make_app: MakeApp) -> None:
    async def work(command: NewWork) -> None:
        raise AssertionError(command)

    async def main() -> None:
        sender = job(make_app(), idle)
        await sender.start(work=False)
        await sender.send(Start("j-1"))
        await sender.stop()
        app = make_app()
        app.add(NewJob())
        app.handler(work)
        async with app:
            await until(lambda: has_letters(app))
            (letter,) = await app.dead_letters()
            assert "the upcasters of Work had not returned after 0.2 s" in (letter.error or "")

    run(main)


@pytest.mark.parametrize("where", ["key", "fold"])
def test_a_projection_without_an_end_is_stopped_and_says_why(where: str, make_app: MakeApp) -> None:
    def key(entry: FeedEntry) -> str:
        if where == "key":
            spin()
        return entry.instance

    async def main() -> None:
        app = make_app()
        app.add(Plain())

        @app.projections.add(key=key)
        def counts(document: Asked | None, entry: FeedEntry) -> Asked:  # pyright: ignore[reportUnusedFunction]
            spin()
            return Asked()

        async with app:
            await app.send(Ask("a-1"))
            await until(lambda: is_stopped(app))
            status = await app.projections("counts").status()
            assert status.live is not None
            assert "the projection counts had not returned after 0.2 s" in (status.live.error or "")
            assert (await app.send(Ask("a-2"))).status == "stepped"

    run(main)


async def is_stopped(app: Mainspring) -> bool:
    return (await app.projections("counts").status()).stopped


def test_an_idempotency_key_without_an_end_fails_its_command(make_app: MakeApp) -> None:
    def key(command: Work) -> str:
        spin()
        return command.id

    async def work(command: Work) -> Done:
        return Done(command.id, command.part)

    async def main() -> None:
        async with job(make_app(), work, name="work", idempotency_key=key, retry=Retry(max_attempts=1)) as app:
            await app.send(Start("j-1"))
            await until(lambda: has_letters(app))
            (letter,) = await app.dead_letters()
            assert "the idempotency key of work had not returned after 0.2 s" in (letter.error or "")

    run(main)


def test_an_async_handler_that_blocks_the_event_loop_is_named(make_app: MakeApp) -> None:
    async def main() -> None:
        async def work(command: Work) -> Done:
            assert heard.first.wait(PATIENCE_SECONDS)
            return Done(command.id, command.part)

        async with job(make_app(), work, name="work") as app:
            await (await app.send(Start("j-1"))).result()

    with hearing("mainspring.engine", "has blocked the event loop") as heard:
        run(main)
    (record,) = heard.records
    assert record.levelno == logging.WARNING
    assert record.getMessage().startswith("the handler work has blocked the event loop for 0 s, at ")


def test_a_busy_loop_that_answers_is_not_said_to_be_blocked(
    caplog: pytest.LogCaptureFixture, make_app: MakeApp
) -> None:
    async def main() -> None:
        async with job(make_app(), idle) as app:
            begun = time.monotonic()
            while time.monotonic() < begun + 1:
                await app.stats()
                await asyncio.sleep(0)

    run(main)
    assert "has blocked the event loop" not in caplog.text
