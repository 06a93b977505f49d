"""One table: every tool on a flow and on its twin, decided by hand. What it says of one, it says of the other."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from mainspring import Mainspring
from mainspring.sealing import Encrypted, StaticKeys
from mainspring.testing import replay_histories, save_histories
from tests.edges.web.support import served as http
from tests.engine.flow_orders import (
    orders,
)
from tests.engine.flow_twins import FLOW, Cli, Style, both, released, served, told
from tests.support.running import run


@both
def test_lists_and_search_call_its_state_by_the_stage(cli: Cli, style: Style) -> None:
    rows = cli("ls", "--workflow", style.name, "--json").documents
    found = {row["id"]: (row["status"], row["state"]) for row in rows}
    p = style.prefix
    assert found == {
        f"{p}-1": ("completed", style.second),
        f"{p}-2": ("failed", "Running"),
        f"{p}-3": ("running", "Running"),
        f"{p}-4": ("running", style.second),
    }
    assert len(cli("ls", "--state", style.second, "--json").documents) == 2


@both
def test_time_travel_shows_it_at_a_position(cli: Cli, style: Style) -> None:
    shown = cli("show", f"{style.prefix}-1", "--at", "5")
    assert "position 5 of" in shown.out
    assert "state: Running" in shown.out
    assert f"state: {style.second}" in cli("show", f"{style.prefix}-1").out


@both
def test_a_replay_walks_through_it(cli: Cli, style: Style) -> None:
    walked = cli("replay", f"{style.prefix}-1")
    assert walked.code == 0
    assert f"Running → {style.second}" in walked.out


def test_a_replay_of_a_flow_says_nothing_of_its_journal(cli: Cli) -> None:
    assert "recorded:" not in cli("replay", "o-1").out


@both
def test_explain_says_what_was_decided_and_that_todays_code_agrees(cli: Cli, style: Style) -> None:
    explained = cli("explain", f"{style.prefix}-1", "--at", "6", "--json").document["explanation"]
    assert explained["agrees"]
    assert explained["error"] is None


def test_explain_of_a_flow_shows_the_branches_of_its_own_code_in_that_step_alone(cli: Cli) -> None:
    taken = cli("explain", "q-1", "--at", "4", "--json").document["explanation"]["decide"]
    assert [(each["text"], each["function"]) for each in taken] == [("if packed > 3", "choose")]
    assert all(each["file"].endswith("flow_orders.py") for each in taken)


@both
def test_counterfactual_tells_how_it_would_have_gone(cli: Cli, style: Style) -> None:
    dropped = cli("counterfactual", f"{style.prefix}-1", "--at", "6", "--drop", "--ahead", "1")
    assert dropped.code == 0
    assert "Compensating 'not confirmed'" in dropped.out
    assert "Failed 'not confirmed'" in dropped.out


@both
def test_golden_histories_hold(url: str, tmp_path: Path, style: Style) -> None:
    path = tmp_path / "histories.json"
    assert served(url, lambda app: save_histories(app, path, workflow=style.workflow)) == 4
    assert replay_histories(orders(), path) == 12


@both
def test_the_diagram_of_its_code_is_the_one_of_its_history(cli: Cli, style: Style) -> None:
    code = cli("diagram", style.name).out
    assert "Could not be read" not in code
    assert f"Running --> {style.second}" in code
    drawn = cli("diagram", style.name, "--from", "both").out
    assert "history only" not in drawn
    for arrow in (line.strip() for line in cli("diagram", style.name, "--from", "history").out.splitlines()):
        if "-->" in arrow:
            assert arrow.partition(" : ")[0] in code


@both
def test_lint_finds_nothing_wrong(cli: Cli, style: Style) -> None:
    found = cli("lint")
    assert "MS901" not in found.out
    assert "error" not in found.out
    assert " fulfil" not in found.out.replace("flow_orders", "")


@both
@pytest.mark.parametrize("format", ["jsonl", "xes", "ocel"])
def test_streams_are_exported(cli: Cli, tmp_path: Path, style: Style, format: str) -> None:
    path = tmp_path / f"log.{format}"
    done = cli("export", "-o", str(path), "--format", format, "--workflow", style.name, "--payloads")
    assert done.code == 0
    assert done.out.startswith("4 instances")
    assert style.second in path.read_text() or format == "jsonl"


def test_what_is_redacted_leaves_no_file_neither_do_step_arguments(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "streams.jsonl"
    cli("export", "-o", str(path), "--payloads", "--redact", "charge.cents,PlaceOrder.cents", "--workflow", "fulfil")
    text = path.read_text()
    assert '"order_id":"o-1"' in text
    assert '"cents":500' not in text


@both
def test_figures_are_told_by_stage(cli: Cli, style: Style) -> None:
    (figures,) = cli("stats", "--workflow", style.name, "--json").document["workflows"]
    assert {stay["state"] for stay in figures["states"]} == {"Running", style.second}
    assert figures["statuses"] == {"completed": 1, "failed": 1, "running": 2}


@both
def test_what_ended_is_purged_and_archived(url: str, tmp_path: Path, style: Style) -> None:
    path = tmp_path / "archive.jsonl"

    async def use(app: Mainspring) -> None:
        report = await app.purge(older_than=timedelta(0), workflow=style.name, archive=path)
        assert report.instances == 2
        left = {row.id for row in await app.instances(workflow=style.name)}
        assert left == {f"{style.prefix}-3", f"{style.prefix}-4"}

    served(url, use)
    archived = [json.loads(line)["event"] for line in path.read_text().splitlines()]
    assert archived.count("Began") == 2


@both
def test_encrypted_nothing_of_it_stands_in_the_database(tmp_path: Path, style: Style) -> None:
    path = tmp_path / "sealed.db"
    seal = Encrypted(StaticKeys({"2026": bytes(range(32))}))

    async def body() -> None:
        async with orders(f"sqlite:///{path}", seal=seal) as app:
            id = f"{style.prefix}-77777"
            await app.send(style.place(id, 54321))
            await told(app, style, id, "Scheduled")
            await app.send(style.confirm(id))
            await told(app, style, id, "Asked")
            await released(app, style, id)
            await told(app, style, id, "Completed")

    run(body)
    kept = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"54321" not in kept


@both
def test_stuck_finds_none(cli: Cli, style: Style) -> None:
    assert "None of 4 instances" in cli("stuck").out


@both
def test_its_documentation_is_written(cli: Cli, tmp_path: Path, style: Style) -> None:
    assert cli("docs", "-o", str(tmp_path / "docs"), "--history").code == 0
    page = (tmp_path / "docs" / f"{style.name}.md").read_text()
    assert f"`{style.second}`" in page
    assert "Could not be read" not in page
    assert "decides" in page
    assert ("is kept until the code receives it" in page) == (style is FLOW)


@both
def test_it_is_operated_by_the_command_line(cli: Cli, style: Style) -> None:
    assert "suspended" in cli("suspend", f"{style.prefix}-3").out
    assert "running" in cli("resume", f"{style.prefix}-3").out
    assert "running" in cli("reset", f"{style.prefix}-1", "--to", "5").out
    assert "compensating" in cli("cancel", f"{style.prefix}-4").out
    assert "300s" in cli("timers").out


@both
def test_it_is_looked_at_and_operated_over_http(url: str, style: Style) -> None:
    p, looks = style.prefix, ("instances", "streams", "states", "waiting", "moments", "log", "links", "exports")

    async def body() -> None:
        async with http(orders(url)) as client:
            for look in looks:
                assert (await client.get(f"/api/{look}/{style.name}/{p}-1")).status_code == 200, look
            assert (await client.get(f"/api/results/{style.name}/{p}-1")).json()["result"]["parts"] == 2
            for look in ("diagram", "findings", "documentation"):
                assert (await client.get(f"/api/workflows/{style.name}/{look}")).status_code == 200, look
            known = {each["name"]: each for each in (await client.get("/api/workflows")).json()}
            assert known[style.name]["begins"] == [style.place.__name__]
            explained = await client.get(f"/api/explanations/{style.name}/{p}-1?at=6")
            assert explained.json()["explanation"]["agrees"]
            edit = {"at": 6, "what": "drop"}
            assert (await client.post(f"/api/counterfactuals/{style.name}/{p}-1", json=edit)).status_code == 200
            sent = await client.post(f"/api/messages/{style.confirm.__name__}", json={"order_id": f"{p}-3"})
            assert sent.json()["status"] == "stepped"

    run(body)


def test_what_answers_a_step_is_not_taken_from_outside(url: str) -> None:
    async def body() -> None:
        async with http(orders(url)) as client:
            refused = await client.post("/api/messages/charge.done", json={"value": {"id": "c-9"}})
            assert refused.status_code == 403

    run(body)


@both
@pytest.mark.parametrize("at", [2, 4, 6])
def test_a_step_becomes_a_test_that_passes(url: str, style: Style, at: int) -> None:
    async def body() -> str:
        async with http(orders(url)) as client:
            return str((await client.get(f"/api/tests/{style.name}/{style.prefix}-1?at={at}")).json()["text"])

    text = run(body)
    names: dict[str, Any] = {}
    exec(text, names)  # noqa: S102  it is what people copy into a file
    (test,) = (value for name, value in names.items() if name.startswith("test_"))
    test()


def test_the_test_of_a_flows_step_is_in_the_words_of_its_code(url: str) -> None:
    async def body() -> list[str]:
        async with http(orders(url)) as client:
            found = [await client.get(f"/api/tests/fulfil/o-1?at={at}") for at in (2, 4, 6, 10, 13)]
            return [one.json()["text"].split(".then(")[1].split("\n")[0] for one in found]

    assert run(body) == [
        "charge(order_id='o-1', cents=500).undone_by(refund(order_id='o-1')))",
        "TimerDue.after(300))",
        "CancelSchedule('300s'), Ask('Release?', Release, role='lead'))",
        "[pack(order_id='o-1', part=0), pack(order_id='o-1', part=1)])",
        "Publish(Packed(order_id='o-1')), Complete(Receipt(order_id='o-1', charge='c-o-1', parts=2)))",
    ]
