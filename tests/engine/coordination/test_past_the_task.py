"""Four eyes where no code shows the task: what comes from outside answers none that is open, in whatever process."""

import types
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from mainspring import Ask, Complete, Decisions, Envelope, Mainspring, Workflow, message
from mainspring.engine.stepping.duplicates import PAST_ITS_TASK
from mainspring.errors import NotFromOutsideError
from mainspring.purity.task_answers import answers_in
from mainspring.testing.samples import Asking, Leave, RequestLeave
from mainspring.web.access import Access, Token
from tests.edges.web.support import served
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until

# Ann has a program's token, and may answer no task: `send` is all that she may.
ANN = {"authorization": "Bearer the-secret-of-ann-is-long"}
OPS = {"authorization": "Bearer the-secret-of-ops-is-long"}
ACCESS = Access(
    tokens=[
        Token.of("the-secret-of-ann-is-long", name="ann", role="worker"),
        Token.of("the-secret-of-ops-is-long", name="ops", role="operator"),
    ]
)
GRANTED = {"leave_id": "l-1", "granted": True}
TASK = "LeaveRequests/l-1/3"


class Desk:
    """Something that an app hands to its workflows."""

    def asked(self, id: str) -> list[Ask[Any]]:
        return [] if id.startswith("not-yet") else [self.question()]

    def question(self) -> Ask[Any]:
        return Ask("Leave?", Leave, role="manager", excludes=("ann",))


class Hidden(Workflow[RequestLeave | Leave, Asking, Leave]):
    """Asks in a way that its code does not show."""

    name = "LeaveRequests"
    begins = RequestLeave
    initial_state = Asking()

    def __init__(self, desk: Any) -> None:
        self.desk = desk

    def route(self, message: RequestLeave | Leave) -> str | None:
        return message.leave_id

    def decide(self, envelope: Envelope[RequestLeave | Leave], state: Any) -> Decisions[Any, Leave] | None:
        if isinstance(envelope.message, Leave):
            return [Complete(envelope.message)]
        return self.desk.asked(envelope.id)

    def evolve(self, state: Asking, event: Any) -> Asking | None:
        return None


class Reworded(Desk):
    """Another answer in the place of the one that is written."""

    def question(self) -> Ask[Any]:
        return replace(Ask[Any]("Leave?", RequestLeave, role="manager", excludes=("ann",)), answer=Leave)


class ByText(Desk):
    """A module that a text names."""

    def question(self) -> Ask[Any]:
        return getattr(import_module("tests.edges.leave_questions"), "may_" + "go")("ann")


class Allowed(Hidden):
    """The same, where another system may grant leave too."""

    name = "LeaveRequests"
    from_outside = RequestLeave | Leave


def app_of(make_app: MakeApp, workflow: Workflow[Any, Any, Any] | None = None) -> Mainspring:
    app = make_app()
    app.add(Hidden(Desk()) if workflow is None else workflow)
    return app


async def asked_elsewhere(make_app: MakeApp, workflow: Workflow[Any, Any, Any] | None = None) -> None:
    """Let another process ask: this one has never seen what answers."""
    async with app_of(make_app, workflow) as worker:
        await worker.send(RequestLeave("l-1"), actor="ann")
        await until(worker.tasks.list)


@asynccontextmanager
async def fresh(
    make_app: MakeApp, workflow: Workflow[Any, Any, Any] | None = None
) -> AsyncGenerator[tuple[Mainspring, httpx.AsyncClient]]:
    app = app_of(make_app, workflow)
    async with served(app, access=ACCESS) as client:
        yield app, client


async def is_open(app: Mainspring) -> bool:
    row = await app.instance_at("LeaveRequests/l-1").row()
    return row.status == "running" and [task.id for task in await app.tasks.list()] == [TASK]


def enveloped(**attributes: Any) -> dict[str, Any]:
    return {"specversion": "1.0", "id": "7", "source": "/hr", "type": "Leave", "data": GRANTED, **attributes}


