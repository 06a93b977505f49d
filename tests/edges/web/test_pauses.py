"""What is paused for all workers, over HTTP."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from msgspec import convert

from mainspring import message
from mainspring.web import models
from tests.edges.web.support import bearer, counters, served, tokens


def test_a_workflow_is_paused_listed_and_resumed_by_who_may(tmp_path: Path) -> None:
    async def main() -> None:
        app = counters(tmp_path)
        async with served(app, access=tokens()) as client:
            operator = bearer("operator")
            found = (await client.get("/api/pauses", headers=operator)).json()
            assert convert(found, models.PausesDocument).paused == []
            assert "workflow:Counter" in found["pausable"]
            order = {"reason": "we count anew"}
            found = (await client.post("/api/pauses/workflow:Counter", json=order, headers=operator)).json()
            await client.post("/api/messages/Count", json={"counter": "c-1"}, headers=operator)
            (pause,) = convert(found, models.PausesDocument).paused
            assert (pause.what, pause.reason, pause.actor) == ("workflow:Counter", "we count anew", "operator")
            (pause,) = (await client.get("/api/pauses", headers=operator)).json()["paused"]
            assert (pause["waiting"], pause["more"]) == (1, False)
            assert (await client.delete("/api/pauses/Counter", headers=operator)).json()["paused"] == []

    asyncio.run(main())


def test_a_reason_is_not_shown_where_fields_are_redacted(tmp_path: Path) -> None:
    """People write what they like: as with errors, nobody can say what of it is secret."""

    async def main() -> None:
        app = counters(tmp_path)
        async with served(app, redact=["Count.counter"]) as client:
            await client.post("/api/messages/Count", json={"counter": "c-1"})
            found = (await client.post("/api/pauses/Counter", json={"reason": "because of c-1"})).json()
            assert found["paused"][0]["reason"] == "[redacted]"
            await client.post("/api/messages/Count", json={"counter": "c-1"})
            (held,) = (await client.get("/api/waiting/Counter/c-1")).json()["held_back"]
            assert held.startswith("the workflow Counter is paused")
            assert "because of" not in held
            for place in ("streams", "states", "log", "moments", "exports", "instances"):
                shown = await client.get(f"/api/{place}/mainspring.Pauses/fleet")
                assert shown.is_success, place
                assert "because of" not in shown.text, place

    asyncio.run(main())


def test_a_name_with_a_slash_is_paused_and_resumed(tmp_path: Path) -> None:
    @message(name="billing/Charge")
    @dataclass(frozen=True)
    class Charge:
        id: str

    async def charge(command: Charge) -> None: ...

    charge.__annotations__["command"] = Charge

    async def main() -> None:
        app = counters(tmp_path)
        app.handler(charge)
        async with served(app) as client:
            for name in ("handler:billing/Charge", "handler%3Abilling%2FCharge"):
                found = (await client.post(f"/api/pauses/{name}", json={})).json()
                assert [pause["what"] for pause in found["paused"]] == ["handler:billing/Charge"]
                assert (await client.delete(f"/api/pauses/{name}")).json()["paused"] == []

    asyncio.run(main())


def test_what_is_paused_is_told_with_what_is_stuck(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(counters(tmp_path)) as client:
            assert (await client.get("/api/stuck")).json()["held_back"] == []
            await client.post("/api/pauses/Counter", json={"reason": "we count anew"})
            (held,) = (await client.get("/api/stuck")).json()["held_back"]
            assert held.startswith("the workflow Counter is paused")

    asyncio.run(main())
