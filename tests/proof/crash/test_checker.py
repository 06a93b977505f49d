"""The checker, checked: each planted violation is found, under the right number."""
# ruff: noqa: S608  the SQL is put together of what stands here

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
from msgspec import json

from tests.proof.crash.check import judged
from tests.proof.crash.checker import Verdict
from tests.proof.crash.evidence import read
from tests.proof.crash.files import Place, read_lines
from tests.proof.crash.seen import judge_histories
from tests.proof.crash.undisturbed import run_undisturbed
from tests.support.running import run

Plant = Callable[[apsw.Connection, Place], None]
PLANTED: list[tuple[int, Plant]] = []

_COLUMNS = """
instance, version, event, time_us, type, type_version, body, detail, kind, message_id, cause, context, actor, state,
attempt, duration_us, checksum
"""
_JOURNEY = "SELECT key FROM instances WHERE workflow = 'Journey' LIMIT 1"


def plants(invariant: int) -> Callable[[Plant], Plant]:
    def register(plant: Plant) -> Plant:
        PLANTED.append((invariant, plant))
        return plant

    return register


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A run in which everything went well, with something of all that is planted in."""
    place = Place(tmp_path_factory.mktemp("healthy"))
    run(lambda: run_undisturbed(place))
    return place


def faults(place: Place) -> list[tuple[int, str]]:
    return [(fault.invariant, fault.what) for verdict in verdicts(place) for fault in verdict.faults]


def verdicts(place: Place) -> list[Verdict]:
    return judged(place, read(place), judge_histories(place))


def test_a_healthy_run_has_no_faults_and_every_check_had_something_to_look_at(healthy: Place) -> None:
    assert faults(healthy) == []
    assert [verdict.title for verdict in verdicts(healthy) if not verdict.seen] == []


# ---- 1: what clients were told


@plants(1)
def an_acknowledged_input_was_lost(db: apsw.Connection, place: Place) -> None:
    _add(place.ledger, ask="lost", to="Account/account-0", type="Deposit", body="{}", at_us=0)
    _add(place.ledger, told="lost", answer="ok", status="stepped", at_us=0)


@plants(1)
def an_input_stands_in_its_stream_twice(db: apsw.Connection, place: Place) -> None:
    row = db.execute("SELECT instance, version FROM events WHERE type = 'Deposit' LIMIT 1").get
    _append_copy(db, *row)


@plants(1)
def an_input_waits_though_it_was_taken(db: apsw.Connection, place: Place) -> None:
    _wait_again(db)


@plants(1)
def an_input_came_from_nobody(db: apsw.Connection, place: Place) -> None:
    db.execute("UPDATE events SET message_id = 'nobody' WHERE type = 'Deposit' AND version > 2")


# ---- 2: versions and prefixes


@plants(2)
def a_version_is_missing(db: apsw.Connection, place: Place) -> None:
    db.execute(f"DELETE FROM events WHERE version = 4 AND instance = ({_JOURNEY})")


@plants(2)
def history_was_rewritten(db: apsw.Connection, place: Place) -> None:
    ref, version, _, _ = read_lines(place.samples)[-1]["events"][-1]
    workflow, _, id = ref.partition("/")
    key = db.execute("SELECT key FROM instances WHERE workflow = ? AND id = ?", (workflow, id)).get
    body = b'{"never": "said"}'  # an empty one may be what it was: not every message has fields
    db.execute("UPDATE events SET body = ? WHERE instance = ? AND version = ?", (body, key, version))


@plants(2)
def events_belong_to_no_instance(db: apsw.Connection, place: Place) -> None:
    db.execute(f"DELETE FROM instances WHERE key = ({_JOURNEY})")


# ---- 3: outputs and effects


@plants(3)
def an_effect_belongs_to_no_output(db: apsw.Connection, place: Place) -> None:
    _add(place.effects, effect="Journey/nowhere/3", at_us=0)


@plants(3)
def an_effect_was_made_twice(db: apsw.Connection, place: Place) -> None:
    _add(place.effects, effect=_an_effect(place), at_us=0)


@plants(3)
def a_recorded_command_was_never_carried_out(db: apsw.Connection, place: Place) -> None:
    key = _an_effect(place)
    lines = [line for line in read_lines(place.effects) if line.get("effect") != key]
    place.effects.write_bytes(b"".join(json.encode(line) + b"\n" for line in lines))


@plants(3)
def an_output_is_still_owed(db: apsw.Connection, place: Place) -> None:
    db.execute(
        "INSERT INTO outbox (instance, version, kind, destination, due_us, priority, attempts) "
        f"VALUES (({_JOURNEY}), 3, 'send', 'Leg', 0, 0, 0)"
    )


@plants(3)
def a_message_to_another_workflow_never_arrived(db: apsw.Connection, place: Place) -> None:
    db.execute("UPDATE events SET message_id = message_id || '0' WHERE type = 'Ask' AND kind = 'command'")


@plants(3)
def a_timer_was_forgotten(db: apsw.Connection, place: Place) -> None:
    db.execute("UPDATE events SET kind = 'event' WHERE kind = 'timer'")
    db.execute("UPDATE events SET event = 'Kept' WHERE event = 'Completed'")


# ---- 4 to 8


@plants(4)
def another_body_stands_under_an_id(db: apsw.Connection, place: Place) -> None:
    body = "CAST(replace(CAST(body AS TEXT), '1}', '2}') AS BLOB)"
    db.execute(f"UPDATE events SET body = {body} WHERE type = 'Deposit'")


@plants(4)
def what_was_asked_again_as_it_was_was_refused(db: apsw.Connection, place: Place) -> None:
    first = read_lines(place.ledger)[0]
    _add(place.ledger, **first)
    _add(place.ledger, client=first["client"], told=first["ask"], answer="refused", at_us=0)


@plants(5)
def a_step_was_half_done_at_a_kill(db: apsw.Connection, place: Place) -> None:
    sample = read_lines(place.samples)[-1]
    _add(place.samples, **(sample | {"half_done": [["Journey/j1-0-1", 9, 8, 8]]}))


@plants(5)
def a_message_names_another_cause(db: apsw.Connection, place: Place) -> None:
    context = """CAST(replace(CAST(context AS TEXT), '-start"', '-other"') AS BLOB)"""
    db.execute(f"UPDATE events SET context = {context} WHERE type = 'Ask' AND kind = 'command'")


@plants(6)
def the_row_says_another_state_than_the_stream(db: apsw.Connection, place: Place) -> None:
    db.execute(f"UPDATE instances SET state = 'Resting' WHERE key = ({_JOURNEY})")


@plants(6)
def another_decision_was_recorded(db: apsw.Connection, place: Place) -> None:
    body = """CAST(replace(CAST(body AS TEXT), '"leg":2', '"leg":3') AS BLOB)"""
    db.execute(f"UPDATE events SET body = {body} WHERE type = 'Leg' AND instance = ({_JOURNEY})")


@plants(7)
def a_version_was_committed_twice(db: apsw.Connection, place: Place) -> None:
    db.execute("DROP INDEX events_by_version")
    columns = _COLUMNS
    db.execute(
        f"INSERT INTO events ({columns}) SELECT {columns} FROM events WHERE version = 3 AND instance = ({_JOURNEY})"
    )


@plants(8)
def two_inputs_were_decided_in_the_wrong_order(db: apsw.Connection, place: Place) -> None:
    """The first two notes of a journey, acknowledged one after the other, change places."""
    two = "SELECT instance FROM events WHERE type = 'Note' GROUP BY instance HAVING count(*) > 1 LIMIT 1"
    rows = db.execute(
        f"SELECT position, message_id, body FROM events WHERE type = 'Note' AND instance = ({two}) "
        "ORDER BY version LIMIT 2"
    ).fetchall()
    for (position, _, _), (_, id, body) in zip(rows, reversed(rows), strict=True):
        db.execute("UPDATE events SET message_id = ?, body = ? WHERE position = ?", (id, body, position))


# ---- 9: timers


@plants(9)
def a_timer_fired_early(db: apsw.Connection, place: Place) -> None:
    db.execute("UPDATE events SET time_us = time_us - 10000000 WHERE kind = 'timer' AND type = 'Ticked'")


@plants(9)
def a_timer_fired_twice(db: apsw.Connection, place: Place) -> None:
    row = db.execute("SELECT instance, version FROM events WHERE kind = 'timer' LIMIT 1").get
    _append_copy(db, *row)


@plants(9)
def a_timer_fired_after_it_was_cancelled(db: apsw.Connection, place: Place) -> None:
    row = db.execute("SELECT instance, version FROM events WHERE kind = 'timer' AND type = 'Ticked' LIMIT 1").get
    _append_copy(db, *row)
    db.execute("DELETE FROM events WHERE instance = ? AND version = ?", row)


# ---- 10 to 17


@plants(11)
def a_command_was_paid_twice(db: apsw.Connection, place: Place) -> None:
    db.execute("INSERT INTO payments SELECT command FROM payments LIMIT 1")


@plants(11)
def a_payment_was_lost_though_its_result_is_there(db: apsw.Connection, place: Place) -> None:
    db.execute("DELETE FROM payments WHERE command = (SELECT min(command) FROM payments)")


@plants(11)
def a_payment_was_committed_without_its_result(db: apsw.Connection, place: Place) -> None:
    db.execute("INSERT INTO payments VALUES ('Journey/nowhere/3')")


@plants(11)
def a_payment_was_still_owed_at_a_kill(db: apsw.Connection, place: Place) -> None:
    last = read_lines(place.samples)[-1]
    _add(place.samples, **{**last, "half_paid": ["Journey/somewhere/3"]})


@plants(10)
def something_was_decided_after_the_end(db: apsw.Connection, place: Place) -> None:
    _append_copy(db, db.execute(_JOURNEY).get, 3)


@plants(10)
def an_input_was_called_late_in_an_instance_that_goes_on(db: apsw.Connection, place: Place) -> None:
    db.execute(
        "INSERT INTO dead_letters (workflow, instance, message_id, kind, type, type_version, body, time_us, context, "
        "reason, attempts, checksum) SELECT 'Account', 'account-0', 'x', 'command', 'Ask', 1, x'7b7d', 0, x'7b7d', "
        "'late', 0, 0"
    )


@plants(11)
def a_command_has_two_results(db: apsw.Connection, place: Place) -> None:
    row = db.execute("SELECT instance, version FROM events WHERE kind = 'result' AND type = 'LegDone' LIMIT 1").get
    _append_copy(db, *row)


@plants(11)
def a_worker_called_a_command_twice_at_once(db: apsw.Connection, place: Place) -> None:
    call = next(line for line in read_lines(place.effects) if line.get("type") == "Leg")
    _add(place.effects, **call)


@plants(11)
def a_command_was_called_after_its_result(db: apsw.Connection, place: Place) -> None:
    call = next(line for line in read_lines(place.effects) if line.get("type") == "Leg")
    _add(place.effects, **(call | {"generation": 99, "at_us": call["at_us"] + 3_600_000_000}))


@plants(12)
def a_command_was_tried_too_often(db: apsw.Connection, place: Place) -> None:
    call = next(line for line in read_lines(place.effects) if line.get("type") == "Wobble")
    _add(place.effects, **(call | {"attempt": 9, "generation": 99}))


@plants(12)
def a_dead_letter_is_not_what_was_sent(db: apsw.Connection, place: Place) -> None:
    db.execute("UPDATE events SET event = 'Kept' WHERE event = 'Received' AND type = 'SendFailed'")
    _bury_despair(db, "x'7b7d'")


@plants(12)
def a_command_that_cannot_work_is_no_dead_letter_and_nobody_took_its_failure(db: apsw.Connection, place: Place) -> None:
    db.execute("UPDATE events SET event = 'Kept' WHERE event = 'Received' AND type = 'SendFailed'")


@plants(12)
def a_command_whose_failure_was_taken_is_a_dead_letter(db: apsw.Connection, place: Place) -> None:
    _bury_despair(db, "e.body")


def _bury_despair(db: apsw.Connection, body: str) -> None:
    """Make dead letters of all commands that cannot work."""
    db.execute(
        "INSERT INTO dead_letters (workflow, instance, message_id, kind, type, type_version, body, time_us, context, "
        "reason, attempts, checksum, output_instance, output_version) "
        "SELECT i.workflow, i.id, i.workflow || '/' || i.id || '/' || e.version, 'send', e.type, e.type_version, "
        f"{body}, 0, x'7b7d', 'its handler gave up', 2, 0, i.key, e.version "
        "FROM events AS e JOIN instances AS i ON i.key = e.instance WHERE e.event = 'Sent' AND e.type = 'Despair'"
    )


@plants(17)
def an_instance_never_came_to_rest(db: apsw.Connection, place: Place) -> None:
    db.execute(f"UPDATE instances SET status = 'running' WHERE key = ({_JOURNEY})")


@plants(0)
def a_process_failed_in_an_unexpected_way(db: apsw.Connection, place: Place) -> None:
    with place.log.open("a") as log:
        log.write("Traceback (most recent call last):\n  …\nZeroDivisionError\n")


# ---- 14 to 16: errands


@plants(14)
def two_were_told_that_their_answer_was_the_first(db: apsw.Connection, place: Place) -> None:
    first = next(line for line in read_lines(place.people) if line.get("first"))
    _add(place.people, **{**first, "by": "another"})


@plants(14)
def somebody_was_told_another_outcome(db: apsw.Connection, place: Place) -> None:
    first = next(line for line in read_lines(place.people) if line.get("first"))
    _add(place.people, **{**first, "first": False, "won": "another"})


@plants(15)
def something_was_undone_that_nobody_wanted_undone(db: apsw.Connection, place: Place) -> None:
    detail = """CAST('{"undoes":3}' AS BLOB)"""
    db.execute(f"UPDATE events SET detail = {detail} WHERE type = 'Book' AND version = 5")


@plants(16)
def the_read_model_was_told_an_event_twice(db: apsw.Connection, place: Place) -> None:
    line = next(line for line in read_lines(place.documents) if line["generation"] == "rebuilt")
    _add(place.documents, **{**line, "events": line["events"] + 1})


@plants(11)
def a_child_brought_its_result_twice(db: apsw.Connection, place: Place) -> None:
    row = db.execute("SELECT instance, version FROM events WHERE type = 'AllStamped' LIMIT 1").get
    _append_copy(db, *row)


@plants(3)
def a_stamp_was_made_twice(db: apsw.Connection, place: Place) -> None:
    line = next(line for line in read_lines(place.effects) if (line.get("what") or "").startswith("stamp"))
    _add(place.effects, **{**line, "effect": "another"})


# ---- 20: what clients saw (more of it in tests/proof/histories)


@plants(20)
def a_client_was_told_of_what_never_was(db: apsw.Connection, place: Place) -> None:
    _add(place.history("1"), call="x", to="Slate/s-1", verb="state", began=2**62, id="", message=None, task=None)
    seen = {"type": "Marks", "body": {"marks": ["Chalk never"]}}
    _add(place.history("1"), told="x", ended=2**62 + 1, outcome="seen", value=seen)


@pytest.mark.parametrize(("invariant", "plant"), PLANTED, ids=[plant.__name__ for _, plant in PLANTED])
def test_a_planted_violation_is_found(invariant: int, plant: Plant, healthy: Place, tmp_path: Path) -> None:
    place = Place(tmp_path / "doctored")
    shutil.copytree(healthy.folder, place.folder)
    connection = apsw.Connection(str(place.database))
    plant(connection, place)
    connection.close()
    # A check that stumbles over what was planted has not seen what is wrong with it.
    assert [what for found, what in faults(place) if found == invariant and "cannot be read" not in what]


def _add(path: Path, **line: Any) -> None:
    with path.open("ab") as file:
        file.write(json.encode(line) + b"\n")


def _append_copy(db: apsw.Connection, instance: int, version: int) -> None:
    """Append a copy of an event to its stream, as a step that nobody should have committed."""
    columns = _COLUMNS.replace("version,", "", 1)
    copied = f"(SELECT version + 1 FROM instances WHERE key = {instance})"
    db.execute(
        f"INSERT INTO events (version, {columns}) SELECT {copied}, {columns} FROM events "
        f"WHERE instance = {instance} AND version = {version}"
    )
    db.execute(f"UPDATE instances SET version = version + 1 WHERE key = {instance}")


def _wait_again(db: apsw.Connection) -> None:
    db.execute(
        "INSERT INTO inbox (workflow, instance, message_id, kind, type, type_version, body, time_us, context, "
        "checksum) SELECT i.workflow, i.id, e.message_id, e.kind, e.type, 1, e.body, e.time_us, e.context, 0 "
        "FROM events AS e JOIN instances AS i ON i.key = e.instance WHERE e.type = 'Deposit' LIMIT 1"
    )


def _an_effect(place: Place) -> str:
    return next(line["effect"] for line in read_lines(place.effects) if line.get("effect", "").startswith("Journey/"))
