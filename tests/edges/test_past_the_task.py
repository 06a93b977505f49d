"""Four eyes: what answers a task is answered there, and cannot come in by another door unless the workflow opens it."""

import asyncio
import hmac
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Never

import httpx
import pytest

import tests.edges.leave_questions
from mainspring import (
    Ask,
    ChildCompleted,
    ChildFailed,
    Complete,
    Decisions,
    Envelope,
    Event,
    Fail,
    Mainspring,
    SendFailed,
    Workflow,
)
from mainspring.app.signatures import Hmac
from mainspring.brokers import Brokers, Outgoing
from mainspring.brokers.memory import MemoryBroker
from mainspring.errors import NotFromOutsideError, OperationError
from mainspring.testing.samples import Asking, Leave, LeaveRequests, RequestLeave
from mainspring.web.access import Access, Token
from mainspring.web.api import api
from tests.edges.web.support import asked, served
from tests.engine.coordination.expenses import Approve, Expenses, Open, Submit
from tests.support.running import run
from tests.support.waiting import until

SECRET = "a-secret-of-some-length"  # noqa: S105  of these tests
GRANTED = {"leave_id": "l-1", "granted": True}
# Ann has a program's token, and may answer no task: `send` is all that she may.
ANN = {"authorization": "Bearer the-secret-of-ann-is-long"}
ACCESS = Access(tokens=[Token.of("the-secret-of-ann-is-long", name="ann", role="worker")])


class OpenLeave(LeaveRequests):
    """The same, where another system may grant leave too."""

    name = "LeaveRequests"
    from_outside = RequestLeave | Leave


class NarrowLeave(LeaveRequests):
    """The same, which begins by its own app's code alone."""

    from_outside = ()


def app_of(folder: Path, *workflows: Workflow[Any, Any, Any]) -> Mainspring:
    app = Mainspring(f"sqlite:///{folder / 'leave.db'}")
    app.add(*workflows)
    return app


@asynccontextmanager
async def requested(app: Mainspring) -> AsyncGenerator[httpx.AsyncClient]:
    """Ann has asked for leave, by HTTP."""
    async with served(app, access=ACCESS) as client:
        asked = await client.post("/api/messages/RequestLeave", json={"leave_id": "l-1"}, headers=ANN)
        assert asked.status_code == 200
        yield client


def enveloped(**attributes: Any) -> dict[str, Any]:
    return {"specversion": "1.0", "id": "7", "source": "/hr", "type": "Leave", "data": GRANTED, **attributes}


async def is_open(app: Mainspring) -> bool:
    return [task.id for task in await app.tasks.list()] == ["LeaveRequests/l-1/3"]


