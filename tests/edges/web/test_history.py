"""What is told of one instance over HTTP: its moments, why it decided, how it might have gone, its neighbours."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec import json

from examples.order_inventory.inventory import Inventory, StockDelivered
from examples.order_inventory.workflow import Order, OrderDelayed, PackOrder, PlaceOrder
from mainspring import Mainspring
from mainspring.analysis.replay import documents
from mainspring.app.internals import internals_of
from mainspring.errors import DamagedRecordError
from mainspring.port.records import EventRow, Ref
from mainspring.testing.samples import Count, Counter
from mainspring.web import models
from mainspring.web.models import LogPage
from tests.edges.web.support import bearer, counters, served, tokens
from tests.edges.web.test_api import Client, count, serve
from tests.engine.coordination.family import PlanTrip, travel
from tests.support.running import run
from tests.support.waiting import until


def test_moments_tell_what_every_event_made_of_the_state(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        await count(client, times=3)
        answer = await client.get("/api/moments/Counter/c-1?explained=true")
        page = json.decode(answer.content, type=models.MomentPage)
        assert [(moment.position, moment.last, moment.step) for moment in page.items] == [
            (1, 1, False),
            (2, 2, True),
            (3, 3, True),
            (4, 5, True),
        ]
        assert [moment.after.state["times"] for moment in page.items] == [0, 1, 2, 3]
        changes = [event.change for moment in page.items for event in moment.events if event.change is not None]
        assert [(place.path, place.before, place.after) for change in changes for place in change.places] == [
            ("times", 0, 1),
            ("times", 1, 2),
            ("times", 2, 3),
        ]
        why = page.items[-1].explanation
        assert why is not None
        assert [branch.text for branch in why.decide] == ["if state.times == 2"]
        assert [event.event for event in why.decided] == ["Completed"]
        assert why.agrees

    serve(tmp_path, use)


def test_moments_come_page_by_page(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        await count(client, "c/1", times=3)
        seen: list[int] = []
        after: int | None = 0
        while after is not None:
            answer = await client.get(f"/api/moments/Counter/c/1?limit=1&after={after}")
            page = json.decode(answer.content, type=models.MomentPage)
            assert page.before is not None
            seen += [moment.position for moment in page.items]
            after = page.next
        assert seen == [1, 2, 3, 4]

    serve(tmp_path, use)


def test_a_decision_is_explained_at_a_version_and_what_decided_nothing_is_not(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        await count(client, times=2)
        last = json.decode((await client.get("/api/explanations/Counter/c-1")).content, type=documents.ExplainedMoment)
        assert (last.position, last.before.state) == (3, {"times": 1})
        first = json.decode(
            (await client.get("/api/explanations/Counter/c-1?at=2")).content, type=documents.ExplainedMoment
        )
        assert (first.position, first.begins) == (2, True)
        for at in (1, 9):
            assert (await client.get(f"/api/explanations/Counter/c-1?at={at}")).status_code == 409

    serve(tmp_path, use)


def test_a_story_is_told_with_another_input(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        await count(client, times=2)
        inserted = await client.post(
            "/api/counterfactuals/Counter/c-1",
            json={"what": "insert", "at": 3, "type": "Count", "message": {"counter": "c-1"}},
        )
        story = json.decode(inserted.content, type=documents.CounterfactualDocument)
        assert ([event.event for event in story.told][-1], story.state.state) == ("Completed", {"times": 3})
        dropped = await client.post("/api/counterfactuals/Counter/c-1", json={"what": "drop", "at": 3})
        assert json.decode(dropped.content, type=documents.CounterfactualDocument).told == []
        await count(client)
        late = {"what": "insert", "at": 6, "type": "Count", "message": {"counter": "c-1"}}
        untaken = await client.post("/api/counterfactuals/Counter/c-1", json=late)
        [left] = json.decode(untaken.content, type=documents.CounterfactualDocument).untaken
        assert (left.position, left.reason) == (None, "the instance has ended by then")
        unlike = {"what": "replace", "at": 3, "type": "RequestLeave", "message": {"leave_id": "l-1"}}
        for wrong in (
            unlike,
            {"what": "insert", "at": 3},
            {"what": "drop", "at": 1},
            {"what": "drop", "at": 3, "type": "Count"},
        ):
            assert (await client.post("/api/counterfactuals/Counter/c-1", json=wrong)).status_code == 409, wrong
        assert len((await client.get("/api/streams/Counter/c-1")).json()["items"]) == 5

    serve(tmp_path, use)


def test_the_log_the_attributes_and_the_file_of_a_stream_are_told(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        await count(client, "c/1", times=3)
        log = json.decode((await client.get("/api/log/Counter/c/1?limit=4")).content, type=LogPage)
        assert ([line.what for line in log.items], log.next) == (["Started", "Stepped", "Stepped"], 4)
        rest = json.decode((await client.get("/api/log/Counter/c/1?after=4")).content, type=LogPage)
        assert ([line.what for line in rest.items], rest.next) == (["Completed"], None)
        found = json.decode((await client.get("/api/attributes/Counter/c/1")).content, type=models.AttributesDocument)
        assert found.attributes == {}
        export = await client.get("/api/exports/Counter/c/1")
        assert export.headers["content-disposition"] == "attachment; filename*=UTF-8''Counter-c%2F1.jsonl"
        lines = [json.decode(line) for line in export.content.splitlines()]
        assert [line["line"] for line in lines] == ["file", "instance", *["event"] * 5, "end"]

    serve(tmp_path, use)


@pytest.mark.parametrize("why", ["damaged", "purged"])
def test_the_file_of_a_stream_that_cannot_be_read_to_its_end_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    async def use() -> None:
        app = counters(tmp_path)
        async with served(app) as client:
            await count(client, times=3)
            stream = internals_of(app).engine.store.stream

            async def cut_short(ref: Ref, after: int, limit: int) -> list[EventRow]:
                if after < 2:
                    return await stream(ref, after, 2)
                if why == "purged":
                    return []
                raise DamagedRecordError("events", "of another kind")

            monkeypatch.setattr(internals_of(app).engine.store, "stream", cut_short)
            export = await client.get("/api/exports/Counter/c-1")
            lines = [json.decode(line) for line in export.content.splitlines()]
            assert [line["line"] for line in lines] == ["file", "instance", "event", "event", "cut", "end"]
            assert why in lines[-2]["why"]

    asyncio.run(use())


def test_nobody_who_only_reads_tries_values_where_they_are_redacted(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        await client.post("/api/messages/Count", json={"counter": "c-1"}, headers=bearer("operator"))
        asked = "/api/counterfactuals/Counter/c-1"
        for role, status in (("viewer", 403), ("worker", 403), ("operator", 200)):
            told = await client.post(asked, json={"what": "drop", "at": 2}, headers=bearer(role))
            assert told.status_code == status, role

    serve(tmp_path, use, redact=["times"], access=tokens())


def test_what_is_declared_sensitive_is_in_none_of_it(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        await count(client, "public", times=2)
        await client.post("/api/messages/RequestLeave", json={"leave_id": "a-secret"})
        for path in (
            "/api/moments/Counter/public?explained=true",
            "/api/explanations/Counter/public",
            "/api/exports/LeaveRequests/a-secret",
            "/api/tests/Counter/public?at=3",
        ):
            text = (await client.get(path)).text
            assert "[redacted]" in text, path
            assert '"times":1' not in text, path
            assert "times=1" not in text, path
            assert '"leave_id":"a-secret"' not in text, path
        story = await client.post("/api/counterfactuals/Counter/public", json={"what": "drop", "at": 3})
        assert story.json()["state"]["state"] == {"times": "[redacted]"}
        assert story.json()["change"] is None
        [task] = (await client.get("/api/tasks")).json()["items"]
        assert task["data"] == {"leave_id": "[redacted]"}
        forms = (await client.get(f"/api/tasks/{task['id']}")).json()["forms"]
        assert {field["name"]: field["value"] for field in forms[0]["fields"]}["leave_id"] == "[redacted]"
        moments = (await client.get("/api/moments/LeaveRequests/a-secret")).json()
        assert moments["items"][1]["events"][0]["message"] == {"leave_id": "[redacted]"}

    serve(tmp_path, use, redact=["times", "leave_id"])


def test_a_step_becomes_a_test_that_passes(tmp_path: Path) -> None:
    async def use(client: Client) -> list[str]:
        await count(client, times=3)
        maker = {"x-mainspring-actor": "bob"}
        await client.post("/api/messages/RequestLeave", json={"leave_id": "l-1"}, headers=maker)
        paths = [f"Counter/c-1?at={at}" for at in (2, 3, 4)] + ["LeaveRequests/l-1?at=2"]
        texts = []
        for path in paths:
            answer = json.decode((await client.get(f"/api/tests/{path}")).content, type=models.GivenWhenThen)
            texts.append(answer.text)
        return texts

    texts = serve(tmp_path, use)
    assert "given(Counter(), Count(counter='c-1'))" in texts[1]
    assert ".then(Complete(CountedThrice(counter='c-1')))" in texts[2]
    for number, text in enumerate(texts):
        (tmp_path / f"test_copied_{number}.py").write_text(text)
    # Without the plugins that only this repository has: to import one of them takes longer than all else.
    spared = [f"-pno:{name}" for name in ("schemathesis", "hypothesispytest", "xdist", "anyio", "cacheprovider")]
    command = [sys.executable, "-m", "pytest", "-q", *spared, str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  our own
    assert run.returncode == 0, f"{run.stdout}\n\n{''.join(texts)}"
    assert "4 passed" in run.stdout


def test_parents_and_children_senders_and_receivers_are_linked(tmp_path: Path) -> None:
    async def links(client: Client, instance: str) -> set[tuple[str, str, str | None]]:
        answer = json.decode((await client.get(f"/api/links/{instance}")).content, type=models.LinksDocument)
        return {(link.relation, link.instance, link.status) for link in answer.links}

    async def use() -> None:
        app = travel(Mainspring(f"sqlite:///{tmp_path / 'links.db'}"))
        app.add(Order(), Inventory())
        app.external(PackOrder, OrderDelayed)
        async with served(app) as client:
            trip = await app.send(PlanTrip("t-1", ("book", "wait")))
            await app.send(StockDelivered("tea", 9))
            await app.send(PlaceOrder("o-1", "tea", 2))
            await until(lambda: _has_packing(app))
            assert await links(client, "Trip/t-1") == {
                ("child", "Leg/t-1.0", "completed"),
                ("child", "Leg/t-1.1", "running"),
            }
            assert ("parent", str(trip), "running") in await links(client, "Leg/t-1.1")
            assert await links(client, "Order/o-1") == {
                ("receiver", "Inventory/tea", "running"),
                ("sender", "Inventory/tea", "running"),
            }
            assert ("receiver", "Order/o-1", "running") in await links(client, "Inventory/tea")

    asyncio.run(use())


class Silent(Inventory):
    name = "Silent"


def test_a_workflow_without_words_of_its_own_tells_no_others(tmp_path: Path) -> None:
    async def use() -> None:
        app = Mainspring(f"sqlite:///{tmp_path / 'silent.db'}")
        app.add(Silent())
        async with served(app) as client:
            assert [each["purpose"] for each in (await client.get("/api/workflows")).json()] == [None]

    assert Inventory.__doc__ is not None
    asyncio.run(use())


async def _has_packing(app: Mainspring) -> bool:
    row = (await app.instances(id_prefix="o-1"))[0]
    legs = await app.instances(workflow="Leg")
    return row.state == "AwaitingPacking" and {leg.status for leg in legs} == {"completed", "running"}


@pytest.mark.parametrize(
    ("redact", "told"), [((), "its first input was not taken: ValueError: a bad start"), (("counter",), "ValueError")]
)
def test_an_instance_that_could_not_begin_tells_why_it_has_no_moments(
    tmp_path: Path, redact: tuple[str, ...], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> Any:
        raise ValueError("a bad start")

    monkeypatch.setattr(Counter, "decide", refuse)

    async def main() -> None:
        app = Mainspring(f"sqlite:///{tmp_path / 'unbegun.db'}")
        app.add(Counter())
        async with served(app, redact=redact) as client:
            await app.send(Count("c-1"))
            page = json.decode((await client.get("/api/moments/Counter/c-1")).content, type=models.MomentPage)
            assert page.items == []
            assert page.stopped is not None
            assert (page.stopped.position, page.stopped.problem) == (1, told)

    run(main)
