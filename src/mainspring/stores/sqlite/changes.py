"""Writes what a batch has changed, in one statement per table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import apsw
from msgspec.structs import astuple

from mainspring.port.attempts import ATTEMPTS_KEPT, ATTEMPTS_OF_INSTANCE
from mainspring.port.records import ENDED
from mainspring.stores.commit.changes import Born, Changes
from mainspring.stores.commit.facts import Known, OutputFact, Spot
from mainspring.stores.commit.rows import (
    born_checksum,
    dead_letter_values,
    event_values,
    input_values,
    moved_checksum,
    output_checksum,
    snapshot_values,
)
from mainspring.stores.sql.dialect import packed
from mainspring.stores.sqlite.facts import SqliteFacts
from mainspring.stores.sqlite.statements import QUERIES, Ladder, change, scalar

# No row has it.
NO_CHECKSUM: Final = -1

_INSTANCES: Final = Ladder(QUERIES["insert_instances"])
_EVENTS: Final = Ladder(QUERIES["insert_events"])
_OUTPUTS: Final = Ladder(QUERIES["insert_outputs"])
_INPUTS: Final = Ladder(QUERIES["insert_inputs"])
_DEAD_LETTERS: Final = Ladder(QUERIES["insert_dead_letters"])
_RESULTS: Final = Ladder(QUERIES["replace_results"])
_ATTRIBUTES: Final = Ladder(QUERIES["insert_attributes"])
_ATTEMPTS: Final = Ladder(QUERIES["replace_attempts"])
_SNAPSHOTS: Final = Ladder(QUERIES["replace_snapshots"])


def write(connection: apsw.Connection, changes: Changes[Known], facts: SqliteFacts) -> None:
    """Write it all, in the order that `Changes` asks for."""
    _take_away(connection, changes, facts)
    _write_instances(connection, changes)
    _EVENTS.insert(connection, _flat(map(event_values, changes.event_keys, changes.events)))
    if changes.outputs:
        _OUTPUTS.insert(connection, _flat(map(_output_row, changes.outputs.values())))
    _write_inputs(connection, changes, facts)
    if changes.dead_letters:
        _DEAD_LETTERS.insert(connection, _flat(dead_letter_values(*letter) for letter in changes.dead_letters))
    if changes.snapshots:
        _SNAPSHOTS.insert(connection, _flat(snapshot_values(*kept) for kept in changes.snapshots.items()))
    if changes.attempts:
        _ATTEMPTS.insert(connection, _flat(astuple(attempt) for attempt in changes.attempts))
        instances = packed([*{attempt.instance for attempt in changes.attempts}])
        change(connection, "forget_attempts", instances, ATTEMPTS_KEPT, ATTEMPTS_OF_INSTANCE)
    if changes.attributes:
        change(connection, "delete_attributes", packed(list(changes.attributes)))
        _ATTRIBUTES.insert(
            connection, _flat((k, *astuple(row)) for k, rows in changes.attributes.items() for row in rows)
        )
    if changes.results:
        change(connection, "sweep_results", changes.now_us)
        _RESULTS.insert(connection, _flat(astuple(result) for result in changes.results.values()))
    for key, (after, version) in changes.trimmed.items():
        change(connection, "trim_events", key, after, version)


def _take_away(connection: apsw.Connection, changes: Changes[Known], facts: SqliteFacts) -> None:
    for query, values in (
        ("delete_outputs", list(changes.settled)),
        ("cancel_keys", changes.cancelled_keys),
        ("cancel_timers", changes.cancelled["timers"]),
        ("cancel_unclaimed", changes.cancelled["unclaimed"]),
        ("cancel_forward", changes.cancelled["forward"]),
        ("retry_outputs", [_retried_row(spot, retry, facts.outputs[spot]) for spot, retry in changes.retried.items()]),
        ("delete_inputs", [position for _, position in changes.consumed]),
        # While nothing waits, no timer that has fired does.
        ("cancel_fired", [(*known.name, key) for known, key in changes.fired] if facts.inbox_has_rows else ()),
        ("delete_dead_letters", changes.discarded),
        ("delete_handled", changes.handled),
    ):
        if values:
            change(connection, query, packed(values))


def _write_inputs(connection: apsw.Connection, changes: Changes[Known], facts: SqliteFacts) -> None:
    """Write what was accepted and what was released, and park what waits for a suspended instance.

    Behind the instances: it is their new status that counts.
    """
    receivers = [known for known in changes.receivers.values() if known.accepted]
    inputs = [accepted for known in receivers for accepted in (known.accepted or {}).values()]
    written = sorted((*inputs, *changes.dropped), key=_position)
    if written:
        _INPUTS.insert(connection, _flat(input_values(*accepted) for accepted in written))
    if changes.dropped:
        # Written all the same: the table knows by its rows which positions were given away.
        change(connection, "delete_inputs", packed([_position(dropped) for dropped in changes.dropped]))
    if changes.released:
        change(connection, "release_inputs", packed([(position, worker) for _, position, worker in changes.released]))
    if receivers:
        change(connection, "park_inputs", packed([known.name for known in receivers]), min(map(_position, inputs)))
    moved = [*changes.begun, *changes.moved]
    if suspended := [known.name for known in moved if known.status == "suspended"]:
        change(connection, "park_inputs", packed(suspended), 0)
    if facts.inbox_is_parked and (others := [known.name for known in moved if known.status != "suspended"]):
        change(connection, "unpark_inputs", packed(others))
        changes.news = changes.news or bool(connection.changes())


def _write_instances(connection: apsw.Connection, changes: Changes[Known]) -> None:
    begun: list[Any] = []
    now_us = changes.now_us
    if ended := [(i.key, i.workflow) for i in (*changes.begun, *changes.moved) if i.status in ENDED]:
        change(connection, "insert_endings", packed(ended), now_us)
    for i in changes.begun:
        begun += (
            i.key,
            i.workflow,
            i.id,
            i.version,
            i.status,
            i.state,
            i.error,
            i.definition_version,
            i.context,
            now_us,
            now_us,
            i.context_version,
            born_checksum(i.key, i.workflow, i.id, i.definition_version, i.context, now_us),
            moved_checksum(i.key, i.version, i.status, i.state, i.error, now_us),
        )
    _INSTANCES.insert(connection, begun)
    if changes.moved:
        moved = [
            (
                i.key,
                i.version,
                i.status,
                i.state,
                i.error,
                i.context_version,
                moved_checksum(i.key, i.version, i.status, i.state, i.error, now_us),
            )
            for i in changes.moved
        ]
        change(connection, "update_instances", packed(moved), now_us)
    for i in changes.renewed:
        created_us = scalar(connection, "created", i.key)
        checksum = born_checksum(i.key, i.workflow, i.id, i.definition_version, i.context, created_us)
        change(connection, "renew_instance", i.key, i.definition_version, i.context, checksum)


def _output_row(o: Born) -> tuple[Any, ...]:
    i, v, kind, destination, due_us, priority, key, owner, attempts, error = astuple(o)
    checksum = output_checksum(i, v, kind, destination, due_us, priority, key, attempts)
    return (i, v, kind, destination, due_us, priority, key, owner, attempts, error, checksum)


def _retried_row(spot: Spot, retry: tuple[int, int, str | None], fact: OutputFact) -> tuple[Any, ...]:
    due_us, attempts, error = retry
    # What is damaged must stay so: a new checksum over it would have it believed.
    checksum = NO_CHECKSUM
    if not fact.damaged:
        row = (fact.kind or "", fact.destination or "", due_us, fact.priority or 0, fact.key, attempts)
        checksum = output_checksum(*spot, *row)
    return (*spot, due_us, attempts, error, checksum)


def _position(accepted: tuple[int, Any, Any]) -> int:
    return accepted[0]


def _flat(rows: Iterable[Sequence[Any]]) -> list[Any]:
    flat: list[Any] = []
    for row in rows:
        flat += row
    return flat
