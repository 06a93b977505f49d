"""A flow whose code was changed: what tools say of that before, and what becomes of instances."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mainspring import Began, Complete, InitiatedBy, Mainspring, Sent
from mainspring.errors import DriftError, OperationError, UndeclaredInputError
from mainspring.flows import Flow, Undo, ask, each, publish, receive, stage
from mainspring.flows.flow import make_flow
from mainspring.testing import HistoryChanged, given, replay_histories, save_histories, simulate
from tests.engine import flow_orders
from tests.engine.flow_orders import (
    PATIENCE,
    Charge,
    Confirmed,
    Packed,
    PlaceOrder,
    Receipt,
    Release,
    charge,
    fulfil,
    orders,
    pack,
    refund,
)
from tests.engine.flow_twins import APP, FLOW, placed, released, served, told
from tests.support.running import run
from tests.unit.analysis.command_line import Ran, command_line


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


async def returning_early(order: PlaceOrder) -> Receipt:
    charged = await charge(order.order_id, order.cents).undone_by(refund(order.order_id))
    return Receipt(order.order_id, charged.id, 0)


async def misspelt(order: PlaceOrder) -> Receipt:
    charged = await charge(order.order_id, order.cents).undone_by(refund(order.order_id))
    wrong: Any = charged
    return Receipt(order.order_id, wrong.ids, 0)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (returning_early, "fulfil: charge.done in Running: Scheduled(TimerDue) is not decided any more, Completed"),
        (misspelt, "fulfil: charge.done in Running: decide raises AttributeError"),
    ],
)
def test_what_if_tells_of_code_that_ends_early_or_fails(url: str, monkeypatch: Any, code: Any, text: str) -> None:
    told = what_if(url, monkeypatch, changed(code))
    assert told.code == 1
    assert text in told.out


def test_what_if_says_nothing_of_drift_where_the_code_adopts(url: str, monkeypatch: Any) -> None:
    assert "drift" not in what_if(url, monkeypatch, changed(packing_first, drift="adopt")).out


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
