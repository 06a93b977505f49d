"""What programs do over HTTP."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from msgspec import convert, json

from mainspring import Envelope, Mainspring, RefuseAnswer, views
from mainspring.app.internals import internals_of
from mainspring.engine.fleet.standing import OpenBreaker, Standing, written
from mainspring.styles.history import HistoryWorkflow
from mainspring.styles.history_events import History
from mainspring.styles.history_words import CompleteWorkflow, HistoryCommand
from mainspring.testing.samples import Leave, LeaveRequests
from mainspring.web import models
from mainspring.web.api import api, described
from mainspring.web.served import Checked
from tests.edges.web.support import asked, counters, served
from tests.support.paths import ROOT

Client = httpx.AsyncClient


def serve(folder: Path, use: Callable[[Client], Awaitable[Any]], **settings: Any) -> Any:
    async def run() -> Any:
        async with served(counters(folder), **settings) as client:
            return await use(client)

    return asyncio.run(run())


async def count(client: Client, counter: str = "c-1", times: int = 1) -> None:
    for _ in range(times):
        answer = await client.post("/api/messages/Count", json={"counter": counter})
        assert answer.status_code == 200, answer.text


def test_a_message_is_taken_once_however_often_it_is_sent(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        sent = [await client.post("/api/messages/Count?id=m-1", json={"counter": "c-1"}) for _ in range(2)]
        assert [answer.json() for answer in sent] == [
            {"instance": "Counter/c-1", "status": "stepped", "message_id": "m-1"},
            {"instance": "Counter/c-1", "status": "duplicate", "message_id": "m-1"},
        ]
        other = await client.post("/api/messages/Count?id=m-1", json={"counter": "c-1"})
        assert convert(other.json(), models.Taken).status == "duplicate"

    serve(tmp_path, use)


def test_an_end_is_awaited(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        await count(client, times=3)
        ended = await client.get("/api/results/Counter/c-1")
        assert ended.json() == {"instance": "Counter/c-1", "result": {"counter": "c-1"}}
        await count(client, "c-2")
        waited = await client.get("/api/results/Counter/c-2?wait=0.01")
        assert (waited.status_code, waited.json()["type"]) == (504, "urn:mainspring:error:WaitTimeoutError")

    serve(tmp_path, use)


def test_instances_are_found_page_by_page(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        for number in range(5):
            await count(client, f"c/{number}")
        seen: list[str] = []
        after = 0
        while True:
            answer = await client.get(f"/api/instances?workflow=Counter&prefix=c/&limit=2&after={after}")
            page = json.decode(answer.content, type=models.InstancePage)
            seen += [item.id for item in page.items]
            if page.next is None:
                break
            after = page.next
        assert seen == [f"c/{number}" for number in range(5)]

    serve(tmp_path, use)


def test_an_instance_is_looked_at_from_all_sides(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        await count(client, "c/1", times=2)
        instance = json.decode((await client.get("/api/instances/Counter/c/1")).content, type=views.InstanceInfo)
        assert (instance.id, instance.position, instance.state) == ("c/1", 3, "Counted")
        stream = json.decode((await client.get("/api/streams/Counter/c/1")).content, type=models.StreamPage)
        assert [event.event for event in stream.items] == ["Began", "InitiatedBy", "Received"]
        states = [(await client.get(f"/api/states/Counter/c/1?at={at}")).json()["state"] for at in (2, 3)]
        assert states == [{"times": 1}, {"times": 2}]
        waiting = json.decode((await client.get("/api/waiting/Counter/c/1")).content, type=views.Waiting)
        assert (waiting.inbox, waiting.outbox, waiting.timers) == ([], [], [])

    serve(tmp_path, use)


def test_a_worker_tells_what_it_holds_back(tmp_path: Path) -> None:
    async def run() -> None:
        app = counters(tmp_path)
        async with served(app) as client:
            now_us = internals_of(app).engine.store.now_us()
            held = Standing(breakers=(OpenBreaker("Charge", now_us, 5, "TimeoutError", now_us, 41),))
            assert await internals_of(app).engine.store.heartbeat(
                internals_of(app).engine.committer.worker, written(held)
            )
            (found,) = (await client.get("/api/workers")).json()
            (told,) = convert(found, models.WorkerDocument).held_back
            assert told.startswith("Charge is held back by an open breaker since")
            assert told.endswith("(TimeoutError, 5 in a row); 41 commands wait; the next probe now")

    asyncio.run(run())


def test_an_operation_is_recorded_with_its_actor(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        await count(client)
        done = await client.post(
            "/api/operations/suspend/Counter/c-1",
            json={"reason": "to look at it"},
            headers={"x-mainspring-actor": "ann"},
        )
        assert done.json()["status"] == "suspended"
        stream = (await client.get("/api/streams/Counter/c-1")).json()["items"]
        assert (stream[-1]["event"], stream[-1]["actor"], stream[-1]["reason"]) == ("Suspended", "ann", "to look at it")
        again = await client.post("/api/operations/suspend/Counter/c-1")
        assert (again.status_code, again.json()["type"]) == (409, "urn:mainspring:error:OperationError")

    serve(tmp_path, use)


def test_a_task_is_answered_by_its_form(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        await client.post("/api/messages/RequestLeave", json={"leave_id": "l-1"}, headers={"x-mainspring-actor": "bob"})
        page = json.decode((await client.get("/api/tasks?role=manager")).content, type=models.TaskPage)
        [task] = page.items
        shown = json.decode((await client.get(f"/api/tasks/{task.id}")).content, type=models.TaskWithForms)
        assert [(field.name, field.value) for field in shown.forms[0].fields] == [
            ("leave_id", "l-1"),
            ("granted", None),
        ]
        unnamed = await client.post(f"/api/task-answers/{task.id}", json={"answer": "Leave", "fields": {}})
        assert unnamed.status_code == 422
        answered = [
            await client.post(
                f"/api/task-answers/{task.id}",
                json={"answer": "Leave", "fields": {"granted": granted}},
                headers={"x-mainspring-actor": who},
            )
            for who, granted in (("ann", True), ("cid", False))
        ]
        outcomes = [json.decode(each.content, type=views.TaskOutcome) for each in answered]
        assert [(each.first, each.answered_by, each.message["granted"]) for each in outcomes] == [
            (True, "ann", True),
            (False, "ann", True),
        ]

    serve(tmp_path, use)


def test_an_answer_that_the_workflow_refuses_is_a_problem_with_its_reason_and_the_task_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decide = LeaveRequests.decide

    def guarded(self: LeaveRequests, envelope: Envelope[Any], state: Any) -> Any:
        refuses = isinstance(envelope.message, Leave) and not envelope.message.granted
        return [RefuseAnswer("ask why first")] if refuses else decide(self, envelope, state)

    async def use(client: Client) -> None:
        await client.post("/api/messages/RequestLeave", json={"leave_id": "l-1"})
        answers, boss = "/api/task-answers/LeaveRequests/l-1/3", {"x-mainspring-actor": "bob"}
        no = {"answer": "Leave", "fields": {"granted": False}}
        refused = await client.post(answers, json=no, headers=boss)
        assert refused.status_code == 409
        problem = json.decode(refused.content, type=models.ProblemDocument)
        assert (problem.title, problem.reason) == ("refused", "guard")
        assert "ask why first" in problem.detail
        assert (await client.get("/api/tasks/LeaveRequests/l-1/3")).json()["status"] == "open"
        explained = (await client.get("/api/explanations/LeaveRequests/l-1")).json()
        assert explained["events"][0]["event"] == "AnswerRefused", explained
        yes = {"answer": "Leave", "fields": {"granted": True}}
        assert (await client.post(answers, json=yes, headers=boss)).json()["first"] is True
        entries = (await client.get("/api/streams/LeaveRequests/l-1")).json()["items"]
        (told,) = (entry for entry in entries if entry["event"] == "AnswerRefused")
        assert (told["actor"], told["kind"]) == ("bob", "answer")

    monkeypatch.setattr(LeaveRequests, "decide", guarded)
    serve(tmp_path, use)


def test_where_fields_are_hidden_the_reason_of_a_refused_answer_quotes_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decide = LeaveRequests.decide

    def quoting(self: LeaveRequests, envelope: Envelope[Any], state: Any) -> Any:
        refuses = isinstance(envelope.message, Leave)
        return [RefuseAnswer("card 4111 is not checked")] if refuses else decide(self, envelope, state)

    async def use(client: Client) -> None:
        await client.post("/api/messages/RequestLeave", json={"leave_id": "l-1"})
        no, boss = {"answer": "Leave", "fields": {"granted": False}}, {"x-mainspring-actor": "bob"}
        refused = await client.post("/api/task-answers/LeaveRequests/l-1/3", json=no, headers=boss)
        assert (refused.status_code, refused.json()["reason"]) == (409, "guard")
        assert "4111" not in refused.text

    monkeypatch.setattr(LeaveRequests, "decide", quoting)
    serve(tmp_path, use, redact=["card"])


def test_who_is_excluded_from_a_task_is_told_so(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        maker = {"x-mainspring-actor": "bob"}
        await client.post("/api/messages/RequestLeave", json={"leave_id": "l-1"}, headers=maker)
        [task] = (await client.get("/api/tasks")).json()["items"]
        refused = await client.post(f"/api/task-claims/{task['id']}", headers=maker)
        assert (refused.status_code, refused.json()["type"]) == (409, "urn:mainspring:error:TaskRefusedError")

    serve(tmp_path, use)


def test_a_dead_letter_is_seen_corrected_and_removed(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        await count(client, times=3)
        late = [await client.post("/api/messages/Count", json={"counter": "c-1"}) for _ in range(2)]
        assert {answer.json()["status"] for answer in late} == {"dead letter"}
        page = json.decode((await client.get("/api/dead-letters")).content, type=models.LetterPage)
        first, second = [letter.id for letter in page.items]
        still = await client.post(f"/api/dead-letters/{first}/retry")
        assert still.json() == {"id": first, "left": True}
        wrong = await client.post(f"/api/dead-letters/{first}/retry", json={"counter": 7})
        assert wrong.status_code == 422
        assert (await client.delete(f"/api/dead-letters/{second}")).json() == {"id": second, "left": False}
        assert (await client.get(f"/api/dead-letters/{second}")).status_code == 404
        assert len((await client.get("/api/dead-letters")).json()["items"]) == 1

    serve(tmp_path, use)


def test_the_app_tells_what_it_is_and_that_it_is_well(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        await count(client)
        stats = json.decode((await client.get("/api/stats")).content, type=views.Stats)
        assert (stats.instances, stats.workers) == ({"running": 1}, 1)
        workflows = [convert(each, models.WorkflowDocument) for each in (await client.get("/api/workflows")).json()]
        assert [(each.name, each.inputs) for each in workflows if each.name == "Counter"] == [("Counter", ["Count"])]
        assert [(await client.get(f"/api/{path}")).json() for path in ("health", "ready")] == [{"status": "ok"}] * 2
        assert (await client.get("/api/schedules")).json() == []

    serve(tmp_path, use)


def test_what_is_declared_sensitive_is_never_shown(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        await count(client)
        assert "c-1" not in (await client.get("/api/streams/Counter/c-1")).json()["items"][1]["message"].values()
        assert (await client.get("/api/states/Counter/c-1")).json()["state"] == {"times": "[redacted]"}

    serve(tmp_path, use, redact=["Count.counter", "times"])


BAD = [
    ("POST", "/api/messages/Count", b"{", 422),
    ("POST", "/api/messages/Count", b'{"counter": NaN}', 422),
    ("POST", "/api/messages/Count", b'{"counter": "c-1", "counter": "c-2"}', 422),
    ("POST", "/api/messages/Count", b"[" * 100_000, 422),
    ("POST", "/api/messages/Count", b'{"counter": "\xff"}', 422),
    ("POST", "/api/messages/Nothing", b"{}", 422),
    ("POST", "/api/messages/Count?id=", b'{"counter": "c-1"}', 422),
    ("POST", "/api/messages/Count", b" " * (2 * 1024 * 1024 + 1), 413),
    ("GET", "/api/instances?limit=100000", b"", 422),
    ("GET", "/api/instances?after=-1", b"", 422),
    ("GET", f"/api/instances?after={10**30}", b"", 422),
    ("GET", "/api/instances?status=asleep", b"", 422),
    ("GET", "/api/instances?attribute=nonsense", b"", 422),
    ("GET", "/api/instances?since=2026-01-01", b"", 422),
    ("GET", "/api/analytics?since=0001-01-01T00:00:00%2B23:59", b"", 422),
    ("GET", "/api/instances/Counter/%00", b"", 404),
    ("GET", "/api/instances/Counter/no%0Asuch", b"", 404),
    ("GET", "/api/instances/Nothing/c-1", b"", 404),
    ("GET", "/api/states/Counter/c-0?at=9", b"", 409),
    ("GET", "/api/streams/Counter/../../etc/passwd", b"", 404),
    ("GET", "/api/tasks/nothing", b"", 404),
    ("GET", "/api/tasks?after=nothing", b"", 404),
    ("POST", "/api/operations/explode/Counter/c-0", b"", 422),
    ("POST", "/api/operations/reset/Counter/c-0", b"", 422),
    ("POST", "/api/operations/resume/Counter/c-0", b"", 409),
    ("POST", "/api/schedules/none/pause", b"", 404),
    ("POST", "/api/pauses/none", b"", 404),
    ("POST", "/api/pauses/Counter", b'{"reason": 7}', 422),
    ("DELETE", "/api/pauses/none", b"", 404),
    ("GET", f"/api/dead-letters/{10**30}", b"", 422),
    ("DELETE", "/api/dead-letters/17", b"", 404),
    ("GET", "/api/dead-letters/17", b"", 404),
    ("POST", "/api/dead-letters/17/retry", b"", 404),
    ("GET", "/api/schedules/none/next", b"", 404),
    ("GET", "/api/nothing", b"", 404),
    ("PUT", "/api/stats", b"", 405),
]


def test_bad_input_is_a_problem_that_says_what_to_do(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        await count(client, "c-0")
        for method, path, body, status in BAD:
            answer = await client.request(method, path, content=body, headers={"content-type": "application/json"})
            case = f"{method} {path} {body[:30]!r}: {answer.text[:200]}"
            assert answer.headers["content-type"] == "application/problem+json", case
            problem = convert(answer.json(), models.ProblemDocument)
            assert (answer.status_code, problem.status) == (status, status), case
            assert problem.detail, case
            assert "Traceback" not in answer.text, case

    serve(tmp_path, use)


def test_a_route_is_made_when_it_is_first_asked_for_and_answers_the_same_before_as_after(tmp_path: Path) -> None:
    async def use(client: Client, app: FastAPI) -> None:
        made = {route.path: route for route in app.routes if isinstance(route, Checked)}
        methods = ["HEAD", "POST", "GET"] * 2
        statuses = [(await client.request(method, "/api/timers")).status_code for method in methods]
        assert statuses == [405, 405, 200] * 2
        assert [path for path, route in made.items() if "dependant" in vars(route)] == ["/api/timers"]
        assert made["/api/stats"].dependant.path == "/api/stats"
        with pytest.raises(AttributeError, match="Checked has no colour"):
            _ = made["/api/stats"].colour

    async def main() -> None:
        app = counters(tmp_path)
        made = api(app, start=False)
        async with app, asked(made) as client:
            await use(client, made)

    asyncio.run(main())


# ---- the description


def test_every_route_is_described_with_its_answers_and_stands_in_the_reference(tmp_path: Path) -> None:
    document = described(api(counters(tmp_path)))
    page = (ROOT / "docs/reference/http.md").read_text()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert f"`{method.upper()} {path}`" in page, f"{method} {path} is not in docs/reference/http.md"
            assert operation["description"], path
            content = operation["responses"]["200"]["content"]
            assert all("$ref" in str(each) for media, each in content.items() if media == "application/json"), path


def test_every_operation_says_what_it_does_shows_what_it_takes_and_names_its_problems(tmp_path: Path) -> None:
    document = described(api(counters(tmp_path)))
    schemas = document["components"]["schemas"]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            where = f"{method} {path}"
            assert operation["summary"].endswith("."), where
            answers = operation["responses"]
            assert {"200", "400", "404", "421", "500"} <= set(answers), where
            for status, answer in answers.items():
                if status not in ("200", "202"):
                    assert list(answer["content"]) == ["application/problem+json"], f"{where} {status}"
                    assert answer["description"], f"{where} {status}"
            for parameter in operation.get("parameters", ()):
                if parameter["in"] == "path":
                    assert parameter["description"], f"{where} {parameter['name']}"
            if "requestBody" in operation:
                assert {"413", "422"} <= set(answers), where
                for body in operation["requestBody"]["content"].values():
                    assert body.get("example") or schemas[_named(body["schema"])]["examples"], where


def _named(schema: dict[str, Any]) -> str:
    one = schema if "$ref" in schema else next(each for each in schema["anyOf"] if "$ref" in each)
    return one["$ref"].rpartition("/")[2]


def test_the_description_refers_to_nothing_that_is_missing(tmp_path: Path) -> None:
    document = described(api(counters(tmp_path)))
    referred = set(re.findall(r"#/components/schemas/([\w.]+)", json.encode(document).decode()))
    assert referred <= set(document["components"]["schemas"])


class Echo(HistoryWorkflow):
    def decide(self, events: History) -> list[HistoryCommand]:
        return [CompleteWorkflow([events[0].input, "again"])]  # type: ignore[union-attr]


def test_the_result_of_the_history_style_is_the_bare_value_and_hides_what_is_hidden(tmp_path: Path) -> None:
    async def run() -> None:
        app = Mainspring(f"sqlite:///{tmp_path / 'web.db'}")
        app.add(Echo())
        async with served(app, redact=["card"]) as client:
            started = {"workflow_id": "e-1", "input": {"card": "4111", "n": 1}}
            taken = await client.post("/api/messages/StartWorkflow", json=started)
            assert (taken.status_code, taken.json()["instance"]) == (200, "Echo/e-1")
            result = (await client.get("/api/results/Echo/e-1")).json()["result"]
            assert result[1] == "again"
            assert (result[0]["n"], "4111" in str(result)) == (1, False)

    asyncio.run(run())