WAYS = {
    "a message": ("messages/Leave", GRANTED),
    "an event": ("events/Leave", GRANTED),
    "a request": ("requests/Leave", GRANTED),
    "an envelope": ("envelopes", enveloped()),
    "a reply to the instance": ("envelopes", enveloped(instance="LeaveRequests/l-1")),
    "a result of the instance": (
        "envelopes",
        enveloped(kind="result", instance="LeaveRequests/l-1", causationid="LeaveRequests/l-1/3"),
    ),
}


def test_the_code_shows_nothing_of_it() -> None:
    """Or what follows would be refused for another reason."""
    assert answers_in(Hidden) == frozenset()


@pytest.mark.parametrize("way", WAYS)
def test_a_process_that_never_asked_and_cannot_read_it_takes_no_answer_past_the_task(
    make_app: MakeApp, way: str
) -> None:
    path, body = WAYS[way]

    async def use() -> None:
        await asked_elsewhere(make_app)
        async with fresh(make_app) as (app, client):
            refused = await client.post(f"/api/{path}", json=body, headers=ANN)
            assert refused.status_code == 403, refused.text
            assert refused.json()["type"] == "urn:mainspring:error:NotFromOutsideError"
            assert "it answers a task" in refused.json()["detail"]
            assert await is_open(app)
            assert await app.dead_letters() == []
            # People answer as before.
            done = await app.tasks.complete(TASK, Leave("l-1", granted=False), actor="bob", roles=["manager"])
            assert done.first
            assert await app.instance(Hidden, "l-1").result() == Leave("l-1", granted=False)

    run(use)


@pytest.mark.parametrize("desk", [Reworded(), ByText()])
def test_however_an_ask_is_made_its_answer_comes_through_its_task(make_app: MakeApp, desk: Desk) -> None:
    async def use() -> None:
        await asked_elsewhere(make_app, Hidden(desk))
        async with fresh(make_app, Hidden(desk)) as (app, client):
            refused = await client.post("/api/messages/Leave", json=GRANTED, headers=ANN)
            assert refused.status_code == 403, refused.text
            assert await is_open(app)

    run(use)


def test_the_apps_own_code_and_a_workflow_that_allows_it_go_past_the_task(make_app: MakeApp) -> None:
    async def use() -> None:
        await asked_elsewhere(make_app)
        async with fresh(make_app, Allowed(Desk())) as (app, client):
            taken = await client.post("/api/messages/Leave", json=GRANTED, headers=ANN)
            assert taken.status_code == 200, taken.text
            assert await app.instance(Allowed, "l-1").result() == Leave("l-1", granted=True)
        async with app_of(make_app) as app:
            await app.send(RequestLeave("l-2"), actor="ann")
            await app.send(Leave("l-2", granted=True))
            assert await app.instance(Hidden, "l-2").result() == Leave("l-2", granted=True)

    run(use)


def test_an_answer_that_waits_in_the_inbox_for_its_task_is_a_dead_letter(make_app: MakeApp) -> None:
    """Sent before its task was asked, and taken in the step behind that, perhaps in one batch with it."""

    async def use() -> None:
        async with app_of(make_app) as worker:
            await worker.send(RequestLeave("l-1"), id="not-yet")
            await worker.instance(Hidden, "l-1").suspend("to let all of it wait")
            await worker.send(RequestLeave("l-1"), actor="ann")
        async with fresh(make_app) as (app, client):
            waits = await client.post("/api/messages/Leave?id=early", json=GRANTED, headers=ANN)
            assert waits.json()["status"] == "suspended", waits.text
            await app.instance(Hidden, "l-1").resume()
            await until(app.dead_letters)
            (letter,) = await app.dead_letters()
            assert (letter.message_id, letter.reason, letter.actor) == ("early", PAST_ITS_TASK, "ann")
            (task,) = await app.tasks.list()
            assert (await app.instance(Hidden, "l-1").row()).status == "running"
            # It is what it was: neither as it is, nor corrected by an operator, does it become an answer.
            for correction in (b"", b'{"leave_id": "l-1", "granted": true}'):
                url = f"/api/dead-letters/{letter.id}/retry"
                retried = await client.post(url, content=correction, headers=OPS)
                assert retried.status_code == 403, retried.text
            with pytest.raises(NotFromOutsideError):
                await app.retry_dead_letter(letter.id)
            assert [letter.id for letter in await app.dead_letters()] == [letter.id]
            done = await app.tasks.complete(task.id, Leave("l-1", granted=False), actor="bob", roles=["manager"])
            assert done.first

    run(use)


