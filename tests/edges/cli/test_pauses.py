import re
from typing import Any

import pytest

from mainspring.cli.doctor import queue_findings
from mainspring.engine.operations import pause_orders as orders
from mainspring.engine.operations.pauses import FLEET
from mainspring.engine.recording.stored_values import moment
from mainspring.errors import DamagedRecordError
from mainspring.stores.sqlite.store import SqliteStore
from mainspring.views import Stats
from tests.edges.cli.conftest import Run, order


def test_a_handler_is_paused_listed_and_resumed(run: Run) -> None:
    assert run("pauses", "list").err == "Nothing is paused.\n"

    paused = run("pauses", "pause", "ChargeCard", "--reason", "the bank moves", "--actor", "ann")
    run("send", "PlaceOrder", order("o-1", 5))

    assert paused.out == "Paused now: handler:ChargeCard\n"
    listed = run("pauses", "list", "--json").document
    assert {key: value for key, value in listed.items() if key != "since"} == {
        "what": "handler:ChargeCard",
        "kind": "handler",
        "name": "ChargeCard",
        "reason": "the bank moves",
        "actor": "ann",
        "waiting": 1,
        "more": False,
    }
    assert re.search(r"handler:ChargeCard  2\S+ \S+  ann  1        the bank moves", run("pauses", "list").out)
    assert run("pauses", "resume", "handler:ChargeCard", "--actor", "bob").out == "Paused now: nothing\n"
    stream = run("show", "mainspring.Pauses/fleet", "--json").document["stream"]
    assert [entry["actor"] for entry in stream if entry["actor"]] == ["ann", "bob"]


def test_resuming_what_is_not_paused_says_so(run: Run) -> None:
    resumed = run("pauses", "resume", "ChargeCard")

    assert (resumed.code, resumed.out, resumed.err) == (0, "Paused now: nothing\n", "ChargeCard was not paused.\n")


def test_orders_that_cannot_be_read_are_told_and_keep_nobody_from_anything(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unreadable(*_: Any) -> Any:
        raise DamagedRecordError("bodies", "its key is not here")

    run("pauses", "pause", "ChargeCard")
    with monkeypatch.context() as patched:
        patched.setattr(orders, "_counting", unreadable)

        assert "its key is not here" in (listed := run("pauses", "list")).err
        assert "mainspring terminate mainspring.Pauses/fleet" in listed.err
        doctor = run("doctor", "--json")
        (found,) = (finding for finding in doctor.document["findings"] if "What is paused" in finding["what"])
        assert (doctor.code, found["level"]) == (1, "problem")
        assert run("terminate", "mainspring.Pauses/fleet", "--reason", "unreadable").code == 0
    assert run("pauses", "pause", "Orders").out == "Paused now: workflow:Orders\n"


def test_an_unknown_name_is_told_with_those_that_there_are(run: Run) -> None:
    unknown = run("pauses", "pause", "Charge")

    assert unknown.code == 3
    assert "This app has handler:ChargeCard, handler:HangUp, workflow:Orders, workflow:Tickets." in unknown.err


def test_doctor_show_and_stuck_say_what_is_paused(run: Run) -> None:
    run("pauses", "pause", "Orders", "--reason", "the bank moves", "--actor", "ann")
    assert "accepted" in run("send", "PlaceOrder", order("o-1", 5)).out

    findings = run("doctor", "--json").document["findings"]
    (found,) = (finding for finding in findings if "paused" in finding["what"])
    assert re.fullmatch(
        r"The workflow Orders is paused by ann since \S+ \S+ UTC: the bank moves; 1 message waiting", found["what"]
    )
    assert (found["level"], found["fix"]) == ("note", "`mainspring pauses resume workflow:Orders`.")
    told = "the workflow Orders is paused by ann since"
    assert "Orders/o-1 has not begun" in (unbegun := run("show", "o-1").err)
    assert told in unbegun
    stuck = run("stuck", "--json")
    assert stuck.code == 1
    assert told in stuck.document["held_back"][0]


def test_show_says_that_a_command_waits_for_a_paused_handler(run: Run) -> None:
    run("pauses", "pause", "ChargeCard", "--reason", "the bank moves")
    run("send", "PlaceOrder", order("o-1", 5))

    assert "the handler ChargeCard is paused by ann since" in run("show", "o-1").out


def test_a_late_message_that_waits_for_what_is_paused_is_nothing_wrong() -> None:
    stats = Stats({}, 0, 1, 0, 0, 1, moment(0))
    assert queue_findings(stats, moment(10**9), paused=True)[0].level == "note"
    assert queue_findings(stats, moment(10**9))[0].level == "problem"


def test_only_what_is_paused_is_said_to_wait_for_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mainspring.cli.doctor.queue_findings", told := Told())
    run("send", "PlaceOrder", order("o-1", 5))
    run("pauses", "pause", "HangUp")
    run("doctor")
    run("pauses", "pause", "ChargeCard")
    run("doctor")
    assert told.paused == [False, True]


class Told:
    """Notes whether all that is due is said to wait for pauses."""

    def __init__(self) -> None:
        self.paused: list[bool] = []

    def __call__(self, *_: Any, paused: bool, parked: int) -> list[Any]:
        self.paused.append(paused)
        return []


def test_orders_under_a_key_that_is_gone_are_ended_by_terminate(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = SqliteStore.load

    async def load(store: SqliteStore, refs: Any, most: int | None = None) -> Any:
        if most != 0 and FLEET in refs:
            raise DamagedRecordError("bodies", "its key is not here")
        return await whole(store, refs, most)

    run("pauses", "pause", "ChargeCard")
    monkeypatch.setattr(SqliteStore, "load", load)

    assert "is terminated" in run("terminate", str(FLEET)).out
