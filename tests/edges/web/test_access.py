"""Who may do what, route by route: a route that is not listed here fails."""

import asyncio
import re
from collections.abc import AsyncGenerator
from itertools import pairwise
from pathlib import Path

import pytest

from docs.site.routes import listed
from mainspring.errors import SettingError
from mainspring.web.access import PERMITS, ROLES, Access, ProxyHeaders, Token, Who, read_tokens
from mainspring.web.api import api
from mainspring.web.studio import studio
from tests.edges.web.support import asked, bearer, counters, served, tokens

EVERYBODY = "everybody"

# What each route asks for. A new route belongs here, with what it should ask for.
NEEDED = {
    "GET /api/health": EVERYBODY,
    "GET /api/ready": EVERYBODY,
    "GET /api/openapi.json": "read",
    "GET /api/stats": "read",
    "GET /api/metrics": "read",
    "GET /api/workflows": "read",
    "GET /api/workers": "read",
    "GET /api/live": "read",
    "GET /api/pauses": "read",
    "POST /api/pauses/{what:path}": "act",
    "DELETE /api/pauses/{what:path}": "act",
    "GET /api/schedules": "read",
    "POST /api/schedules/{name}/pause": "act",
    "POST /api/schedules/{name}/resume": "act",
    "POST /api/schedules/{name}/run": "act",
    "GET /api/schedules/{name}/next": "read",
    "DELETE /api/schedules/{name}": "act",
    "GET /api/workflows/{name}/diagram": "read",
    "GET /api/workflows/{name}/findings": "read",
    "GET /api/workflows/{name}/documentation": "read",
    "GET /api/analytics": "read",
    "GET /api/stuck": "read",
    "GET /api/what-if": "read",
    "GET /api/moments/{workflow}/{id:path}": "read",
    "GET /api/explanations/{workflow}/{id:path}": "read",
    "POST /api/counterfactuals/{workflow}/{id:path}": "read",
    "GET /api/log/{workflow}/{id:path}": "read",
    "GET /api/attributes": "read",
    "GET /api/attributes/{workflow}/{id:path}": "read",
    "GET /api/links/{workflow}/{id:path}": "read",
    "GET /api/exports/{workflow}/{id:path}": "read",
    "GET /api/tests/{workflow}/{id:path}": "read",
    "POST /api/bulk/{operation}": "act",
    "GET /api/bulk": "read",
    "GET /api/bulk/{id}": "read",
    "DELETE /api/bulk/{id}": "act",
    "POST /api/hooks/{name}": EVERYBODY,  # a signature is its proof
    "POST /api/envelopes": "send",
    "POST /api/messages/{type}": "send",
    "POST /api/events/{type}": "send",
    "POST /api/requests/{type}": "send",
    "GET /api/results/{workflow}/{id:path}": "read",
    "GET /api/instances": "read",
    "GET /api/instances/{workflow}/{id:path}": "read",
    "GET /api/streams/{workflow}/{id:path}": "read",
    "GET /api/states/{workflow}/{id:path}": "read",
    "GET /api/waiting/{workflow}/{id:path}": "read",
    "GET /api/waits-at/{workflow}/{id:path}": "read",
    "GET /api/timers": "read",
    "POST /api/operations/{operation}/{workflow}/{id:path}": "act",
    "GET /api/tasks": "read",
    "GET /api/tasks/{id:path}": "read",
    "POST /api/task-claims/{id:path}": "act",
    "DELETE /api/task-claims/{id:path}": "act",
    "POST /api/task-delegations/{id:path}": "act",
    "POST /api/task-answers/{id:path}": "act",
    "POST /api/task-rejections/{id:path}": "act",
    "POST /api/task-picks": "act",
    "GET /api/dead-letters": "read",
    "GET /api/dead-letters/{id}": "read",
    "POST /api/dead-letters/{id}/retry": "act",
    "DELETE /api/dead-letters/{id}": "act",
    "GET /api/dead-letter-kinds": "read",
    "POST /api/dead-letter-operations/{operation}": "act",
}
# The page is code, and holds nothing of the app: it has to come before anybody can show a token.
PAGE = {"GET /": EVERYBODY, "GET /{name}": EVERYBODY}
PLACES = {
    "operation": "suspend",
    "workflow": "Counter",
    "id": "1",
    "type": "Count",
    "name": "nightly",
    "what": "Counter",
}


