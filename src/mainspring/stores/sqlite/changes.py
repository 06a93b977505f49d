"""The change phase: what a segment's units do, collected and written in one statement per table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import apsw
from msgspec.structs import astuple

from mainspring.port.attempts import ATTEMPTS_KEPT, ATTEMPTS_OF_INSTANCE, Attempt
from mainspring.port.attributes import AttributeRow
from mainspring.port.records import (
    ARMED,
    ENDED,
    DeadLetter,
    InputRow,
    OutputRow,
    Remembered,
    Retry,
    Snapshot,
    Unit,
)
from mainspring.port.store import SOON_US
from mainspring.port.trimming import trim_after
from mainspring.stores.rows import (
    born_checksum,
    dead_letter_values,
    input_values,
    moved_checksum,
    output_checksum,
    snapshot_values,
    unhandled,
)
from mainspring.stores.sqlite.facts import Known, Name, Spot
from mainspring.stores.sqlite.sql import QUERIES, Ladder, change, packed, scalar
from mainspring.stores.sqlite.tasks import TaskChanges

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

# Places in an outbox row.
KIND, KEY, OWNER = 2, 6, 7


class Changes:
    """Rows to be written. `news` says that there is work now which nobody holds.

    >>> Changes(0).news
    False
    """

    def __init__(self, now_us: int, *, inbox_is_parked: bool = False) -> None:
        self.now_us = now_us
        self._inbox_is_parked = inbox_is_parked
        self.news = False
        self.begun: list[Known] = []
        self.moved: list[Known] = []
        self.events: list[Any] = []
        self.outputs: dict[Spot, tuple[Any, ...]] = {}
        self.settled: set[Spot] = set()
        self.retried: dict[Spot, tuple[int, int, int, int, str | None, int]] = {}
        self._cancelled_keys: list[tuple[int, str]] = []
        self._cancelled: dict[str, list[int]] = {"timers": [], "unclaimed": [], "forward": []}
        self._fired: list[tuple[str, str, str | None]] = []
        self.consumed: set[int] = set()
        self._released: list[tuple[int, int]] = []
        self._inputs: list[Any] = []
        self._receivers: set[Name] = set()
        self._first_position = 0
        self.discarded: list[int] = []
        self._handled: list[tuple[str, str, int]] = []
        self._dead_letters: list[tuple[Any, ...]] = []
        self._results: dict[str, tuple[Any, ...]] = {}
        self._snapshots: dict[int, tuple[Any, ...]] = {}
        self.renewed: set[Known] = set()
        self._trimmed: dict[int, tuple[int, int]] = {}
        self.tasks = TaskChanges()
        self.attributes: dict[int, tuple[AttributeRow, ...]] = {}
        self.attempts: list[Attempt] = []

    def output(self, key: int, row: OutputRow, owner: int | None) -> None:
        due_us = self.now_us + row.after_us if row.at_us is None else row.at_us
        self.outputs[key, row.version] = (
            key,
            row.version,
            row.kind,
            row.destination,
            due_us,
            row.priority,
            row.key,
            owner,
            0,
            None,
            output_checksum(key, row.version, row.kind, row.destination, due_us, row.priority, row.key, 0),
        )
        if owner is None:
            self._tell(due_us)

    def trim(self, key: int, unit: Unit) -> None:
        """Remove what a unit leaves behind; several units of a batch together, from where the first one looks."""
        known = self._trimmed.get(key)
        after = trim_after(unit)
        self._trimmed[key] = after if known is None else min(after, known[0]), unit.expected_version or 0

    def _tell(self, due_us: int) -> None:
        if due_us - self.now_us < SOON_US:
            self.news = True

    def settle(self, spot: Spot) -> tuple[Any, ...] | None:
        """Remove an output. Return its row if it is so new that it is not in the database yet."""
        born = self.outputs.pop(spot, None)
        if born is None:
            self.settled.add(spot)
        return born

    def retry(self, retry: Retry, row: Sequence[Any], *, damaged: bool) -> None:
        """Let an output be due later. `row` is what the outbox says of it; nothing if it is not there yet."""
        spot = (retry.output.instance, retry.output.version)
        due_us = retry.due_us(self.now_us)
        if not retry.after_us:
            self.news = True  # else whoever gives it back knows when it is due, and others look by themselves
        born = self.outputs.get(spot)
        kind, destination, priority, key = row if born is None else (*born[2:4], *born[5:7])
        # What is damaged must stay so: a new checksum over it would have it believed.
        checksum = (
            NO_CHECKSUM if damaged else output_checksum(*spot, kind, destination, due_us, priority, key, retry.attempts)
        )
        if born is not None:
            self.outputs[spot] = (*born[:4], due_us, *born[5:7], None, retry.attempts, retry.error, checksum)
        else:
            self.retried[spot] = (*spot, due_us, retry.attempts, retry.error, checksum)

    def cancel(self, known: Known, keys: Sequence[str], everything: str | None) -> None:
        """Remove timers, or all that nobody holds, both from the database and from what is new."""
        for version in range(known.since + 1, known.version + 1) if known.moved else ():
            row = self.outputs.get((known.key, version))
            if row is not None and _cancelled(row, keys, everything):
                del self.outputs[known.key, version]
        name: Name = (known.workflow, known.id)
        self._fired += [(*name, key) for key in keys]
        if everything in ("timers", "forward"):
            self._fired.append((*name, None))
        if known.key:
            self._cancelled_keys += [(known.key, key) for key in keys]
            if everything is not None:
                self._cancelled[everything].append(known.key)

    def release(self, positions: Sequence[int], worker: int) -> None:
        self._released += [(position, worker) for position in positions]
        self.news = True

    def accept(self, position: int, row: InputRow, owner: int | None) -> None:
        self._inputs += input_values(position, row, owner)
        self._receivers.add((row.workflow, row.instance))
        self._first_position = self._first_position or position
        if owner is None:
            self.news = True

    def discard(self, ids: Sequence[int]) -> None:
        self.discarded += ids

    def bury(self, letter: DeadLetter, output: Sequence[Any] | None) -> None:
        self._dead_letters.append(dead_letter_values(letter, output))

    def handle(self, unit: Unit) -> None:
        self._handled += [(unit.workflow, unit.instance, version) for version in unit.handles]
        self._dead_letters = unhandled(self._dead_letters, unit)

    def remember(self, result: Remembered) -> None:
        self._results[result.key] = (result.key, result.type, result.type_version, result.body, result.expires_us)

    def keep(self, key: int, snapshot: Snapshot) -> None:
        self._snapshots[key] = snapshot_values(key, snapshot)

    def write(self, connection: apsw.Connection) -> None:
        """Write it all. What is taken away goes first: a timer cancelled and set anew in one step must stay."""
        for query, values in (
            ("retry_outputs", list(self.retried.values())),
            ("delete_outputs", list(self.settled)),
            ("cancel_keys", self._cancelled_keys),
            ("cancel_timers", self._cancelled["timers"]),
            ("cancel_unclaimed", self._cancelled["unclaimed"]),
            ("cancel_forward", self._cancelled["forward"]),
            ("delete_inputs", list(self.consumed)),
            ("cancel_fired", self._fired),
            ("delete_dead_letters", self.discarded),
            ("delete_handled", self._handled),
        ):
            if values:
                change(connection, query, packed(values))
        self._write_instances(connection)
        _EVENTS.insert(connection, self.events)
        _OUTPUTS.insert(connection, _flat(self.outputs.values()))
        self._write_inputs(connection)
        _DEAD_LETTERS.insert(connection, _flat(self._dead_letters))
        _SNAPSHOTS.insert(connection, _flat(self._snapshots.values()))
        self.tasks.write(connection, self.now_us)
        if self.attempts:
            _ATTEMPTS.insert(connection, _flat(astuple(attempt) for attempt in self.attempts))
            instances = packed([*{attempt.instance for attempt in self.attempts}])
            change(connection, "forget_attempts", instances, ATTEMPTS_KEPT, ATTEMPTS_OF_INSTANCE)
        if self.attributes:
            change(connection, "delete_attributes", packed(list(self.attributes)))
            _ATTRIBUTES.insert(
                connection, _flat((k, *astuple(row)) for k, rows in self.attributes.items() for row in rows)
            )
        if self._results:
            change(connection, "sweep_results", self.now_us)
            _RESULTS.insert(connection, _flat(self._results.values()))
        # Last, for it is what is left in the outbox and among the dead letters that counts.
        for key, (after, version) in self._trimmed.items():
            change(connection, "trim_events", key, after, version)

    def _write_inputs(self, connection: apsw.Connection) -> None:
        """Write what was accepted and what was given back, and park what waits for a suspended instance.

        After the instances: it is their new status that counts.
        """
        _INPUTS.insert(connection, self._inputs)
        if self._released:
            change(connection, "release_inputs", packed(self._released))
        if self._receivers:
            change(connection, "park_inputs", packed(list(self._receivers)), self._first_position)
        moved = [*self.begun, *self.moved]
        if suspended := [(i.workflow, i.id) for i in moved if i.status == "suspended"]:
            change(connection, "park_inputs", packed(suspended), 0)
        if self._inbox_is_parked and (others := [(i.workflow, i.id) for i in moved if i.status != "suspended"]):
            change(connection, "unpark_inputs", packed(others))

    def _write_instances(self, connection: apsw.Connection) -> None:
        begun: list[Any] = []
        now_us = self.now_us
        if ended := [(i.key, i.workflow) for i in (*self.begun, *self.moved) if i.status in ENDED]:
            change(connection, "insert_endings", packed(ended), now_us)
        for i in self.begun:
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
        if self.moved:
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
                for i in self.moved
            ]
            change(connection, "update_instances", packed(moved), now_us)
        for i in self.renewed:
            created_us = scalar(connection, "created", i.key)
            checksum = born_checksum(i.key, i.workflow, i.id, i.definition_version, i.context, created_us)
            change(connection, "renew_instance", i.key, i.definition_version, i.context, checksum)


def _flat(rows: Any) -> list[Any]:
    flat: list[Any] = []
    for row in rows:
        flat += row
    return flat


def _cancelled(row: tuple[Any, ...], keys: Sequence[str], everything: str | None) -> bool:
    if everything in ("timers", "forward") and row[KIND] == "timer":
        return True
    if everything == "forward" and row[OWNER] is None and row[KEY] == ARMED:
        return True
    if everything == "unclaimed" and row[OWNER] is None:
        return True
    return row[KEY] in keys
