"""One table: every tool on a flow and on its twin, decided by hand. What it says of one, it says of the other."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mainspring import Began, Complete, InitiatedBy, Mainspring, Sent
from mainspring.errors import DriftError, OperationError, SettingError, UndeclaredInputError, WiringError
from mainspring.flows import Flow, Undo, ask, each, publish, receive, stage
from mainspring.flows.flow import make_flow
from mainspring.sealing import Encrypted, StaticKeys
from mainspring.testing import HistoryChanged, World, given, replay_histories, save_histories, simulate
from tests.edges.web.support import served as http
from tests.engine import computing_steps, flow_orders
from tests.engine.flow_orders import (
    PATIENCE,
    Bundle,
    Bundler,
    ByHand,
    Charge,
    Choose,
    ConfirmByHand,
    Confirmed,
    Packed,
    PlaceByHand,
    PlaceOrder,
    Price,
    Priced,
    Receipt,
    Release,
    ReleaseByHand,
    Ship,
    Shipped,
    charge,
    choose,
    fulfil,
    orders,
    pack,
    price,
    refund,
    ship,
)
from tests.support.running import run
from tests.support.waiting import until
from tests.unit.analysis.command_line import Ran, command_line

APP = "tests.engine.flow_orders:app"


class Style(NamedTuple):
    """One of the twins."""

    workflow: Any
    name: str
    place: Any
    confirm: Any
    release: Any
    prefix: str
    second: str
    """The second state, or stage."""
    shift: int
    """How many events more the entering of a stage takes."""


FLOW = Style(fulfil, "fulfil", PlaceOrder, Confirmed, Release, "o", "confirmed", 1)
HAND = Style(ByHand, "ByHand", PlaceByHand, ConfirmByHand, ReleaseByHand, "h", "Accepted", 0)

both = pytest.mark.parametrize("style", [FLOW, HAND], ids=["flow", "by hand"])


async def released(app: Mainspring, style: Style, id: str) -> None:
    """Answer the task of an instance, once it was asked."""

    async def asked() -> Any:
        tasks = await app.tasks.list()
        return next((task for task in tasks if f"/{id}/" in task.id), None)

    task = await until(asked)
    await app.tasks.complete(task.id, style.release(id), actor="eve", roles=["lead"])


async def told(app: Mainspring, style: Style, id: str, *events: str) -> None:
    """Wait until an instance has recorded so many events."""
    instance = app.instance(style.workflow, id)

    async def recorded() -> bool:
        return [type(entry.event).__name__ for entry in await instance.stream()][-len(events) :] == [*events]

    await until(recorded)


# ---- in virtual time


@asynccontextmanager
async def world(**settings: Any) -> AsyncGenerator[World]:
    async with simulate(orders(**settings)) as simulated:
        yield simulated


async def placed(world: World, style: Style, id: str, *, until_stage: str = "") -> Any:
    """Begin an instance, and lead it on."""
    await world.send(style.place(id))
    await world.settle()
    if until_stage in ("confirmed", "released"):
        await world.send(style.confirm(id))
        await world.settle()
    if until_stage == "released":
        await released(world.app, style, id)
        await world.settle()
    return world.instance(style.workflow, id)


def kinds(stream: list[Any]) -> list[str]:
    return [type(entry.event).__name__ for entry in stream if type(entry.event).__name__ != "Became"]


def test_simulated_the_twins_record_the_same_events_and_the_stage_beside() -> None:
    async def body() -> None:
        async with world() as simulated:
            mine = await placed(simulated, FLOW, "o-1", until_stage="released")
            hand = await placed(simulated, HAND, "h-1", until_stage="released")
            # A task that decide answers is closed by its answer in both.
            assert kinds(await mine.stream()) == kinds(await hand.stream())
            assert (await mine.row()).state == "confirmed"
            assert await mine.result() == Receipt("o-1", "c-o-1", 2)

    run(body)


@both
def test_a_timeout_undoes_what_was_done(style: Style) -> None:
    async def body() -> None:
        async with world() as simulated:
            instance = await placed(simulated, style, "x-1")
            await simulated.advance(hours=1)
            assert kinds(await instance.stream())[-4:] == ["Compensating", "Sent", "Compensated", "Failed"]
            assert (await instance.row()).error == "not confirmed"

    run(body)


@both
def test_an_operator_cancels_and_compensations_run(style: Style) -> None:
    async def body() -> None:
        async with world() as simulated:
            instance = await placed(simulated, style, "x-1")
            await instance.cancel("not wanted")
            await simulated.settle()
            assert kinds(await instance.stream())[-4:] == ["Compensating", "Sent", "Compensated", "Cancelled"]
            other = await placed(simulated, style, "x-2")
            await other.terminate("at once")
            assert (await other.row()).status == "terminated"

    run(body)


@both
def test_suspended_it_keeps_inputs_and_takes_them_when_it_is_resumed(style: Style) -> None:
    async def body() -> None:
        async with world() as simulated:
            instance = await placed(simulated, style, "x-1")
            await instance.suspend("look first")
            await simulated.send(style.confirm("x-1"))
            await simulated.settle()
            assert [waiting.message for waiting in await instance.waiting()] == [style.confirm("x-1")]
            await instance.resume()
            await simulated.settle()
            assert (await instance.row()).state == style.second

    run(body)


@both
def test_a_reset_goes_back_to_where_a_timer_ran_and_the_timer_still_fires(style: Style) -> None:
    async def body() -> None:
        async with world() as simulated:
            instance = await placed(simulated, style, "x-1", until_stage="released")
            await instance.reset(5)
            assert (await instance.row()).state == "Running"
            await simulated.send(style.confirm("x-1"))
            await simulated.settle()
            assert (await instance.row()).state == style.second
            other = await placed(simulated, style, "x-2", until_stage="released")
            await other.reset(5)
            await simulated.advance(hours=1)
            assert (await other.row()).error == "not confirmed"

    run(body)


@both
def test_a_reset_goes_back_to_where_a_task_was_open_and_it_can_be_answered_again(style: Style) -> None:
    async def body() -> None:
        async with world() as simulated:
            instance = await placed(simulated, style, "x-1", until_stage="released")
            await instance.reset(8 + style.shift)
            await released(simulated.app, style, "x-1")
            await simulated.settle()
            assert (await instance.row()).status == "completed"

    run(body)


@both
def test_a_reset_goes_back_to_where_a_command_was_unanswered_and_it_is_carried_out_again(style: Style) -> None:
    async def body() -> None:
        async with world() as simulated:
            instance = await placed(simulated, style, "x-1", until_stage="confirmed")
            await instance.reset(3)
            await simulated.settle()
            await simulated.send(style.confirm("x-1"))
            await simulated.settle()
            await released(simulated.app, style, "x-1")
            await simulated.settle()
            assert (await instance.row()).status == "completed"

    run(body)


def test_each_is_a_child_of_the_other() -> None:
    async def body() -> None:
        async with world() as simulated:
            await simulated.send(Ship("s"))
            await simulated.settle()
            for style, id in ((FLOW, "s-a"), (HAND, "s-b")):
                await simulated.send(style.confirm(id))
                await simulated.settle()
                await released(simulated.app, style, id)
                await simulated.settle()
            assert await simulated.instance(ship, "s").result() == Shipped("s", 4)
            await simulated.send(Bundle("b"))
            await simulated.settle()
            await simulated.send(Confirmed("b-c"))
            await simulated.settle()
            await released(simulated.app, FLOW, "b-c")
            await simulated.settle()
            assert (await simulated.instance(Bundler, "b").row()).status == "completed"

    run(body)


def test_a_child_is_cancelled_and_undone_with_its_parent() -> None:
    async def body() -> None:
        async with world() as simulated:
            await simulated.send(Ship("s"))
            await simulated.settle()
            await simulated.instance(ship, "s").cancel("not wanted")
            await simulated.settle()
            assert kinds(await simulated.instance(fulfil, "s-a").stream())[-1] == "Cancelled"
            assert [call.message.order_id for call in simulated.calls(refund.command)] == ["s-a"]

    run(body)


def test_a_request_is_replied_to() -> None:
    async def body() -> None:
        async with world() as simulated:
            assert await simulated.request(Price("p-1", 3), Priced) == Priced(6)
            assert (await simulated.instance(price, "p-1").row()).status == "completed"

    run(body)


@both
def test_a_calendar_begins_it(style: Style) -> None:
    async def body() -> None:
        app = orders()
        app.schedules.add("nightly", message=lambda time: style.place(f"x-{time:%d}"), every=timedelta(days=1))
        async with simulate(app) as simulated:
            await simulated.advance(days=2)
            assert len(await app.instances(workflow=style.name)) >= 2

    run(body)


@both
def test_who_may_not_answer_a_task_is_refused_and_a_claim_is_kept(style: Style) -> None:
    async def body() -> None:
        async with world() as simulated:
            await placed(simulated, style, "x-1", until_stage="confirmed")
            (task,) = await simulated.app.tasks.list()
            assert (task.title, task.role) == ("Release?", "lead")
            with pytest.raises(Exception, match="was not asked of ann"):
                await simulated.app.tasks.complete(task.id, style.release("x-1"), actor="ann")
            claimed = await simulated.app.tasks.claim(task.id, actor="eve", roles=["lead"])
            assert claimed.claimed_by == "eve"
            forms = await simulated.app.tasks.forms(task.id)
            assert len(forms) == 1

    run(body)


# ---- another version of the code


def changed(
    function: Callable[..., Any], version: int = 1, drift: str = "refuse", steps: tuple[Any, ...] = ()
) -> Flow[Any, Any]:
    """Return another flow in the place of the one that there is."""
    declared: dict[str, Any] = {"steps": steps, "stages": (), "receives": (), "sends": ()}
    return make_flow(function, "fulfil", id="order_id", version=version, drift=drift, deadline=None, **declared)


async def as_it_is(order: PlaceOrder) -> Receipt:
    """The same in other words."""
    charged = await charge(order.order_id, order.cents).undone_by(refund(order.order_id))
    try:
        await asyncio.wait_for(receive(Confirmed), PATIENCE.total_seconds())
    except TimeoutError as error:
        raise Undo("not confirmed") from error
    stage("confirmed")
    await ask("Release?", Release, role="lead")
    parts = await each([pack(order.order_id, part) for part in range(order.parts)])
    publish(Packed(order.order_id))
    return Receipt(order.order_id, charged.id, len(parts))


async def dearer(order: PlaceOrder) -> Receipt:
    charged = await charge(order.order_id, order.cents + 1).undone_by(refund(order.order_id))
    async with asyncio.timeout(PATIENCE.total_seconds()):
        await receive(Confirmed)
    stage("confirmed")
    await ask("Release?", Release, role="lead")
    parts = await each(pack(order.order_id, part) for part in range(order.parts))
    publish(Packed(order.order_id))
    return Receipt(order.order_id, charged.id, len(parts))


async def packing_first(order: PlaceOrder) -> Receipt:
    charged = await charge(order.order_id, order.cents).undone_by(refund(order.order_id))
    async with asyncio.timeout(PATIENCE.total_seconds()):
        await receive(Confirmed)
    stage("confirmed")
    await pack(order.order_id, 99)
    await ask("Release?", Release, role="lead")
    parts = await each(pack(order.order_id, part) for part in range(order.parts))
    return Receipt(order.order_id, charged.id, len(parts))


async def without_charge(order: PlaceOrder) -> Receipt:
    await receive(Confirmed)
    return Receipt(order.order_id, "none", 0)


CALLED = (Began(), InitiatedBy(PlaceOrder("o-1")), Sent(charge.command_of("o-1", 500)))


def test_an_answer_to_a_step_that_the_code_has_no_more_says_to_name_it() -> None:
    flow = changed(without_charge, drift="adopt")
    answered = given(flow, *CALLED).when(charge.returned(Charge("c-1")))
    answered.then_raises(
        UndeclaredInputError, match="@app.flow(steps=(charge,)) as long as instances may have called it"
    )


def test_an_adopting_flow_passes_over_what_it_does_not_ask_for_any_more() -> None:
    flow = changed(without_charge, drift="adopt", steps=(charge,))
    given(flow, *CALLED).when(charge.returned(Charge("c-1"))).then()
    given(flow, *CALLED).when(Confirmed("o-1")).then(Complete(Receipt("o-1", "none", 0)))


def test_a_flow_that_refuses_drift_names_both_sides() -> None:
    flow = changed(without_charge, steps=(charge,))
    answered = given(flow, *CALLED).when(charge.returned(Charge("c-1")))
    answered.then_raises(DriftError, match="recorded, and no longer asked for: charge(order_id='o-1', cents=500)")


def two_versions(second: Flow[Any, Any]) -> Mainspring:
    app = orders("memory://", fulfil)
    app.add(second)
    return app


def test_a_second_version_takes_new_instances_and_the_old_ones_go_on_with_the_first() -> None:
    async def body() -> None:
        app = orders()
        async with simulate(app) as simulated:
            await placed(simulated, FLOW, "o-1")
            assert (await simulated.instance(fulfil, "o-1").row()).workflow_version == 1
        async with simulate(two_versions(changed(dearer, 2))) as simulated:
            await simulated.send(PlaceOrder("o-2"))
            await simulated.settle()
            (row,) = await simulated.app.instances(workflow="fulfil")
            assert row.workflow_version == 2
            assert [call.message.cents for call in simulated.calls(charge.command)] == [501]

    run(body)


# ---- on a database


async def fill(app: Mainspring) -> None:
    """Of each twin one that has completed, one that has failed, one at its timer, one at its task."""
    for style in (FLOW, HAND):
        ids = [f"{style.prefix}-{number}" for number in (1, 2, 3, 4)]
        for id in ids:
            await app.send(style.place(id, 13 if id == ids[1] else 500))
        await told(app, style, ids[1], "Compensating", "Failed")
        for id in (ids[0], ids[3]):
            await told(app, style, id, "Scheduled")
            await app.send(style.confirm(id))
            await told(app, style, id, "Asked")
        await told(app, style, ids[2], "Scheduled")
        await released(app, style, ids[0])
        await told(app, style, ids[0], "Completed")
    await app.send(Choose("q-1", 5))
    await until(lambda: finished(app, choose, "q-1"))


async def finished(app: Mainspring, flow: Flow[Any, Any], id: str) -> bool:
    return (await app.instance(flow, id).row()).status == "completed"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("flows") / "orders.db"

    async def body() -> None:
        async with orders(f"sqlite:///{path}") as app:
            await fill(app)

    run(body)
    return path


@pytest.fixture
def url(filled: Path, tmp_path: Path) -> str:
    return f"sqlite:///{shutil.copy(filled, tmp_path)}"


@pytest.fixture
def cli(url: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """The command line, on a copy of the database."""
    monkeypatch.setattr(flow_orders, "app", orders(url))
    return lambda *arguments: command_line(APP, *arguments)


Cli = Callable[..., Ran]


def served(url: str, use: Callable[[Mainspring], Awaitable[Any]], *flows: Flow[Any, Any]) -> Any:
    async def body() -> Any:
        app = orders(url, *flows)
        await app.start(work=False)
        try:
            return await use(app)
        finally:
            await app.stop()

    return run(body)


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


def test_golden_histories_say_where_changed_code_of_a_flow_differs(url: str, tmp_path: Path) -> None:
    path = tmp_path / "histories.json"
    served(url, lambda app: save_histories(app, path, workflow=fulfil))
    assert replay_histories(orders("memory://", changed(as_it_is)), path) == 12
    with pytest.raises(HistoryChanged, match="cents: expected 500, decided 501"):
        replay_histories(orders("memory://", changed(dearer)), path)


def what_if(url: str, monkeypatch: pytest.MonkeyPatch, *flows: Flow[Any, Any]) -> Ran:
    monkeypatch.setattr(flow_orders, "app", orders(url, *flows))
    return command_line(APP, "what-if", "--workflow", "fulfil")


def test_what_if_finds_no_difference_where_the_same_is_said_in_other_words(url: str, monkeypatch: Any) -> None:
    assert what_if(url, monkeypatch, fulfil).code == 0
    assert what_if(url, monkeypatch, changed(as_it_is)).code == 0


def test_what_if_counts_the_flows_in_flight_that_would_drift_and_says_where(url: str, monkeypatch: Any) -> None:
    told = what_if(url, monkeypatch, changed(packing_first))
    assert told.code == 1
    lines = told.out.splitlines()
    head = next(place for place, line in enumerate(lines) if "it would be suspended by drift" in line)
    assert "asks for pack at" in lines[head]
    assert "in packing_first" in lines[head]
    assert "1 instance, 1 of them in flight" in lines[head + 1]
    assert "asked for, and not recorded: pack(order_id='o-4', part=99)" in told.out


def test_what_if_says_nothing_of_drift_where_the_code_adopts(url: str, monkeypatch: Any) -> None:
    assert "drift" not in what_if(url, monkeypatch, changed(packing_first, drift="adopt")).out


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


# ---- migrate


def migrated(url: str, second: Flow[Any, Any], *, dry_run: bool = False) -> Any:
    async def use(app: Mainspring) -> Any:
        instance = app.instance(fulfil, "o-4")
        await instance.migrate(2, dry_run=dry_run)
        return (await instance.row()).workflow_version

    async def body() -> Any:
        app = orders(url, fulfil)
        app.add(second)
        async with app:
            version = await use(app)
            if not dry_run:
                await released(app, FLOW, "o-4")
                await told(app, FLOW, "o-4", "Completed")
            return version

    return run(body)


def test_a_flow_migrates_to_a_version_that_does_what_is_recorded_and_goes_on_there(url: str) -> None:
    assert migrated(url, changed(as_it_is, 2), dry_run=True) == 1
    assert migrated(url, changed(as_it_is, 2)) == 2


def test_a_flow_migrates_to_a_version_that_adopts_what_is_recorded(url: str) -> None:
    assert migrated(url, changed(as_it_is, 2, drift="adopt")) == 2


def test_a_version_that_would_drift_is_refused_and_the_line_is_named(url: str) -> None:
    with pytest.raises(
        OperationError, match=r"(?s)cannot migrate to version 2.*pack.*in packing_first.*drift=\"adopt\""
    ):
        migrated(url, changed(packing_first, 2))


# ---- what is said of it


def test_a_flow_is_found_by_its_attributes_and_kept_as_long_as_it_says() -> None:
    app = Mainspring("memory://")

    @app.flow(attributes=lambda question: {"cents": question.cents}, retention=timedelta(days=30), again="refuse")
    async def asked(question: Price) -> None:
        await receive(Confirmed)

    async def body() -> None:
        async with simulate(app) as simulated:
            await simulated.send(Price("p-1", 3))
            await simulated.send(Price("p-2", 4))
            (found,) = await app.instances(attributes={"cents": 4})
            assert found.id == "p-2"
            assert await app.instance(asked, "p-2").attributes() == {"cents": 4}

    run(body)
    assert (asked.retention, asked.again) == (timedelta(days=30), "refuse")


def test_an_option_that_a_flow_has_not_is_refused_with_its_reason() -> None:
    app = Mainspring("memory://")
    with pytest.raises(SettingError, match="The state of a flow is its history"):
        app.flow(history="state")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportUnknownMemberType]
    with pytest.raises(SettingError, match="A flow has no such option"):
        app.flow(speed=3)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportUnknownMemberType]


# ---- steps in processes


def test_steps_compute_in_processes_of_their_own() -> None:
    async def body() -> list[int]:
        async with computing_steps.app as app:
            return await (await app.workflow(computing_steps.total).send(computing_steps.Sum("a", (1, 2, 3)))).result()

    sum, *processes = run(body)
    assert sum == 14
    assert os.getpid() not in processes


def test_a_step_that_no_other_process_could_find_is_refused() -> None:
    app = Mainspring("memory://")
    with pytest.raises(WiringError, match="is async"):

        @app.step(executor="process")
        async def waits(number: int) -> int:
            return number

    with pytest.raises(WiringError, match="not at the top of a module"):

        @app.step(executor="process")
        def inner(number: int) -> int:
            return number
