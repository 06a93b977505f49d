"""What somebody sends who means no good, or a program that is broken: it is refused in order, and tells nothing."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec import json

from mainspring.errors import SettingError
from mainspring.web import models
from mainspring.web.access import Access, ProxyHeaders, Who
from mainspring.web.api import api
from mainspring.web.guard import BODY_BYTES, HEADERS
from tests.edges.web.support import asked, bearer, counters, served, tokens
from tests.edges.web.test_api import Client, count, serve
from tests.support.waiting import until

SURROGATE = b'"\\ud800"'


def problem_in(answer: httpx.Response, status: int) -> models.ProblemDocument:
    assert answer.headers["content-type"] == "application/problem+json", answer.text[:300]
    assert answer.status_code == status, answer.text[:300]
    return json.decode(answer.content, type=models.ProblemDocument)


# ---- who somebody is


def test_a_header_that_stands_twice_names_nobody(tmp_path: Path) -> None:
    """A proxy that adds its word behind the client's own must not let the client's count."""
    access = Access(headers=ProxyHeaders(roles={"ops": "operator", "all": "viewer"}))
    twice = [("x-forwarded-user", "ann"), ("x-forwarded-groups", "ops"), ("x-forwarded-groups", "all")]
    named = [("x-forwarded-user", "root"), ("x-forwarded-user", "ann"), ("x-forwarded-groups", "ops")]

    async def use() -> None:
        async with served(counters(tmp_path), access=access) as client:
            for headers in (twice, named):
                problem_in(await client.get("/api/stats", headers=headers), 401)
            assert (await client.get("/api/stats", headers=twice[:2])).status_code == 200

    asyncio.run(use())


def test_what_a_proxy_hands_on_for_itself_is_no_token_of_ours() -> None:
    headers = {"x-forwarded-user": "ann", "x-forwarded-groups": "ops", "authorization": "Basic dXNlcjpwYXNz"}
    proxied = ProxyHeaders(roles={"ops": "operator"})
    assert Access(headers=proxied).who(headers, "127.0.0.1") == Who("ann", "operator", ("ops",))
    with_tokens = Access(headers=proxied, tokens=tokens()._tokens)  # noqa: SLF001  the same ones
    assert with_tokens.who(headers, "127.0.0.1") is None


def test_who_acts_is_told_to_a_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def use() -> None:
        async with served(counters(tmp_path), access=tokens()) as client:
            await client.delete("/api/dead-letters/17", headers=bearer("operator"))
            await client.delete("/api/dead-letters/18", headers=bearer("viewer"))
            await client.get("/api/stats", headers=bearer("operator"))
            await client.post("/api/operations/cancel/Counter/c%3F1%1B", headers=bearer("operator"))

    caplog.set_level(logging.INFO, "mainspring.audit")
    asyncio.run(use())
    told = [record.getMessage() for record in caplog.records if record.name == "mainspring.audit"]
    assert told == [
        "operator: DELETE /api/dead-letters/17",
        "operator: POST /api/operations/cancel/Counter/c%3F1%1B",
    ]


# ---- bodies


def test_a_body_without_a_length_is_counted_by_every_route(tmp_path: Path) -> None:
    async def parts() -> AsyncGenerator[bytes]:
        for _ in range(BODY_BYTES // 100_000 + 1):
            yield b" " * 100_000

    async def use(client: Client) -> None:
        for path in ("/api/messages/Count", "/api/bulk/suspend", "/api/dead-letter-operations/retry"):
            headers = {"content-type": "application/json"}
            told = problem_in(await client.post(path, content=parts(), headers=headers), 413)
            assert "2,097,152" in told.detail

    serve(tmp_path, use)


STRANGE = [
    ("/api/bulk/suspend", b'{"reason": ' + SURROGATE + b', "workflow": "Counter"}'),
    ("/api/bulk/suspend", b"{" + SURROGATE + b": 1}"),
    ("/api/bulk/suspend", b'{"workflow": ' + SURROGATE + b"}"),
    ("/api/bulk/suspend", b'{"attribute": ["a=\\ud800"]}'),
    ("/api/bulk/suspend", b"[" * 100_000),
    ("/api/bulk/reset", b'{"workflow": "Counter", "to": ' + b"9" * 4_000 + b"}"),
    ("/api/bulk/reset", b'{"workflow": "Counter", "to": 1' + b"0" * 30 + b"}"),
    ("/api/operations/suspend/Counter/c-1", b'{"reason": ' + SURROGATE + b"}"),
    ("/api/operations/reset/Counter/c-1", b'{"to": 1' + b"0" * 30 + b"}"),
    (
        "/api/counterfactuals/Counter/c-1",
        b'{"what": "insert", "at": 3, "type": "Count", "message": {"counter": NaN}}',
    ),
    (
        "/api/counterfactuals/Counter/c-1",
        b'{"what": "insert", "at": 3, "type": "Count", "message": {"counter": 1' + b"0" * 400 + b"}}",
    ),
    (
        "/api/counterfactuals/Counter/c-1",
        b'{"what": "insert", "at": 3, "type": "Count", "message": {"counter": ' + SURROGATE + b"}}",
    ),
    ("/api/counterfactuals/Counter/c-1", b'{"what": "drop", "at": 1' + b"0" * 30 + b"}"),
    ("/api/task-answers/LeaveRequests/l-1/3", b'{"answer": "Leave", "fields": {"granted": ' + SURROGATE + b"}}"),
    ("/api/task-answers/LeaveRequests/l-1/3", b'{"answer": "Leave", "fields": {"granted": 1e999}}'),
    ("/api/task-answers/LeaveRequests/l-1/3", b'{"answer": ' + SURROGATE + b', "fields": {}}'),
    ("/api/task-rejections/LeaveRequests/l-1/3", b'{"reason": ' + SURROGATE + b"}"),
    ("/api/task-delegations/LeaveRequests/l-1/3", b'{"to": ' + SURROGATE + b"}"),
    ("/api/task-picks", b'{"role": ' + SURROGATE + b"}"),
    ("/api/dead-letter-operations/retry", b'{"kind": ' + SURROGATE + b"}"),
    ("/api/messages/Count", b'{"counter": ' + SURROGATE + b"}"),
]


def test_a_strange_body_is_refused_and_never_an_error_of_the_server(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        await count(client)
        await client.post("/api/messages/RequestLeave", json={"leave_id": "l-1"}, headers={"x-mainspring-actor": "bob"})
        headers = {"content-type": "application/json", "x-mainspring-actor": "ann"}
        for path, body in STRANGE:
            answer = await client.post(path, content=body, headers=headers)
            case = f"{path} {body[:80]!r}: {answer.status_code} {answer.text[:300]}"
            assert answer.status_code in (400, 404, 409, 422), case
            assert answer.headers["content-type"] == "application/problem+json", case
            json.decode(answer.content, type=models.ProblemDocument)

    serve(tmp_path, use)


def test_very_many_unknown_fields_are_one_fault_and_not_one_each(tmp_path: Path) -> None:
    """Of 15,000 errors, 20 are told; finding ten times as many took a second, in which nobody else was served."""
    many = {f"k{n}": 1 for n in range(15_000)}

    async def use(client: Client) -> None:
        for path in sorted({path for path, _ in STRANGE} - {"/api/messages/Count"}):
            told = problem_in(await client.post(path, json=many), 422)
            assert told.detail == "body: Value error, It has more than 100 fields", path
        few = problem_in(await client.post("/api/task-picks", json={"role": "clerk", "more": 1}), 422)
        assert few.detail == "body.more: Extra inputs are not permitted"

    serve(tmp_path, use)


# ---- answers


def test_what_nobody_has_foreseen_is_a_problem_that_tells_nothing_of_our_inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: Any) -> None:
        raise KeyError("a secret of ours")

    async def use(client: Client) -> None:
        answer = await client.get("/api/attributes")
        told = problem_in(answer, 500)
        assert "secret" not in answer.text
        assert "log" in told.detail
        assert {name: answer.headers.get(name) for name in HEADERS} == dict(HEADERS)

    monkeypatch.setattr("mainspring.stores.sqlite.store.SqliteStore.attribute_names", broken)
    serve(tmp_path, use)
    assert any(record.exc_info for record in caplog.records if record.name == "mainspring.web")


def test_routes_and_methods_that_are_not_there_say_what_is(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        assert "openapi.json" in problem_in(await client.get("/api/nothing"), 404).detail
        refused = await client.put("/api/stats")
        assert (problem_in(refused, 405).detail, refused.headers["allow"]) == ("Method Not Allowed. Use GET.", "GET")

    serve(tmp_path, use)


def test_an_error_does_not_quote_what_is_declared_sensitive(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        await count(client, "4111-1111")
        refused = await client.post("/api/messages/Count", json={"counter": "4111-1111", "times": "4111-times"})
        assert "4111-times" not in refused.text or refused.status_code == 200
        reason = {"reason": 'counter=\'4111-1111\' was wrong, and {"counter": "4111-1111"} too'}
        done = await client.post("/api/operations/suspend/Counter/4111-1111", json=reason)
        told = done.json()["error"]
        assert told == "[redacted]"
        [found] = (await client.get("/api/instances?status=suspended")).json()["items"]
        assert found["error"] == told
        stream = (await client.get("/api/streams/Counter/4111-1111")).json()["items"]
        assert stream[-1]["reason"] == told
        log = (await client.get("/api/log/Counter/4111-1111")).json()["items"]
        assert log[-1]["about"] == told
        export = (await client.get("/api/exports/Counter/4111-1111")).text
        assert "was wrong" not in export

    serve(tmp_path, use, redact=["Count.counter"])


def test_a_field_of_a_type_that_nobody_has_is_refused(tmp_path: Path) -> None:
    api(counters(tmp_path), redact=["anything", "Count.counter", "Counted.times"])
    with pytest.raises(SettingError, match=r"Card.number.* number alone is hidden wherever it stands"):
        api(counters(tmp_path), redact=["Card.number"])


def test_what_was_not_shown_is_not_written_over_by_a_correction(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        await count(client, times=4)
        [letter] = (await client.get("/api/dead-letters")).json()["items"]
        assert letter["message"] == {"counter": "[redacted]"}
        again = await client.post(f"/api/dead-letters/{letter['id']}/retry", json=letter["message"])
        assert again.json() == {"id": letter["id"], "left": True}  # c-1 has ended, and it is meant for c-1 still
        assert [row["id"] for row in (await client.get("/api/instances")).json()["items"]] == ["c-1"]
        unknown = {"counter": "c-2", "parts": [{"card": "[redacted]"}]}
        refused = await client.post(f"/api/dead-letters/{letter['id']}/retry", json=unknown)
        assert "card" in problem_in(refused, 422).detail
        told = {"what": "replace", "at": 4, "message": {"counter": "[redacted]"}}
        story = await client.post("/api/counterfactuals/Counter/c-1", json=told)
        assert story.json()["differs_at"] is None

    serve(tmp_path, use, redact=["Count.counter", "card"])


def test_an_api_that_is_mounted_keeps_its_own_rules(tmp_path: Path) -> None:
    from fastapi import FastAPI  # noqa: PLC0415  the one test that has an app of somebody else's

    app = counters(tmp_path)
    outer = FastAPI()
    outer.mount("/workflows", api(app, start=False, access=tokens()))

    async def use() -> None:
        async with app, asked(outer) as client:
            assert (await client.get("/workflows/api/health")).json() == {"status": "ok"}
            problem_in(await client.get("/workflows/api/stats"), 401)
            problem_in(await client.get("/workflows/api/nothing"), 404)
            stats = await client.get("/workflows/api/stats", headers=bearer("viewer"))
            assert (stats.status_code, stats.headers["x-content-type-options"]) == (200, "nosniff")
            problem_in(await client.get("/workflows/api/health", headers={"host": "evil.example.com"}), 421)

    asyncio.run(use())


async def begun_jobs(client: Client) -> list[dict[str, Any]]:
    """Return the operations on many of which at least one is done."""
    return [job for job in (await client.get("/api/bulk")).json() if job["done"]]


def test_one_who_stops_an_operation_on_many_leaves_who_began_it_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mainspring.web.bulk.ANSWER_SECONDS", 60.0)

    async def use(client: Client) -> None:
        for number in range(5):
            await count(client, f"c-{number}")
        order = {"workflow": "Counter", "dry_run": False, "per_second": 0.01}
        begun = asyncio.create_task(client.post("/api/bulk/suspend", json=order))
        jobs = await until(lambda: begun_jobs(client))
        stopped = await client.delete(f"/api/bulk/{jobs[0]['id']}")
        assert stopped.json()["status"] == "stopped"
        answer = await begun
        assert (answer.status_code, answer.json()["status"], answer.json()["done"]) == (200, "stopped", 1)

    serve(tmp_path, use)
