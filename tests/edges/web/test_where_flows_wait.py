"""The lines at which flows wait, over HTTP: for those who may read, and with types alone where fields are redacted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec import json

from mainspring import views
from mainspring.testing.samples import Count
from tests.edges import flow_shop
from tests.edges.flow_shop import PlaceOrder, fulfil
from tests.edges.web.support import bearer, counters, served, tokens
from tests.support.running import run
from tests.support.waiting import until

WHERE = "/api/waits-at/fulfil/o-1"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def confirming(use: Callable[[httpx.AsyncClient], Awaitable[None]], **settings: Any) -> None:
    """Serve the shop when o-1 waits for its confirmation."""

    async def main() -> None:
        app = flow_shop.app
        async with served(app, **settings) as client:
            await app.send(PlaceOrder("o-1", "4111"))

            async def charged() -> bool:
                return (await app.instance(fulfil, "o-1").row()).position == 5

            await until(charged)
            await use(client)

    run(main)


def test_a_viewer_sees_line_calls_variables_and_source() -> None:
    async def use(client: httpx.AsyncClient) -> None:
        assert (await client.get(WHERE)).status_code == 401
        answer = await client.get(WHERE, headers=bearer("viewer"))
        found = json.decode(answer.content, type=views.WaitsAt)
        inner, outer = found.waiting[0].frames

        assert (inner.function, outer.function) == ("confirmed", "fulfil")
        assert outer.file.endswith("tests/edges/flow_shop.py")
        assert not outer.file.startswith("/")
        assert {each.name: each.value for each in outer.variables} == {
            "order": "PlaceOrder(order_id='o-1', card='4111')",
            "charged": "'charge of 4111'",
        }
        text = next(each for each in found.functions if each.function == "confirmed")
        assert text.text.splitlines()[inner.line - text.line].strip() == inner.text == "await receive(Confirmed)"

    confirming(use, access=tokens())


def test_a_position_tells_where_it_waited_behind_its_step() -> None:
    async def use(client: httpx.AsyncClient) -> None:
        found = (await client.get(WHERE, params={"at": 2})).json()
        assert (found["position"], found["waiting"][0]["awaits"]) == (2, "the step charge")
        assert (await client.get(WHERE, params={"at": 9})).status_code == 409
        assert (await client.get(WHERE, params={"at": 0})).status_code == 422
        assert (await client.get("/api/waits-at/fulfil/o-2")).status_code == 404

    confirming(use)


@pytest.mark.parametrize("role", ["viewer", "admin"])
def test_where_fields_are_redacted_variables_have_their_types_alone_for_everybody(role: str) -> None:
    async def use(client: httpx.AsyncClient) -> None:
        answer = await client.get(WHERE, headers=bearer(role))
        inner, outer = answer.json()["waiting"][0]["frames"]

        assert "4111" not in answer.text
        assert outer["variables"] == [
            {"name": "order", "type": "PlaceOrder", "value": None},
            {"name": "charged", "type": "str", "value": None},
        ]
        assert [each["value"] for each in inner["variables"]] == [None, None]

    confirming(use, access=tokens(), redact=["card"])


def test_where_fields_are_redacted_drift_is_told_by_its_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    async def changed(order: PlaceOrder) -> int:
        return await flow_shop.ship(order.card, 7)

    async def use(client: httpx.AsyncClient) -> None:
        monkeypatch.setattr(type(fulfil), "function", staticmethod(changed))
        answer = await client.get(WHERE)

        assert "4111" not in answer.text
        assert "DriftError" in answer.json()["problem"]

    confirming(use, redact=["card"])


def test_lists_searches_and_what_is_stuck_have_no_variables() -> None:
    async def use(client: httpx.AsyncClient) -> None:
        await flow_shop.app.instance(fulfil, "o-1").suspend()
        for path in ("/api/instances", "/api/stuck", "/api/workflows", "/api/waiting/fulfil/o-1"):
            assert "charge of" not in (await client.get(path)).text.replace("flow_shop", ""), path
        (line,) = (await client.get("/api/stuck")).json()["lines"]
        assert line["instances"] == ["fulfil/o-1"]
        assert line["text"] == "await receive(Confirmed)"

    confirming(use)


def test_of_a_workflow_that_is_no_flow_it_says_so(tmp_path: Path) -> None:
    async def main() -> None:
        app = counters(tmp_path)
        async with served(app) as client:
            await app.send(Count("c-1"))
            found = (await client.get("/api/waits-at/Counter/c-1")).json()
            assert (found["is_flow"], found["waiting"], found["problem"]) == (False, [], None)

    run(main)
