"""`mainspring what-if` and `mainspring export`, as their users see them."""

import json
from pathlib import Path

import pytest

from tests.edges.cli.conftest import Run, order


@pytest.fixture
def orders(run: Run) -> None:
    """Two orders that wait for the bank, and one whose first input failed."""
    run("send", "PlaceOrder", order("o-1", 5))
    run("send", "PlaceOrder", order("o-2", 7))
    run("send", "PlaceOrder", order("o-3", -1))


@pytest.mark.usefixtures("orders")
def test_nothing_differs_for_the_code_that_wrote_it(run: Run) -> None:
    result = run("what-if")

    assert result.code == 0
    assert result.out.splitlines() == [
        "3 instances, 3 of them in flight; 8 events, with the code of today",
        (
            "compared: the decisions of 2 steps, the names of 2 states, "
            "whole states in 0 of 2 (--against OLD compares all)"
        ),
        "",
        "not checked, or not to the end:",
        "  1 instance, 1 of them in flight: its first input has not been taken yet, as Orders/o-3",
        "",
        "No difference was found in what could be checked. 1 in flight could not be checked, or not to the end.",
    ]
    assert "8 events in " in result.err


@pytest.mark.usefixtures("orders")
def test_what_differs_is_told_and_ends_with_exit_code_1(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shop.HANGS", 7)

    result = run("what-if", "--in-flight", "--processes", "1")

    assert result.code == 1
    assert "Orders: PlaceOrder in New: Sent(ChargeCard) is not decided any more" in result.out
    assert "    - Sent(message=ChargeCard(order_id='o-2', amount=7))" in result.out
    assert "Not safe as it is: 1 of 3 instances in flight and 0 ended ones differ." in result.out
    document = run("what-if", "--json").document
    assert (document["safe"], document["differing_in_flight"]) == (False, 1)
    assert document["differences"][0]["examples"][0]["instance"] == "Orders/o-2"
    assert run("what-if", "--prefix", "o-1").code == 0


@pytest.mark.usefixtures("orders")
def test_an_export_is_checked_without_a_database(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = run("export", "-o", "streams.jsonl.gz", "--payloads")
    assert (written.code, written.out) == (0, "3 instances, 8 events in streams.jsonl.gz\n")
    (folder / "orders.db").unlink()

    assert run("what-if", "--from", "streams.jsonl.gz").code == 0
    monkeypatch.setattr("shop.HANGS", 7)
    assert run("what-if", "--from", "streams.jsonl.gz", "--prefix", "o-1").code == 0
    assert run("what-if", "--from", "streams.jsonl.gz", "--in-flight").code == 1
    for version, code in (("1", 1), ("2", 0)):
        assert run("what-if", "--from", "streams.jsonl.gz", "--workflow-version", version).code == code
    assert not (folder / "orders.db").exists()


@pytest.mark.usefixtures("orders")
def test_only_what_is_let_through_is_exported(run: Run, folder: Path) -> None:
    run("export", "-o", "types.jsonl")
    assert '"amount"' not in (folder / "types.jsonl").read_text()
    run("export", "-o", "some.jsonl", "--payloads", "--redact", "amount, PlaceOrder.order_id")
    bodies = [json.loads(line).get("body") for line in (folder / "some.jsonl").read_text().splitlines()]
    assert {"order_id": "[redacted]", "amount": "[redacted]"} in bodies
    assert {"order_id": "o-1", "amount": "[redacted]"} in bodies


@pytest.mark.usefixtures("orders")
def test_logs_for_process_mining_are_written(run: Run, folder: Path) -> None:
    document = run("export", "-o", "orders.xes", "--format", "xes", "--json").document
    assert document == {
        "file": "orders.xes",
        "format": "xes",
        "instances": 3,
        "events": 8,
        "unread": 0,
        "left_out": [],
    }
    assert (folder / "orders.xes").read_text().startswith("<?xml")
    assert run("export", "-o", "orders.json", "--format", "ocel").code == 0
    assert set(json.loads((folder / "orders.json").read_text())) == {"events", "objects", "eventTypes", "objectTypes"}


def test_an_empty_database_is_fine(run: Run) -> None:
    result = run("what-if")

    assert result.code == 0
    assert result.out.splitlines()[-1] == "No difference was found in what was compared; no instance is in flight."
    assert run("export", "-o", "streams.jsonl").out == "0 instances, 0 events in streams.jsonl\n"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["what-if", "--from", "nothing.jsonl"], "There is no file nothing.jsonl."),
        (["what-if", "--in-flight", "--status", "failed"], "leave nothing"),
        (["what-if", "--from", "shop.py", "--sample", "3"], "neither by --attribute nor for a --sample"),
        (["export", "-o", "no/where.jsonl"], "There is no directory no."),
        (["export", "-o", "x.jsonl", "--redact", "card"], "There is nothing to redact"),
    ],
)
def test_what_makes_no_sense_is_refused(run: Run, arguments: list[str], problem: str) -> None:
    result = run(*arguments)

    assert result.code == 2
    assert problem in result.err


def test_a_file_of_something_else_is_refused_in_one_line(run: Run, folder: Path) -> None:
    (folder / "other.jsonl").write_text("what is this?\n")

    result = run("what-if", "--from", "other.jsonl")

    assert result.code == 1
    assert result.err.count("\n") == 1
