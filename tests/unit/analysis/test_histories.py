"""Golden histories from the command line: kept from a database, held against today's code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from examples.order_processing import workflow as orders
from mainspring.testing import replay_histories
from tests.unit.analysis.approved import approved
from tests.unit.analysis.command_line import command_line
from tests.unit.analysis.example_apps import APPS


def test_what_is_recorded_is_verified_and_is_what_the_testing_kit_reads(examples: Path) -> None:
    kept = command_line("order_processing", "record")

    assert (kept.code, kept.out) == (0, "20 histories in histories.json (20 of OrderProcessing)\n")
    inputs = replay_histories(APPS["order_processing"], "histories.json")
    verified = command_line("order_processing", "verify", "histories.json")
    assert (verified.code, verified.out) == (0, f"20 histories, {inputs} inputs: all as before\n")


def test_what_is_recorded_can_be_chosen(examples: Path) -> None:
    ran = command_line("credit_limit", "record", "-o", "few.json", "--limit", "2", "--json")
    assert ran.document["workflows"] == {"OrderOnCredit": 2, "CustomerCredit": 2}

    ran = command_line("order_processing", "record", "-o", "failed.json", "--status", "failed", "--json")
    histories = json.loads(Path("failed.json").read_bytes())["histories"]
    assert ran.document["histories"] == len(histories) > 0
    assert {history["events"][-1]["event"] for history in histories} == {"Failed"}

    ran = command_line("credit_limit", "record", "--workflow", "CustomerCredit", "--json")
    assert list(ran.document["workflows"]) == ["CustomerCredit"]


def test_a_workflow_that_is_not_there_is_refused(examples: Path) -> None:
    ran = command_line("credit_limit", "record", "--workflow", "Orders")

    assert (ran.code, ran.err) == (2, "Error: This app has no workflow Orders. It has OrderOnCredit, CustomerCredit.\n")


def test_a_file_that_cannot_be_written_is_told_in_one_line(examples: Path) -> None:
    ran = command_line("credit_limit", "record", "-o", "nowhere/histories.json", "--limit", "1")

    assert (ran.code, ran.err) == (1, "Error: nowhere/histories.json cannot be written: No such file or directory.\n")


def test_all_that_changed_is_told_together_and_counted(examples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command_line("order_processing", "record")
    monkeypatch.setattr(orders, "PAYMENT_PATIENCE", orders.SHIPPING_PATIENCE)

    ran = command_line("order_processing", "verify", "histories.json")

    assert ran.code == 1
    approved("verify/orders-with-more-patience.txt", ran.text)
    [group] = command_line("order_processing", "verify", "histories.json", "--json").document["changed"]
    charged = [
        history
        for history in json.loads(Path("histories.json").read_bytes())["histories"]
        if any(event.get("type") == "ChargeCard" for event in history["events"])
    ]
    assert (group["kind"], group["message"]) == ("decided otherwise", "OrderValidated")
    assert group["instances"] == [history["instance"] for history in charged]


def test_an_instance_that_cannot_be_folded_is_left_out_and_named(
    examples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evolve = orders.OrderProcessing.evolve

    def broken(self: orders.OrderProcessing, state: orders.State, event: object) -> orders.State | None:
        if isinstance(state, orders.AwaitingShipment):
            raise ZeroDivisionError("no shipment")
        return evolve(self, state, event)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(orders.OrderProcessing, "evolve", broken)

    ran = command_line("order_processing", "record", "--json")

    assert (ran.code, ran.document["histories"] + len(ran.document["left_out"])) == (0, 20)
    assert ran.document["left_out"]["OrderProcessing/order-0"] == "ZeroDivisionError: no shipment"
    assert "left out: OrderProcessing/order-0: ZeroDivisionError" in command_line("order_processing", "record").err


def test_an_evolve_that_returns_no_state_is_told_as_one_that_cannot_fold(
    examples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command_line("order_processing", "record", "--limit", "1")
    monkeypatch.setattr(orders.OrderProcessing, "evolve", lambda *_: "paid")  # pyright: ignore[reportUnknownLambdaType]

    [group] = command_line("order_processing", "verify", "histories.json", "--json").document["changed"]

    assert group["kind"] == "cannot be folded"
    assert "InvalidStateError" in group["example"]


def test_no_effect_happens_where_decide_would_have_one(examples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def decide(self: orders.OrderProcessing, message: orders.Input, state: orders.State) -> Any:
        Path("effects").write_text("mail sent")
        return original(self, message, state)

    command_line("order_processing", "record", "--limit", "1")
    original = orders.OrderProcessing.decide
    monkeypatch.setattr(orders.OrderProcessing, "decide", decide)

    [group] = command_line("order_processing", "verify", "histories.json", "--json").document["changed"]

    assert not Path("effects").exists()
    assert group["kind"] == "fails now"
    assert "ImpureCallError" in group["example"]


@pytest.mark.parametrize(
    ("content", "code", "told"),
    [("{}", 1, "is no file of histories"), ('{"format": 9, "histories": []}', 1, "has format 9")],
)
def test_another_file_is_refused(examples: Path, content: str, code: int, told: str) -> None:
    Path("other.json").write_text(content)
    ran = command_line("order_processing", "verify", "other.json")

    assert ran.code == code
    assert told in ran.err


def test_a_file_that_is_not_there_and_histories_of_another_app_are_refused(examples: Path) -> None:
    assert command_line("order_processing", "verify", "none.json").code == 2
    command_line("order_processing", "record")

    ran = command_line("traffic_fine", "verify", "histories.json")

    assert (ran.code, ran.err) == (
        1,
        "Error: histories.json has histories of OrderProcessing. Add that workflow to the app.\n",
    )