def path_of(route: str) -> str:
    return re.sub(r"\{(\w+)(:path)?\}", lambda place: PLACES[place[1]], route)


def test_every_route_is_listed(tmp_path: Path) -> None:
    assert set(listed(api(counters(tmp_path)).routes)) == set(NEEDED)
    assert set(listed(studio(counters(tmp_path)).routes)) == {*NEEDED, *PAGE}


def test_each_role_may_do_what_its_permissions_say_and_nothing_else(tmp_path: Path) -> None:
    async def use() -> None:
        app = counters(tmp_path)
        async with app, asked(studio(app, start=False, access=tokens())) as client:
            for listed, needed in {**NEEDED, **PAGE}.items():
                method, _, route = listed.partition(" ")
                path = path_of(route)
                if route == "/api/live":  # it would never end: who is let in listens
                    path += "?instance=Counter/none"
                unknown = await client.request(method, path)
                assert (unknown.status_code == 401) == (needed != EVERYBODY), listed
                for role in ROLES:
                    answer = await client.request(method, path, headers=bearer(role))
                    permitted = needed == EVERYBODY or needed in PERMITS[role]
                    assert (answer.status_code == 403) == (not permitted), f"{listed} as {role}: {answer.text}"
                    assert answer.status_code != 401

    asyncio.run(use())


def test_whoever_acts_with_a_token_is_recorded_by_its_name_whatever_they_say(tmp_path: Path) -> None:
    async def use() -> None:
        async with served(counters(tmp_path), access=tokens()) as client:
            headers = bearer("operator") | {"x-mainspring-actor": "somebody else"}
            await client.post("/api/messages/Count", json={"counter": "c-1"}, headers=headers)
            await client.post("/api/operations/suspend/Counter/c-1", headers=headers)
            stream = await client.get("/api/streams/Counter/c-1", headers=headers)
            assert [event["actor"] for event in stream.json()["items"]] == [None, "operator", "operator"]

    asyncio.run(use())


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": "Bearer wrong-secret-of-some-length"},
        {"authorization": "Basic dXNlcjpwYXNz"},
        {"authorization": ""},
        {"x-forwarded-user": "ann", "x-forwarded-groups": "ops"},
    ],
)
def test_what_proves_nothing_lets_nobody_in(headers: dict[str, str]) -> None:
    assert tokens().who(headers, "127.0.0.1") is None


def test_headers_of_a_proxy_count_only_from_the_proxy() -> None:
    access = Access(headers=ProxyHeaders(roles={"ops": "operator", "all": "viewer"}, proxies=("10.0.0.1",)))
    headers = {"x-forwarded-user": "ann", "x-forwarded-groups": "all,ops"}
    assert access.who(headers, "10.0.0.1") == Who("ann", "operator", ("all", "ops"))
    assert access.who(headers, "10.0.0.2") is None
    assert access.who({"x-forwarded-user": "ann", "x-forwarded-groups": "others"}, "10.0.0.1") is None
    assert access.who({"x-forwarded-user": "a\nb", "x-forwarded-groups": "ops"}, "10.0.0.1") is None


def test_groups_that_stand_in_two_headers_are_nobodys() -> None:
    access = Access(headers=ProxyHeaders(roles={"ops": "operator", "all": "viewer"}))
    # The second is the caller's own: a proxy writes one, and a line break stands between the two.
    assert access.who({"x-forwarded-user": "ann", "x-forwarded-groups": "all,\nops"}, "127.0.0.1") is None


def test_who_is_in_one_group_picks_no_task_of_another(tmp_path: Path) -> None:
    ann = Token.of("the-secret-of-ann-is-long", name="ann", role="operator", groups=["manager"])

    async def use() -> None:
        async with served(counters(tmp_path), access=Access(tokens=[ann])) as client:
            headers = {"authorization": "Bearer the-secret-of-ann-is-long"}
            other = await client.post("/api/task-picks", json={"role": "director"}, headers=headers)
            assert (other.status_code, other.json()["detail"]) == (403, "ann is not among director.")
            own = await client.post("/api/task-picks", json={"role": "manager"}, headers=headers)
            assert own.status_code == 200

    asyncio.run(use())


