from pathlib import Path
from typing import Any

import pytest

from mainspring import Mainspring
from mainspring.views import Action, BulkReport, Refusal
from tests.edges.cli.conftest import Run, order


def events(run: Run, identity: str) -> list[tuple[str, str | None, str | None]]:
    return [(e["event"], e["actor"], e["reason"]) for e in run("show", identity, "--json").document["stream"]]


def test_suspending_and_resuming_are_recorded_with_their_actors(run: Run) -> None:
    run("send", "PlaceOrder", order("o-1", 5))

    suspended = run("suspend", "o-1", "--reason", "the bank is down")
    resumed = run("resume", "o-1", "--actor", "bob")

    assert (suspended.code, suspended.out) == (0, "Orders/o-1 is suspended (position 5)\n")
    assert (resumed.code, resumed.out) == (0, "Orders/o-1 is running (position 6)\n")
    assert events(run, "o-1")[-2:] == [("Suspended", "ann", "the bank is down"), ("Resumed", "bob", None)]
    assert "actor" in run("show", "o-1").out


def test_whoever_was_suspended_by_a_person_is_not_advised_to_pass_over_what_waits(run: Run) -> None:
    run("send", "PlaceOrder", order("o-1", 5))
    run("suspend", "o-1", "--reason", "the bank is down")
    run("send", "CardCharged", '{"order_id": "o-1"}')

    shown = run("show", "o-1").out.splitlines()

    assert shown[-2:] == ["suspended by ann: the bank is down", "`mainspring resume Orders/o-1` lets it go on."]


def test_an_operation_answers_with_the_instance_for_programs(run: Run) -> None:
    run("send", "PlaceOrder", order("o-1", 5))

    document = run("cancel", "o-1", "--reason", "the customer called", "--json").document

    assert (document["instance"], document["status"], document["error"]) == (
        "Orders/o-1",
        "cancelled",
        "the customer called",
    )


def test_terminating_ends_an_instance_at_once(run: Run) -> None:
    run("send", "PlaceOrder", order("o-1", 5))

    ran = run("terminate", "o-1", "--reason", "a test order")

    assert (ran.code, ran.out) == (0, "Orders/o-1 is terminated (position 5)\n")
    assert events(run, "o-1")[-1] == ("Terminated", "ann", "a test order")
    assert run("ls", "--status", "terminated", "--json").document["instance"] == "Orders/o-1"


def test_skipping_passes_over_the_input_that_failed(run: Run) -> None:
    run("send", "PlaceOrder", order("o-1", 5))
    run("send", "PlaceOrder", order("o-1", 5))
    assert run("ls", "--json").document["status"] == "suspended"

    ran = run("skip", "o-1")

    assert ran.code == 0
    assert run("ls", "--json").document["status"] == "running"
    assert events(run, "o-1")[-1][0] == "Skipped"


def test_retrying_makes_a_suspended_instance_run(run: Run, folder: Path) -> None:
    run("send", "PlaceOrder", order("o-1", -1))
    (folder / "mended").touch()

    assert run("retry", "o-1").out == "Orders/o-1 is running (position 0)\n"


@pytest.mark.parametrize("command", ["resume", "retry", "skip"])
def test_what_makes_no_sense_now_is_refused_in_one_line(run: Run, command: str) -> None:
    run("send", "PlaceOrder", order("o-1", 5))

    ran = run(command, "o-1")

    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("Error: Orders/o-1 ")
    assert ran.err.count("\n") == 1


def test_many_are_operated_on_by_a_filter_after_a_look_and_a_yes(run: Run) -> None:
    for n in range(3):
        run("send", "PlaceOrder", order(f"o-{n}", 5))

    looked = run("bulk", "cancel", "--workflow", "Orders", "--dry-run")
    unsure = run("bulk", "cancel", "--workflow", "Orders")
    done = run("bulk", "cancel", "--prefix", "o-", "--yes", "--per-second", "1000")
    again = run("bulk", "cancel", "--prefix", "o-", "--yes", "--json", "--per-second", "1000")

    assert (looked.code, looked.out) == (0, "3 instances found; nothing was changed\n")
    assert unsure.code == 2
    assert "Say --yes" in unsure.err
    assert (done.code, done.out) == (0, "cancel: 3 done, 0 refused\n")
    assert (again.code, again.document["refusals"]) == (1, 3)
    assert again.document["refused"][0]["instance"] == "Orders/o-0"
    assert "it means everything" in run("bulk", "cancel").err


def test_the_exit_code_says_that_one_of_many_refused(run: Run) -> None:
    run("send", "PlaceOrder", order("o-1", 5))
    run("send", "PlaceOrder", order("o-2", 5))
    run("cancel", "o-1")

    done = run("bulk", "cancel", "--prefix", "o-", "--yes", "--per-second", "1000")

    assert (done.code, done.out.splitlines()[0]) == (1, "cancel: 1 done, 1 refused")


def test_why_one_refused_cannot_move_the_cursor(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def bulk(app: Mainspring, action: Action, **_: Any) -> BulkReport:
        return BulkReport(action, matched=1, refusals=1, refused=(Refusal("Orders/o-1", "no\x1b[2J"),))

    monkeypatch.setattr(Mainspring, "bulk", bulk)

    assert run("bulk", "cancel", "--prefix", "o-", "--yes").out.splitlines()[1] == "  Orders/o-1: no\\x1b[2J"


def test_an_instance_goes_back_to_an_earlier_version(run: Run) -> None:
    run("send", "PlaceOrder", order("o-1", 5))
    run("suspend", "o-1")

    ran = run("reset", "o-1", "--to", "4", "--reason", "once more", "--actor", "bob")

    assert (ran.code, ran.out) == (0, "Orders/o-1 is running (position 7)\n")
    assert events(run, "o-1")[-2:] == [("Reset", "bob", "once more"), ("Scheduled", None, None)]
    assert run("reset", "o-1", "--to", "2").code == 1


def test_an_instance_migrates_to_a_version_that_the_app_has(run: Run) -> None:
    run("send", "PlaceOrder", '{"order_id": "o-1", "amount": 4200}')

    same, unknown = run("migrate", "o-1", "--to", "1"), run("migrate", "o-1", "--to", "7", "--dry-run")

    assert (same.code, "runs under version 1 already" in same.err) == (1, True)
    assert (unknown.code, "this app, which knows 1" in unknown.err) == (1, True)
    looked = run("bulk", "migrate", "--workflow", "Orders", "--to", "1", "--dry-run")
    assert looked.out.startswith("1 instance found; nothing was changed\n1 of them would refuse:\n  Orders/o-1: ")
