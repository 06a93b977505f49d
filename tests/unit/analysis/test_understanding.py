"""The commands that look into one instance, where there is little or nothing to see."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from mainspring import Mainspring, NotKept
from mainspring.codec import Codec
from mainspring.core.story import tell
from mainspring.engine.recording.recorder import Recorder
from mainspring.port.records import EventRow, Ref
from mainspring.sealing import Encrypted, FileKeys
from mainspring.sealing.seals import ERASED
from mainspring.web.api import api
from tests.edges.web.support import asked
from tests.support.running import run
from tests.unit.analysis import claims
from tests.unit.analysis.claims import Claim, Claims, Count, Note, Shift
from tests.unit.analysis.command_line import Ran, command_line
from tests.unit.analysis.quiet import quiet

COMMANDS = [("replay",), ("explain",), ("counterfactual", "--at", "2", "--drop")]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def filled(*messages: Any) -> None:
    async def body() -> None:
        async with claims.app_of("sqlite:///claims.db") as app:
            for message in messages:
                await app.send(message)
            await quiet(app)

    run(body)


def call(command: tuple[str, ...], identity: str, *options: str) -> Ran:
    return command_line("tests.unit.analysis.claims:app", command[0], identity, *command[1:], *options)


@pytest.mark.parametrize("command", COMMANDS)
def test_an_instance_that_is_not_there_has_its_own_exit_code(here: Path, command: tuple[str, ...]) -> None:
    assert call(command, "Claims/none").code == 3


@pytest.mark.parametrize("command", COMMANDS)
def test_an_instance_without_a_history_is_refused_with_the_reason(here: Path, command: tuple[str, ...]) -> None:
    filled(Count("m-1"), Count("m-1"))

    ran = call(command, "Meter/m-1")

    assert (ran.code, ran.out) == (1, "")
    assert "its history is not kept" in ran.err


@pytest.mark.parametrize("command", COMMANDS)
def test_a_purged_instance_is_told_as_such(here: Path, command: tuple[str, ...]) -> None:
    filled(Shift("s-1", 9))

    async def purge() -> None:
        async with claims.app_of("sqlite:///claims.db") as app:
            report = await app.purge(older_than=timedelta(microseconds=1))
            assert report.instances == 1

    run(purge)
    ran = call(command, "Shifts/s-1")

    assert ran.code == 3
    assert "was purged" in ran.err


@pytest.mark.parametrize("command", COMMANDS)
def test_an_instance_of_which_the_key_was_destroyed_is_told_as_erased(
    here: Path, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = FileKeys(here / "keys")
    sealed = Mainspring("sqlite:///sealed.db", seal=Encrypted(keys, subject=lambda about, _: about.instance))
    sealed.add(Claims())
    sealed.external(claims.Review, claims.Pay)
    monkeypatch.setattr(claims, "app", sealed)

    async def body() -> None:
        async with sealed:
            await sealed.send(Claim("c-1", 50))

    run(body)
    assert call(command, "Claims/c-1").code == 0
    keys.destroy("c-1")

    ran = call(command, "Claims/c-1")

    assert ran.code == 1
    assert "erased" in ran.out + ran.err


def test_an_instance_of_which_the_key_was_destroyed_is_shown_by_names(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = FileKeys(here / "keys")
    sealed = Mainspring("sqlite:///sealed.db", seal=Encrypted(keys, subject=lambda about, _: about.instance))
    sealed.add(Claims())
    sealed.external(claims.Review, claims.Pay)
    monkeypatch.setattr(claims, "app", sealed)

    async def body() -> None:
        async with sealed:
            await sealed.send(Claim("c-1", 50))
            await quiet(sealed)
        keys.destroy("c-1")

    async def asks() -> None:
        async with sealed, asked(api(sealed, start=False)) as client:
            told = (await client.get("/api/log/Claims/c-1")).json()["items"]
            assert told[0]["about"] == "erased:Claim"
            assert NotKept("erased:Claim") in [
                getattr(entry.event, "message", None) for entry in await sealed.instance_at("Claims/c-1").stream()
            ]
            for path in ("explanations", "tests"):
                refused = await client.get(f"/api/{path}/Claims/c-1", params={"at": 2})
                assert (refused.status_code, "Mend the code" in refused.text) == (410, False), path

    run(body)
    log, show = call(("log",), "Claims/c-1"), call(("show",), "Claims/c-1")

    assert (log.code, "erased:Claim" in log.out) == (0, True), log.err
    assert (show.code, "NotKept(type='erased:Claim')" in show.out) == (0, True), show.err
    run(asks)


@pytest.mark.parametrize(
    "event",
    ["InitiatedBy", "Sent", "Resent", "Scheduled", "FannedOut", "ChildStarted", "Compensated", "Became", "Skipped"],
)
def test_every_event_is_told_though_all_of_it_was_erased(event: str) -> None:
    row = EventRow(2, event, 0, "erased:Claim", 1, ERASED, ERASED if event not in ("Became", "Skipped") else None)

    entry = Recorder(Codec(), Codec()).entry(Ref("Claims", "c-1"), row, told=True)

    assert tell([entry])[0].message == "NotKept(type='erased:Claim')"


@pytest.mark.parametrize("event", ["Asked", "Failed", "Suspended", "Compensating", "Terminated"])
def test_what_was_said_and_erased_is_told_as_such(event: str) -> None:
    entry = Recorder(Codec(), Codec()).entry(Ref("Claims", "c-1"), EventRow(2, event, 0, detail=ERASED), told=True)

    assert tell([entry])[0].message == "'erased'"


@pytest.mark.parametrize("command", [("replay", "--at", "9"), ("replay", "--from", "9"), ("explain", "--at", "9")])
def test_a_version_that_is_not_there_yet_is_refused(here: Path, command: tuple[str, ...]) -> None:
    filled(Claim("c-1", 50))

    ran = call(command, "c-1")

    assert (ran.code, ran.err) == (2, "Error: Claims/c-1 has no position 9: it is at position 4.\n")


def test_where_nothing_was_decided_there_is_nothing_to_explain(here: Path) -> None:
    filled(Claim("c-1", 50))

    ran = call(("explain", "--at", "1"), "c-1")

    assert (ran.code, ran.err) == (2, "Error: Position 1 of Claims/c-1 is Began: nothing was decided for it.\n")


def test_any_version_of_a_step_leads_to_its_input(here: Path) -> None:
    filled(Claim("c-1", 50), Note("c-1", "hm"))

    assert call(("explain", "--at", "4"), "c-1").out.startswith("Claims/c-1, position 2: Claim(")
    assert call(("explain",), "c-1").out.startswith("Claims/c-1, position 5: Note(")


def test_an_instance_whose_first_input_failed_has_nothing_to_walk_through(here: Path) -> None:
    async def body() -> None:
        async with claims.app_of("sqlite:///claims.db") as app:
            assert (await app.send(Claim("c-1", 50))).status == "suspended"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(claims, "SMALL", None)
        run(body)

    ran = call(("replay",), "c-1")
    assert (ran.code, ran.out.splitlines()) == (
        0,
        [
            "Claims/c-1: suspended, position 0",
            "no events: its first input was not taken, and a stream begins with that",
            "suspended: TypeError: '<=' not supported between instances of 'int' and 'NoneType'",
        ],
    )
    assert call(("explain",), "c-1").err == "Error: Claims/c-1 has taken no input yet, so nothing was decided.\n"
    assert "has no input at position 2 that counts. It has taken none." in call(COMMANDS[2], "c-1").err


def test_a_code_that_decides_otherwise_is_told_and_the_record_is_shown(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(Claim("c-1", 50))
    monkeypatch.setattr(claims, "SMALL", 100)

    replayed, explained = call(("replay",), "c-1"), call(("explain",), "c-1")

    assert (replayed.code, explained.code) == (0, 0)
    for ran in (replayed, explained):
        assert "today's code decides otherwise:" in ran.out
        assert "- Sent(message=Review(id='c-1', euros=50))" in ran.out
        assert "+ Sent(message=Pay(id='c-1', euros=50))" in ran.out
    assert "3  Sent  Review(id='c-1', euros=50)" in explained.out
    [_, step] = call(("replay", "--json"), "c-1").documents
    assert (step["explanation"]["agrees"], step["explanation"]["error"]) == (False, None)


def test_a_replay_is_one_document_for_each_moment(here: Path) -> None:
    filled(Claim("c-1", 50), Note("c-1", "hm"))

    began, claimed, noted = call(("replay", "--json"), "c-1").documents

    assert (began["position"], began["explanation"]) == (1, None)
    assert (claimed["position"], claimed["last"], claimed["abandoned"]) == (2, 4, False)
    assert (claimed["instance"], claimed["step"]) == ("Claims/c-1", True)
    assert claimed["events"][0]["message"] == {"id": "c-1", "euros": 50, "express": False}
    assert claimed["before"] == {"type": "Open", "state": {}}
    assert claimed["after"] == {"type": "UnderReview", "state": {"euros": 50, "notes": []}}
    assert noted["events"][0]["change"]["places"] == [
        {"path": "notes[0]", "what": "added", "before": None, "after": "hm"}
    ]
    [case, choice] = claimed["explanation"]["decide"]
    assert (case["kind"], case["function"], len(case["refused"])) == ("case", "Claims.decide", 2)
    assert choice["text"] == "if not (express)"


def test_what_was_decided_before_a_migration_is_folded_and_not_asked_for(here: Path) -> None:
    class Later(Claims):
        name = "Claims"
        version = 2

    async def body() -> None:
        async with claims.app_of("sqlite:///claims.db") as app:
            await app.send(Claim("c-1", 50))
        app = claims.app_of("sqlite:///claims.db")
        app.add(Later())
        async with app:
            await app.instance(Claims, "c-1").migrate(2)
            await app.send(Note("c-1", "hm"))

    run(body)
    with pytest.MonkeyPatch.context() as patch:
        app = claims.app_of("sqlite:///claims.db")
        app.add(Later())
        patch.setattr(claims, "app", app)
        ran = call(("replay",), "c-1")
        documents = call(("replay", "--json"), "c-1").documents

    assert "decided under an earlier version of the workflow, before it was migrated" in ran.out
    asked = {document["position"]: document["explanation"] for document in documents}
    assert (asked[2]["asked"], asked[6]["asked"]) == (False, True)
    assert asked[6]["workflow_version"] == 2