def test_who_asks_for_no_proof_says_what_anybody_may_do() -> None:
    assert Access(anybody="viewer").who({}, None) == Who(None, "viewer")
    assert [Access(anybody=role).asks for role in ROLES] == [True, False, False, False]


@pytest.mark.parametrize("text", ["ann", "ann:viewer", "ann:king:a-secret-of-some-length", "ann:viewer:short", "::"])
def test_a_token_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(SettingError):
        read_tokens(text)


def test_a_token_does_not_keep_its_secret() -> None:
    token = Token.of("a-secret-of-some-length", name="ann", role="viewer")
    assert "a-secret" not in repr(token)


def test_the_roles_grow_from_one_to_the_next() -> None:
    for lesser, greater in pairwise(ROLES):
        assert PERMITS[lesser] < PERMITS[greater]


def test_what_every_request_passes_needs_no_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """FastAPI runs a plain function in a thread, which costs more than all that it does."""

    async def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a thread was asked for")

    async def use() -> None:
        async with served(counters(tmp_path), access=tokens()) as client:
            sent = await client.post("/api/messages/Count", json={"counter": "c-1"}, headers=bearer("operator"))
            assert sent.status_code == 200
            for path in ("instances?prefix=c", "streams/Counter/c-1", "states/Counter/c-1", "nothing"):
                answer = await client.get(f"/api/{path}", headers=bearer("viewer"))
                assert answer.status_code == (404 if path == "nothing" else 200)
            assert (await client.get("/api/instances?limit=0", headers=bearer("viewer"))).status_code == 422
            assert (await client.get("/api/instances")).status_code == 401

    monkeypatch.setattr("anyio.to_thread.run_sync", refuse)
    asyncio.run(use())


# ---- what every request has to pass


PASSED = [
    ("GET", {"host": "localhost:8000"}, 200),
    ("GET", {"host": "127.0.0.1"}, 200),
    ("GET", {"host": "[::1]:8000"}, 200),
    ("GET", {"host": "evil.example.com"}, 421),
    ("GET", {"host": "localhost.evil.example.com"}, 421),
    ("GET", {"host": "localhost", "sec-fetch-site": "cross-site"}, 200),
    ("POST", {"host": "localhost", "sec-fetch-site": "cross-site"}, 403),
    ("POST", {"host": "localhost", "sec-fetch-site": "same-site"}, 403),
    ("POST", {"host": "localhost:8000", "origin": "http://evil.example.com"}, 403),
    ("POST", {"host": "localhost:8000", "origin": "http://localhost:9000"}, 403),
    ("POST", {"host": "localhost:8000", "origin": "null"}, 403),
    ("POST", {"host": "localhost", "content-length": "99999999999999"}, 413),
    ("POST", {"host": "localhost", "content-length": "many"}, 400),
]


def test_requests_from_other_pages_and_for_other_hosts_go_no_further(tmp_path: Path) -> None:
    async def use() -> None:
        async with asked(api(counters(tmp_path), start=False)) as client:
            for method, headers, status in PASSED:
                path = "/api/health" if method == "GET" else "/api/messages/Count"
                answer = await client.request(method, path, headers=headers)
                assert answer.status_code == status, f"{method} {headers}"

    asyncio.run(use())


def test_every_answer_carries_the_headers_that_keep_a_browser_safe(tmp_path: Path) -> None:
    async def use() -> None:
        async with asked(api(counters(tmp_path), start=False)) as client:
            for headers in ({"host": "localhost"}, {"host": "evil.example.com"}):
                answer = await client.get("/api/health", headers=headers)
                assert "default-src 'none'" in answer.headers["content-security-policy"]
                assert "unsafe" not in answer.headers["content-security-policy"]
                assert answer.headers["x-content-type-options"] == "nosniff"

    asyncio.run(use())


def test_a_body_without_a_length_is_counted(tmp_path: Path) -> None:
    async def use() -> int:
        async with served(counters(tmp_path)) as client:

            async def parts() -> AsyncGenerator[bytes]:
                for _ in range(40):
                    yield b" " * 100_000

            return (await client.post("/api/messages/Count", content=parts())).status_code

    assert asyncio.run(use()) == 413