def test_a_dead_letter_from_inside_is_no_answer_when_somebody_has_corrected_it(make_app: MakeApp) -> None:
    async def use() -> None:
        async with fresh(make_app) as (app, client):
            await app.send(Leave("l-1", granted=False))  # there is no such instance yet
            (letter,) = await app.dead_letters()
            await app.send(RequestLeave("l-1"), actor="ann")
            url = f"/api/dead-letters/{letter.id}/retry"
            refused = await client.post(url, json=GRANTED, headers=OPS)
            assert refused.status_code == 403, refused.text
            assert await is_open(app)

    run(use)


def test_an_event_that_functions_hear_too_is_no_answer(make_app: MakeApp) -> None:
    """A publication stands between the two, and only hands on what came."""
    heard: list[Leave] = []

    async def use() -> None:
        await asked_elsewhere(make_app)
        app = app_of(make_app)

        @app.subscribe
        def listen(leave: Leave) -> None:
            heard.append(leave)

        async with served(app, access=ACCESS) as client:
            published = await client.post("/api/events/Leave", json=GRANTED, headers=ANN)
            assert published.status_code == 200, published.text
            await until(app.dead_letters)
            (letter,) = await app.dead_letters()
            assert letter.reason == PAST_ITS_TASK
            assert heard == [Leave("l-1", granted=True)]
            assert await is_open(app)

    run(use)


def test_a_type_that_was_renamed_since_it_was_asked_for_is_no_answer(make_app: MakeApp) -> None:
    @message(name="Leave")
    @dataclass(frozen=True)
    class Old(Leave): ...

    @message(name="Granted", aliases=["Leave"])
    @dataclass(frozen=True)
    class New(Leave): ...

    def hidden(answer: type[Any]) -> Workflow[Any, Any, Any]:
        class Asks(Desk):
            def question(self) -> Ask[Any]:
                return Ask("Leave?", answer, role="manager", excludes=("ann",))

        generic: Any = Workflow
        written = ("name", "begins", "initial_state", "__init__", "route", "decide", "evolve")
        members = {name: vars(Hidden)[name] for name in written}
        made: Any = types.new_class(
            "Renamed", (generic[RequestLeave | answer, Asking, answer],), exec_body=lambda body: body.update(members)
        )
        return made(Asks())

    async def use() -> None:
        await asked_elsewhere(make_app, hidden(Old))
        async with fresh(make_app, hidden(New)) as (app, client):
            refused = await client.post("/api/messages/Granted", json=GRANTED, headers=ANN)
            assert refused.status_code == 403, refused.text
            assert await is_open(app)

    run(use)


def test_what_answers_no_task_that_is_open_is_an_input_like_any_other(make_app: MakeApp) -> None:
    """An instance has asked, and other messages come from outside: nothing is taken from them."""

    async def use() -> None:
        await asked_elsewhere(make_app)
        async with fresh(make_app) as (app, client):
            for number in range(3):
                url = f"/api/messages/RequestLeave?id=not-yet-{number}"
                taken = await client.post(url, json={"leave_id": "l-1"}, headers=ANN)
                assert taken.json()["status"] == "stepped", taken.text
            assert await is_open(app)

    run(use)
