"""What is told of many instances over HTTP: pictures, figures, findings, and operations on all that are found."""

import asyncio
import threading
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from msgspec import json

from mainspring.analysis.figures.advice import LEAST
from mainspring.analysis.figures.figures import Figures
from mainspring.analysis.streams import OutlinePage
from mainspring.analysis.stuck.stuck import StuckFound
from mainspring.analysis.what_if.report import Report
from mainspring.app.internals import internals_of
from mainspring.port.store import Store
from mainspring.web import models
from mainspring.web.api import api
from mainspring.web.problems import Refusal
from mainspring.web.slow import READS_AT_ONCE, Slow
from mainspring.web.workflows import DrawnDiagram
from tests.edges.web.support import asked, counters, served
from tests.edges.web.test_api import Client, count, serve
from tests.support.waiting import until
from tests.unit.analysis.planted import shop


def test_a_workflow_is_drawn_from_its_code_and_its_history(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        await count(client, times=3)
        await count(client, "c-2")
        drawn: dict[str, DrawnDiagram] = {}
        for source in ("code", "history", "both"):
            answer = await client.get(f"/api/workflows/Counter/diagram?from={source}")
            drawn[source] = json.decode(answer.content, type=DrawnDiagram)
        counts = {
            source: [arrow.steps[0].count for arrow in found.diagram.arrows if arrow.steps]
            for source, found in drawn.items()
        }
        assert counts == {"code": [None, None], "history": [3, 1], "both": [3, 1]}
        assert "layout" not in (await client.get("/api/workflows/Counter/diagram")).json()
        svg = await client.get("/api/workflows/Counter/diagram?format=svg")
        assert (svg.headers["content-type"], svg.text[:5]) == ("image/svg+xml", "<svg ")
        assert "sandbox" in svg.headers["content-security-policy"]
        for format, begin in (("mermaid", "stateDiagram-v2"), ("dot", "digraph")):
            assert begin in (await client.get(f"/api/workflows/Counter/diagram?format={format}")).text
        assert (await client.get("/api/workflows/Nothing/diagram")).status_code == 404

    serve(tmp_path, use)


def test_a_workflow_is_checked_and_documented(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        answer = await client.get("/api/workflows/Counter/findings")
        found = json.decode(answer.content, type=models.FindingsDocument)
        assert [finding.rule for finding in found.findings] == ["waits-without-timeout"]
        assert found.findings[0].file == "mainspring/testing/samples.py"
        subject = (await client.get("/api/workflows/Counter/documentation")).json()
        assert [message["name"] for message in subject["machine"]["inputs"]] == ["Count"]

    serve(tmp_path, use)


def test_figures_stuck_instances_and_what_if_are_told(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        await count(client, times=3)
        await count(client, "c-2")
        figures = json.decode((await client.get("/api/analytics?workflow=Counter")).content, type=Figures)
        assert figures.workflows[0].statuses == {"completed": 1, "running": 1}
        assert json.decode((await client.get("/api/stuck")).content, type=StuckFound).looked_at == 1
        report = json.decode((await client.get("/api/what-if?workflow=Counter&sample=1")).content, type=Report)
        assert (report.instances, report.differing) == (1, 0)
        assert (await client.get("/api/analytics?since=2026-01-01T00:00:00")).status_code == 422

    serve(tmp_path, use)


def test_what_is_worth_a_look_is_told_with_the_figures() -> None:
    async def use(client: Client) -> None:
        for number in range(LEAST):
            await client.post("/api/messages/PlaceOrder", json={"order_id": f"o-{number}"})

        async def all_in(state: str) -> bool:
            asked = {"workflow": "Orders", "state": state, "limit": LEAST}
            return len((await client.get("/api/instances", params=asked)).json()["items"]) == LEAST

        await until(lambda: all_in("AwaitingPickup"))
        for number in range(LEAST):
            await client.post("/api/messages/PickedUp", json={"order_id": f"o-{number}"})

        answer = await client.get("/api/analytics?workflow=Orders")
        found = json.decode(answer.content, type=Figures)
        assert [(each.kind, each.subject) for each in found.advice] == [("timer never fires", "PaymentTimedOut")]

    async def main() -> None:
        async with served(shop()) as client:
            await use(client)

    asyncio.run(main())


def test_instances_whose_rows_have_the_time_of_another_clock_are_counted_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def use(client: Client) -> None:
        await count(client)
        [row] = (await client.get("/api/instances")).json()["items"]
        # By the clock of its events they may have happened since; by that of its row it has not moved since.
        moved = datetime.fromisoformat(row["updated"])
        monkeypatch.setattr("mainspring.analysis.figures.account.Account.take", counted := Taken())
        since = quote((moved + timedelta(seconds=1)).isoformat())
        await client.get(f"/api/analytics?since={since}")
        assert counted.instances == ["c-1"]

    serve(tmp_path, use)


class Taken:
    """Notes which instances are read, whatever is then counted of them."""

    def __init__(self) -> None:
        self.instances: list[str] = []

    def __call__(self, page: OutlinePage) -> None:
        self.instances += [row.id for row in page.instances]


def test_many_are_counted_first_and_operated_on_only_when_that_is_said(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        for number in range(3):
            await count(client, f"c-{number}")
        words: dict[str, Any] = {"workflow": "Counter", "status": "running"}
        counted = await client.post("/api/bulk/suspend", json=words)
        looked = json.decode(counted.content, type=models.BulkDocument)
        assert (looked.dry_run, looked.status, looked.matched, looked.done) == (True, "done", 3, 0)
        order = {**words, "dry_run": False, "reason": "to look at them"}
        done = await client.post("/api/bulk/suspend", json=order, headers={"x-mainspring-actor": "ann"})
        report = json.decode(done.content, type=models.BulkDocument)
        assert (report.status, report.done, report.refusals) == ("done", 3, 0)
        last = (await client.get("/api/streams/Counter/c-1")).json()["items"][-1]
        assert (last["event"], last["actor"], last["reason"]) == ("Suspended", "ann", "to look at them")
        assert [job["id"] for job in (await client.get("/api/bulk")).json()] == [report.id, looked.id]
        for wrong in ({}, {"workflow": "Counter", "to": 3}, {"nonsense": 1}):
            assert (await client.post("/api/bulk/suspend", json=wrong)).status_code == 422, wrong

    serve(tmp_path, use)


def test_what_is_slow_tells_how_far_it_is_and_can_be_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mainspring.web.bulk.ANSWER_SECONDS", 0.05)

    async def use(client: Client) -> None:
        for number in range(3):
            await count(client, f"c-{number}")
        order = {"workflow": "Counter", "dry_run": False, "per_second": 0.01}
        begun = json.decode((await client.post("/api/bulk/suspend", json=order)).content, type=models.BulkDocument)
        far = begun
        while not far.matched:  # they are counted first
            far = json.decode((await client.get(f"/api/bulk/{begun.id}")).content, type=models.BulkDocument)
        assert (begun.status, far.status, far.matched) == ("running", "running", 3)
        stopped = json.decode((await client.delete(f"/api/bulk/{begun.id}")).content, type=models.BulkDocument)
        assert (stopped.status, stopped.done + stopped.left) == ("stopped", 3)
        assert (await client.get("/api/bulk/nothing")).status_code == 404

    serve(tmp_path, use)


def test_one_that_goes_on_does_not_keep_all_that_are_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mainspring.web.bulk.ANSWER_SECONDS", 0.05)
    monkeypatch.setattr("mainspring.web.bulk.KEPT", 3)

    async def use(client: Client) -> None:
        for number in range(2):
            await count(client, f"c-{number}")
        words: dict[str, Any] = {"workflow": "Counter", "status": "running"}
        slow = await client.post("/api/bulk/suspend", json={**words, "dry_run": False, "per_second": 0.01})
        # Two are under way at most: each look is over before the next one begins, however busy the machine is.
        monkeypatch.setattr("mainspring.web.bulk.ANSWER_SECONDS", 60)
        looks = [(await client.post("/api/bulk/suspend", json=words)).json()["id"] for _ in range(4)]
        known = [job["id"] for job in (await client.get("/api/bulk")).json()]
        assert known == [*reversed(looks[-2:]), slow.json()["id"]]
        await client.delete(f"/api/bulk/{slow.json()['id']}")

    serve(tmp_path, use)


def test_tasks_are_picked_and_refused_with_a_reason_over_http(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        for number in range(2):
            await client.post("/api/messages/RequestLeave", json={"leave_id": f"l-{number}"})
        ann = {"x-mainspring-actor": "ann"}
        picked = (await client.post("/api/task-picks", json={"role": "manager", "count": 5}, headers=ann)).json()
        assert [(task["claimed_by"], task["id"]) for task in picked] == [
            ("ann", "LeaveRequests/l-0/3"),
            ("ann", "LeaveRequests/l-1/3"),
        ]
        # This task has no answer that means no, and says so.
        refused = await client.post(f"/api/task-rejections/{picked[0]['id']}", json={"reason": "no"}, headers=ann)
        assert (refused.status_code, refused.json()["type"]) == (409, "urn:mainspring:error:TaskRefusedError")

    serve(tmp_path, use)


# ---- slow questions


def test_the_same_question_is_asked_once_and_its_answer_kept_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mainspring.web.slow.KEPT_SECONDS", 3_600.0)  # longer than any machine stands still
    asked: list[Store] = []

    async def ask(store: Store) -> int:
        asked.append(store)
        await asyncio.sleep(0)  # so that the others ask before it answers
        return len(asked)

    async def use() -> None:
        async with counters(tmp_path) as app:
            slow = Slow(app)
            assert await asyncio.gather(*(slow.read("one", ask) for _ in range(5))) == [1] * 5
            assert await slow.read("one", ask) == 1
            assert await slow.read("another", ask) == 2
            assert internals_of(app).engine.store not in asked

    asyncio.run(use())


def test_a_slow_question_ends_in_time_and_too_many_are_refused(tmp_path: Path) -> None:
    async def ask(store: Store) -> None:
        await asyncio.Event().wait()

    async def use() -> None:
        async with counters(tmp_path) as app:
            slow = Slow(app, limit_seconds=0.2)
            waiting = [asyncio.ensure_future(slow.read(number, ask)) for number in range(READS_AT_ONCE)]
            await asyncio.sleep(0)  # they begin
            with pytest.raises(Refusal) as busy:
                await slow.read("one more", ask)
            assert busy.value.problem.status == 503
            for each in waiting:
                with pytest.raises(Refusal) as late:
                    await each
                assert late.value.problem.status == 504
            with pytest.raises(Refusal):
                await slow.compute(lambda: time.sleep(0.5))  # longer than it may take

    asyncio.run(use())


def test_who_would_wait_long_gets_the_last_answer_while_a_new_one_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"QUICK_SECONDS": -1.0, "KEPT_SECONDS": 0.0, "KEPT_TIMES": 0.0}.items():
        monkeypatch.setattr(f"mainspring.web.slow.{name}", value)
    numbers = iter(range(1, 10))
    may_answer = threading.Event()

    async def ask(store: Store) -> int:
        number = next(numbers)
        await asyncio.to_thread(may_answer.wait)
        return number

    async def use() -> None:
        async with counters(tmp_path) as app:
            slow = Slow(app)
            may_answer.set()
            assert await slow.read("one", ask) == 1
            may_answer.clear()
            assert [await slow.read("one", ask) for _ in range(3)] == [1] * 3
            may_answer.set()

            async def is_new() -> bool:
                return await slow.read("one", ask) != 1

            await until(is_new)

    asyncio.run(use())


def test_while_others_are_asked_the_last_answer_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"QUICK_SECONDS": -1.0, "KEPT_SECONDS": 0.0, "KEPT_TIMES": 0.0, "READS_AT_ONCE": 1}.items():
        monkeypatch.setattr(f"mainspring.web.slow.{name}", value)
    may_answer = threading.Event()

    async def at_once(store: Store) -> int:
        return 1

    async def later(store: Store) -> int:
        await asyncio.to_thread(may_answer.wait)
        return 2

    async def use() -> None:
        async with counters(tmp_path) as app:
            slow = Slow(app)
            assert await slow.read("one", at_once) == 1
            other = asyncio.ensure_future(slow.read("other", later))
            await asyncio.sleep(0)  # it begins
            assert await slow.read("one", at_once) == 1
            may_answer.set()
            assert await other == 2

    asyncio.run(use())


def test_a_question_that_fails_is_asked_again(tmp_path: Path) -> None:
    answers = iter([ValueError("once"), 42])

    async def ask(store: Store) -> int:
        found = next(answers)
        if isinstance(found, Exception):
            raise found
        return found

    async def use() -> None:
        async with counters(tmp_path) as app:
            slow = Slow(app)
            with pytest.raises(ValueError, match="once"):
                await slow.read("one", ask)
            assert await slow.read("one", ask) == 42

    asyncio.run(use())


def test_the_threads_of_slow_answers_end_with_the_server_and_there_are_others_when_it_serves_once_more(
    tmp_path: Path,
) -> None:
    made = api(counters(tmp_path))

    def own() -> set[threading.Thread]:
        return {each for each in threading.enumerate() if each.name.startswith("mainspring-web")}

    async def main() -> None:
        others = own()
        for path in ("/api/stuck", "/api/workflows/Counter/diagram"):
            async with made.router.lifespan_context(made), asked(made) as client:
                assert (await client.get(path)).status_code == 200
                assert own() > others
            await until(lambda: own() <= others)

    asyncio.run(main())