WAYS = {
    "a message": ("messages/Leave", GRANTED),
    "an event": ("events/Leave", GRANTED),
    "a request": ("requests/Leave", GRANTED),
    "an envelope": ("envelopes", enveloped()),
    "a command": ("envelopes", enveloped(kind="command")),
    "a reply to the instance": ("envelopes", enveloped(instance="LeaveRequests/l-1")),
    "a result of the instance": (
        "envelopes",
        enveloped(kind="result", instance="LeaveRequests/l-1", causationid="LeaveRequests/l-1/3"),
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_nobody_answers_her_own_task_by_http(way: str, tmp_path: Path) -> None:
    path, body = WAYS[way]

    async def use() -> None:
        app = app_of(tmp_path, LeaveRequests())
        async with requested(app) as client:
            refused = await client.post(f"/api/{path}", json=body, headers=ANN)
            assert refused.status_code == 403, refused.text
            assert refused.json()["type"] == "urn:mainspring:error:NotFromOutsideError"
            assert "it answers a task" in refused.json()["detail"]
            assert "`from_outside`" in refused.json()["detail"]
            assert await is_open(app)
            # People answer as before.
            done = await app.tasks.complete(
                "LeaveRequests/l-1/3", Leave("l-1", granted=False), actor="bob", roles=["manager"]
            )
            assert done.first

    run(use)


@pytest.mark.parametrize("way", WAYS)
def test_a_workflow_that_allows_it_takes_the_answer_past_the_task(way: str, tmp_path: Path) -> None:
    path, body = WAYS[way]

    async def use() -> None:
        app = app_of(tmp_path, OpenLeave())
        async with requested(app) as client:
            wait = "?wait=0.01" if path.startswith("requests") else ""  # nobody replies to it
            taken = await client.post(f"/api/{path}{wait}", json=body, headers=ANN)
            assert taken.status_code == (409 if wait else 200), taken.text
            assert await app.instance(OpenLeave, "l-1").result() == Leave("l-1", granted=True)

    run(use)


def test_a_workflow_that_names_what_it_takes_takes_nothing_else(tmp_path: Path) -> None:
    async def use() -> None:
        app = app_of(tmp_path, NarrowLeave())
        async with served(app, access=ACCESS) as client:
            refused = await client.post("/api/messages/RequestLeave", json={"leave_id": "l-1"}, headers=ANN)
            assert refused.status_code == 403
            assert "its `from_outside` does not name it" in refused.json()["detail"]
            await app.send(RequestLeave("l-1"))  # by the app's own code

    run(use)


def test_the_apps_own_code_sends_what_it_likes(tmp_path: Path) -> None:
    async def use() -> None:
        async with app_of(tmp_path, LeaveRequests()) as app:
            await app.send(RequestLeave("l-1"), actor="ann")
            await app.send(Leave("l-1", granted=True))
            assert await app.instance(LeaveRequests, "l-1").result() == Leave("l-1", granted=True)

    run(use)


def test_a_broker_s_message_is_no_answer_and_its_dead_letter_is_not_either(tmp_path: Path) -> None:
    broker = MemoryBroker()

    async def use() -> None:
        app = app_of(tmp_path, LeaveRequests())
        brokers = Brokers(app, "leave")
        brokers.add("main", broker)
        brokers.endpoint("inbox", "main", "leave.in")
        brokers.receive("inbox")
        async with app:
            await app.send(RequestLeave("l-1"), actor="ann")
            headers = {"ce-id": "7", "ce-source": "/hr", "ce-type": "Leave", "ce-actor": "bob"}
            await broker.publish([Outgoing("leave.in", "7", json.dumps(GRANTED).encode(), headers)])
            await until(app.dead_letters)
            (letter,) = await app.dead_letters()
            assert letter.reason == "its workflow does not take it from outside"
            for message in (None, Leave("l-1", granted=True)):
                with pytest.raises(NotFromOutsideError):
                    await app.retry_dead_letter(letter.id, message, actor="ops")
            assert await is_open(app)

    run(use)


def test_a_webhook_is_no_answer_and_its_dead_letter_is_not_either(tmp_path: Path) -> None:
    async def use() -> None:
        app = app_of(tmp_path, LeaveRequests())
        app.hook("hr", secrets=SECRET, scheme=Hmac("x-signature"))(Leave)
        body = json.dumps(GRANTED).encode()
        headers = {"x-signature": hmac.digest(SECRET.encode(), body, "sha256").hex()}
        async with requested(app) as client:
            told = await client.post("/api/hooks/hr", content=body, headers=headers)
            assert told.json() == {"status": "kept"}
            (letter,) = await app.dead_letters()
            assert "NotFromOutsideError" in (letter.error or "")
            with pytest.raises(NotFromOutsideError):
                await app.retry_dead_letter(letter.id)
            assert await is_open(app)

    run(use)


# ---- what cannot be read from the code


class Desk:
    """Something that an app hands to its workflows."""

    def question(self, answer: Any) -> Ask[Any]:
        return Ask("Leave?", answer, role="manager", excludes=("ann",))


class Silent(Workflow[RequestLeave | Leave, Asking, Leave]):
    """Everything but decide: what a class above asks would be read too."""

    begins = RequestLeave
    initial_state = Asking()

    def route(self, message: RequestLeave | Leave) -> str | None:
        return message.leave_id

    def evolve(self, state: Asking, event: Any) -> Asking | None:
        return None


class AsksByParameter(Silent):
    """Asks in a way that cannot be read, but can be seen."""

    name = "LeaveRequests"

    def decide(self, envelope: Envelope[RequestLeave | Leave], state: Any) -> Decisions[Any, Leave] | None:
        if isinstance(envelope.message, Leave):
            return [Complete(envelope.message)]
        return [Desk().question(Leave)]


class AsksByDesk(Silent):
    """Asks through an object that the code does not name."""

    name = "LeaveRequests"

    def __init__(self, desk: Any) -> None:
        self.desk = desk

    def decide(self, envelope: Envelope[RequestLeave | Leave], state: Any) -> Decisions[Any, Leave] | None:
        if isinstance(envelope.message, Leave):
            return [Complete(envelope.message)]
        return [self.desk.question(Leave)]


@pytest.mark.parametrize("workflow", [AsksByParameter(), AsksByDesk(Desk())])
def test_a_task_that_nobody_could_read_from_the_code_is_not_answered_past_it_either(
    workflow: Silent, tmp_path: Path
) -> None:
    async def use() -> None:
        app = app_of(tmp_path, workflow)
        async with requested(app) as client:
            refused = await client.post("/api/messages/Leave", json=GRANTED, headers=ANN)
            assert refused.status_code == 403, refused.text
            assert "it answers a task" in refused.json()["detail"]
            assert await is_open(app)

    run(use)


def test_what_may_be_an_answer_is_refused_before_anybody_was_asked(tmp_path: Path) -> None:
    async def use() -> None:
        async with served(app_of(tmp_path, AsksByParameter()), access=ACCESS) as client:
            refused = await client.post("/api/messages/Leave", json=GRANTED, headers=ANN)
            assert refused.status_code == 403, refused.text
            assert "so this may be one. Name Leave" in refused.json()["detail"]

    run(use)


REVIEW = Ask("Leave?", Leave, role="manager", excludes=("ann",))


class AsksByConstant(Silent):
    """Asks what stands in its module."""

    name = "LeaveRequests"

    def decide(self, envelope: Envelope[RequestLeave | Leave], state: Any) -> Decisions[Any, Leave] | None:
        return [Complete(envelope.message)] if isinstance(envelope.message, Leave) else [REVIEW]


class AsksByAttribute(Silent):
    """Asks through what its class holds."""

    name = "LeaveRequests"
    desk = Desk()

    def decide(self, envelope: Envelope[RequestLeave | Leave], state: Any) -> Decisions[Any, Leave] | None:
        return [Complete(envelope.message)] if isinstance(envelope.message, Leave) else [self.desk.question(Leave)]


class AsksBySubmodule(Silent):
    """Asks through a module of a package."""

    name = "LeaveRequests"

    def decide(self, envelope: Envelope[RequestLeave | Leave], state: Any) -> Decisions[Any, Leave] | None:
        if isinstance(envelope.message, Leave):
            return [Complete(envelope.message)]
        return [tests.edges.leave_questions.may_go("ann")]


@pytest.mark.parametrize("cls", [AsksByConstant, AsksByAttribute, AsksBySubmodule])
def test_a_process_that_never_asked_refuses_the_answer_too(cls: type[Silent], tmp_path: Path) -> None:
    """One that only serves HTTP, beside the worker: the code is all it knows."""

    async def use() -> None:
        async with app_of(tmp_path, cls()) as worker:
            await worker.send(RequestLeave("l-1"), actor="ann")
            await until(lambda: is_open(worker))
        server = app_of(tmp_path, cls())
        await server.start(work=False)
        try:
            async with asked(api(server, start=False, access=ACCESS)) as client:
                refused = await client.post("/api/messages/Leave", json=GRANTED, headers=ANN)
                assert refused.status_code == 403, refused.text
                assert refused.json()["type"] == "urn:mainspring:error:NotFromOutsideError"
                assert await is_open(server)
        finally:
            await server.stop()

    run(use)


def test_what_answers_in_an_older_version_is_refused_in_the_newer(tmp_path: Path) -> None:
    class Later(LeaveRequests):
        name = "LeaveRequests"
        version = 2

        def decide(self, envelope: Envelope[RequestLeave | Leave], state: Any) -> Decisions[Any, Leave] | None:
            return []

    async def use() -> None:
        app = app_of(tmp_path, LeaveRequests(), Later())
        async with served(app, access=ACCESS) as client:
            refused = await client.post("/api/messages/Leave", json=GRANTED, headers=ANN)
            assert refused.status_code == 403, refused.text

    run(use)


# ---- what else may be forged


Ends = SendFailed | ChildCompleted | ChildFailed


class Parent(Workflow[Submit | Ends, Open, Never]):
    """Is told of the ends of commands and children, and would end itself."""

    begins = Submit
    initial_state = Open()

    def route(self, message: Submit | Ends) -> str | None:
        return message.id if isinstance(message, Submit) else None

    def decide(self, message: Submit | Ends, state: Open) -> Decisions[Submit | Ends, Never] | None:
        return [] if isinstance(message, Submit) else [Fail("it was told so")]

    def evolve(self, state: Open, event: Event[Submit | Ends, Never]) -> Open | None:
        return None


FORGED = {
    "SendFailed": {"type": "Charge", "message_id": "Parent/e-1/3", "error": "no", "attempts": 1, "definite": True},
    "mainspring.ChildCompleted": {"child": "Child/c-1"},
    "mainspring.ChildFailed": {"child": "Child/c-1", "status": "failed", "reason": "no"},
}


@pytest.mark.parametrize("type", FORGED)
def test_nobody_outside_tells_what_became_of_a_command_or_a_child(type: str, tmp_path: Path) -> None:
    async def use() -> None:
        app = app_of(tmp_path, Parent())
        async with served(app, access=ACCESS) as client:
            await client.post("/api/messages/Submit", json={"id": "e-1"}, headers=ANN)
            past_route = enveloped(type=type, data=FORGED[type], instance="Parent/e-1")
            for path, body in ((f"messages/{type}", FORGED[type]), ("envelopes", past_route)):
                refused = await client.post(f"/api/{path}", json=body, headers=ANN)
                assert refused.status_code == 403, refused.text
                assert "only the engine knows" in refused.json()["detail"]
            assert (await app.instance(Parent, "e-1").row()).status == "running"

    run(use)


def test_what_a_person_answered_is_corrected_by_nobody_else(tmp_path: Path) -> None:
    async def use() -> None:
        async with app_of(tmp_path, Expenses()) as app:
            await app.send(Submit("e-1"), actor="ann")
            (task,) = await app.tasks.list()
            await app.instance(Expenses, "e-1").suspend("to let the answer wait")
            await app.tasks.complete(task.id, Approve("e-1", "no, by no means"), actor="bob", roles=["manager"])
            await app.instance(Expenses, "e-1").terminate("it is over")
            await until(app.dead_letters)
            (letter,) = await app.dead_letters()
            with pytest.raises(OperationError, match="is bob's answer"):
                await app.retry_dead_letter(letter.id, Approve("e-1", "yes"), actor="ops")

    run(use)


def test_a_timers_message_comes_from_outside_unless_the_workflow_names_what_does(tmp_path: Path) -> None:
    """As it is written on the page: what is no answer is an input like any other."""

    class Closed(Expenses):
        name = "Expenses"
        from_outside = Submit

    async def status(workflow: Expenses) -> int:
        folder = tmp_path / type(workflow).__name__
        folder.mkdir()
        async with served(app_of(folder, workflow), access=ACCESS) as client:
            await client.post("/api/messages/Submit", json={"id": "e-1"}, headers=ANN)
            return (await client.post("/api/messages/Escalate", json={"id": "e-1"}, headers=ANN)).status_code

    assert [asyncio.run(status(workflow)) for workflow in (Expenses(), Closed())] == [200, 403]


class OtherLeave(OpenLeave):
    """Another workflow that takes the same messages, and lets another system grant leave."""

    name = "OtherLeave"


def test_only_the_workflow_that_is_named_says_what_comes_from_outside(tmp_path: Path) -> None:
    async def main() -> None:
        app = app_of(tmp_path, LeaveRequests(), OtherLeave())
        async with served(app, access=ACCESS) as client:
            for name in ("LeaveRequests", "OtherLeave"):
                asked = {"leave_id": "l-1"}
                begun = await client.post(f"/api/messages/RequestLeave?workflow={name}", json=asked, headers=ANN)
                assert begun.status_code == 200
            for way in ("messages", "requests"):
                refused = await client.post(f"/api/{way}/Leave?workflow=LeaveRequests", json=GRANTED, headers=ANN)
                assert refused.status_code == 403, refused.text
            neither = await client.post("/api/messages/Leave", json=GRANTED, headers=ANN)
            assert "taken by several workflows" in neither.json()["detail"]
            taken = await client.post("/api/messages/Leave?workflow=OtherLeave", json=GRANTED, headers=ANN)
            assert taken.status_code == 200, taken.text
            assert (await app.instance_at("OtherLeave/l-1").row()).status == "completed"
            assert (await app.instance_at("LeaveRequests/l-1").row()).status == "running"

    run(main)
