"""Conditional requests: the position as an ETag, If-Match where one sends, and what is answered if it moved on."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx

from mainspring.web.api import api, described
from tests.edges.web.support import counters, served

Client = httpx.AsyncClient


def serve(folder: Path, use: Callable[[Client], Awaitable[Any]]) -> None:
    async def run() -> None:
        async with served(counters(folder)) as client:
            await use(client)

    asyncio.run(run())


async def count(client: Client, counter: str = "c-1", query: str = "", **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await client.post(f"/api/messages/Count{query}", json={"counter": counter}, headers=named)


def test_the_position_is_the_etag_of_an_instance_and_of_its_present_state(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        await count(client)
        instance = await client.get("/api/instances/Counter/c-1")
        position = instance.json()["position"]
        assert instance.headers["etag"] == f'"{position}"'
        assert (await client.get("/api/states/Counter/c-1")).headers["etag"] == f'"{position}"'
        assert "etag" not in (await client.get("/api/states/Counter/c-1?at=1")).headers
        suspended = await client.post("/api/operations/suspend/Counter/c-1", json={})
        assert suspended.headers["etag"] == f'"{position + 1}"'

    serve(tmp_path, use)


def test_what_matches_is_taken_and_what_does_not_is_told_where_the_instance_is(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        await count(client)
        seen = (await client.get("/api/instances/Counter/c-1")).headers["etag"]
        taken = await count(client, query="?id=m-1", if_match=seen)
        assert (taken.status_code, taken.json()["status"]) == (200, "stepped")
        refused = await count(client, if_match=seen)
        assert refused.status_code == 412
        assert refused.headers["content-type"] == "application/problem+json"
        problem = refused.json()
        now = (await client.get("/api/instances/Counter/c-1")).json()["position"]
        assert problem["type"] == "urn:mainspring:error:PositionConflictError"
        assert (problem["status"], problem["title"], problem["position"]) == (412, "not as expected", now)
        assert (problem["waiting"], refused.headers["etag"]) == (False, f'"{now}"')
        assert "Read it again" in problem["detail"]
        again = await count(client, query="?id=m-1", if_match=seen)
        assert (again.status_code, again.json()["status"]) == (200, "duplicate")

    serve(tmp_path, use)


def test_one_at_which_inputs_wait_says_so_and_where_it_is(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        await count(client)
        seen = (await client.post("/api/operations/suspend/Counter/c-1", json={})).headers["etag"]
        assert (await count(client, if_match=seen)).json()["status"] == "suspended"
        refused = await count(client, if_match=seen)
        assert (refused.status_code, refused.headers["etag"]) == (412, seen)
        assert (refused.json()["position"], refused.json()["waiting"]) == (int(seen.strip('"')), True)

    serve(tmp_path, use)


def test_one_that_was_expected_and_is_not_there_has_no_tag(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        refused = await count(client, if_match='"3"')
        assert (refused.status_code, refused.json()["position"]) == (412, 0)
        assert "etag" not in refused.headers
        told = "Counter/c-1 has no stream, and was expected at position 3. Check its id"
        assert refused.json()["detail"].startswith(told)

    serve(tmp_path, use)


def test_a_condition_is_refused_where_nobody_would_judge_it(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        await count(client)
        begun = (await client.get("/api/instances/Counter/c-1")).json()
        for condition in ({"If-Match": '"1"'}, {"If-Match": "*"}, {"If-None-Match": "*"}, {"if-unmodified-since": "x"}):
            for route in ("operations/terminate/Counter/c-1", "operations/resume/Counter/c-1", "events/Count"):
                refused = await client.post(f"/api/{route}", json={"counter": "c-1"}, headers=condition)
                assert (refused.status_code, refused.json()["title"]) == (422, "not understood"), (route, condition)
                assert "judges no such condition" in refused.json()["detail"]
        assert (await count(client, If_None_Match="*")).status_code == 422
        assert (await client.get("/api/instances/Counter/c-1", headers={"If-Match": '"1"'})).json() == begun

    serve(tmp_path, use)


def test_every_route_that_changes_something_judges_if_match_or_refuses_it(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        paths = described(api(counters(tmp_path)))["paths"]
        changing = [(way, path) for path, ways in paths.items() for way in ways if way != "get"]
        assert changing
        for way, path in changing:
            headers = {parameter["name"].lower() for parameter in paths[path][way].get("parameters", ())}
            answered = await client.request(way, path, json={}, headers={"if-match": '"1"'})
            refused = "judges no such condition" in answered.json()["detail"]
            assert refused is ("if-match" not in headers), (way, path, answered.json())

    serve(tmp_path, use)


def test_nobody_who_must_be_there_is_404_and_nothing_is_begun(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        for refused in (await count(client, query="?must_exist=true"), await count(client, if_match="*")):
            assert refused.status_code == 404
            assert refused.json()["type"] == "urn:mainspring:error:NoSuchInstanceError"
        assert (await client.get("/api/instances/Counter/c-1")).status_code == 404
        assert (await count(client, if_match='"0"')).status_code == 200
        assert (await count(client, query="?must_exist=true")).status_code == 200
        assert (await count(client, if_match="*")).json()["status"] == "stepped"

    serve(tmp_path, use)


def test_a_tag_that_was_never_given_is_not_understood(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        for tag in ("", " ", 'W/"2"', "2", '"two"', '"2", "3"', '"' + 30 * "9" + '"'):
            refused = await count(client, if_match=tag)
            assert (refused.status_code, refused.json()["type"]) == (422, "urn:mainspring:error:SettingError"), tag
        both = await count(client, query="?must_exist=true", if_match='"0"')
        assert both.status_code == 422

    serve(tmp_path, use)


def test_a_request_that_waits_for_a_reply_matches_too(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        await count(client)
        asked = await client.post("/api/requests/Count", json={"counter": "c-1"}, headers={"if-match": '"1"'})
        assert asked.status_code == 412

    serve(tmp_path, use)


def test_the_description_says_so(tmp_path: Path) -> None:
    paths = described(api(counters(tmp_path)))["paths"]
    assert paths["/api/instances/{workflow}/{id}"]["get"]["responses"]["200"]["headers"]["ETag"]
    for path in ("/api/messages/{type}", "/api/requests/{type}"):
        post = paths[path]["post"]
        names = {parameter["name"].lower(): parameter["in"] for parameter in post["parameters"]}
        assert (names["if-match"], names["must_exist"]) == ("header", "query")
        conflict = post["responses"]["412"]
        assert "not as expected" in conflict["description"]
        assert conflict["headers"]["ETag"]


def test_a_workflow_is_named_where_several_take_the_message(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        assert (await count(client, query="?workflow=Counter")).json()["instance"] == "Counter/c-1"
        refused = await count(client, query="?workflow=Counters")
        assert refused.status_code == 422
        assert "It is taken by Counter." in refused.json()["detail"]

    serve(tmp_path, use)
