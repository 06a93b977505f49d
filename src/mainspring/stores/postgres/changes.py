"""Writes what a batch has changed, in one statement, and a few more for rare things."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import astuple, replace

from mainspring.port.attempts import ATTEMPTS_KEPT, ATTEMPTS_OF_INSTANCE
from mainspring.port.records import ENDED
from mainspring.stores.commit.changes import Born, Changes
from mainspring.stores.commit.facts import Spot
from mainspring.stores.commit.rows import dead_letter_values, event_values, input_values, snapshot_values
from mainspring.stores.postgres.dialect import clean, columns
from mainspring.stores.postgres.facts import PLACE_BITS, PostgresKnown
from mainspring.stores.postgres.faults import Surprise
from mainspring.stores.postgres.statements import digest
from mainspring.stores.postgres.transaction import Transaction
from mainspring.stores.sql.dialect import packed

PARKED: Final = -1
_CANCELS: Final = {"timers": "cancel_timers", "unclaimed": "cancel_unclaimed", "forward": "cancel_forward"}
# A JSON array may not have more than 256 MB in PostgreSQL, and is no good form for large things anyway.
JSON_BYTES: Final = 32 * 1_024 * 1_024


class Writing:
    """The changes of one worker's batch. `first_position` is that of its first event in the feed."""

    def __init__(
        self, transaction: Transaction, changes: Changes[PostgresKnown], worker: int, first_position: int
    ) -> None:
        self._transaction = transaction
        self._changes = changes
        self._worker = worker
        self._first_position = first_position

    async def write(self) -> None:
        """Write it all, in the order that `Changes` asks for."""
        transaction, changes = self._transaction, self._changes
        if len(changes.events) >> PLACE_BITS:
            raise ValueError(f"{len(changes.events)} events are too many for one commit")
        await self._take_away()
        await self._write_instances()
        await self._write_inputs()
        if changes.dead_letters:
            letters = [
                dead_letter_values(replace(letter, error=clean(letter.error)), output)
                for letter, output in changes.dead_letters
            ]
            await transaction.rows("insert_dead_letters", *columns(letters))
        if changes.snapshots:
            snapshots = [snapshot_values(key, snapshot) for key, snapshot in sorted(changes.snapshots.items())]
            await transaction.rows("replace_snapshots", *columns(snapshots))
        if changes.attributes:
            await self._write_attributes()
        if changes.attempts:
            await self._write_attempts()
        if changes.results:
            await transaction.rows("sweep_results", changes.now_us)
            # In the order of their names, so that two batches never wait for each other.
            results = sorted((digest(result.key), *astuple(result)) for result in changes.results.values())
            await transaction.rows("replace_results", *columns(results))
        if changes.trimmed:
            trims = [(key, *span) for key, span in sorted(changes.trimmed.items())]
            await transaction.rows("trim_events", *columns(trims))

    async def _write_attributes(self) -> None:
        attributes = sorted(self._changes.attributes.items())
        await self._transaction.rows("delete_attributes", [key for key, _ in attributes])
        if rows := [(key, *astuple(row)) for key, rows in attributes for row in rows]:
            await self._transaction.rows("insert_attributes", *columns(rows))

    async def _write_attempts(self) -> None:
        rows = sorted(
            (a.instance, a.version, a.number, a.began_us, a.ended_us, clean(a.worker), clean(a.error))
            for a in self._changes.attempts
        )
        await self._transaction.rows("insert_attempts", *columns(rows))
        instances = sorted({row[0] for row in rows})
        await self._transaction.rows("forget_attempts", instances, ATTEMPTS_KEPT, ATTEMPTS_OF_INSTANCE)

    async def _take_away(self) -> None:
        transaction, changes = self._transaction, self._changes
        if changes.cancels:
            await self._cancel_outputs()
        if changes.retried:
            rows = [(*spot, due, tries, clean(error)) for spot, (due, tries, error) in sorted(changes.retried.items())]
            _expect(await transaction.value("retry_outputs", *columns(rows), self._worker), len(rows))
        if changes.consumed:
            consumed = sorted((known.name, position) for known, position in changes.consumed)
            _expect(await transaction.value("delete_inputs", *columns(consumed)), len(consumed))
        if changes.fired:
            await transaction.rows("cancel_fired", *columns([(known.name, key) for known, key in changes.fired]))
        if changes.discarded:
            await transaction.rows("delete_dead_letters", changes.discarded)
        if changes.handled:
            await transaction.rows("delete_handled", *columns(changes.handled))

    async def _lock_work(self) -> None:
        """Hold still what may be cancelled, against claims."""
        instances = {instance for instance, _ in self._changes.cancelled_keys}
        instances.update(*self._changes.cancelled.values())
        names = {known.name for known, _ in self._changes.fired}
        if instances or names:
            await self._transaction.rows("lock_work", sorted(instances), sorted(names))

    async def _cancel_outputs(self) -> None:
        transaction, changes = self._transaction, self._changes
        await self._lock_work()
        if changes.settled:
            # Before the cancelling, which would take some of them away and leave the count wrong.
            settled, changes.settled = sorted(changes.settled), set[Spot]()
            _expect(await transaction.value("delete_outputs", *columns(settled), self._worker), len(settled))
        if changes.cancelled_keys:
            await transaction.rows("cancel_keys", *columns(changes.cancelled_keys))
        for everything, query in _CANCELS.items():
            if instances := changes.cancelled[everything]:
                await transaction.rows(query, instances)

    async def _write_instances(self) -> None:
        transaction, changes = self._transaction, self._changes
        if awaited := [known.awaited for known in changes.begun if known.awaited]:
            await transaction.rows("stop_awaiting", sorted(awaited))
        if not (changes.settled or changes.begun or changes.moved or changes.outputs):
            return
        # By name, so that two batches which begin the same instances never wait for each other.
        begun = [self._begun_row(known) for known in sorted(changes.begun, key=_by_name)]
        moved = [self._moved_row(known) for known in changes.moved]
        if changes.renewed:
            renewed = {known.key: (known.key, known.definition_version, known.context) for known in changes.renewed}
            await transaction.rows("renew_instances", *columns(list(renewed.values())))
        outputs = [_output_row(born) for born in changes.outputs.values()]
        ended = [(known.key, known.workflow) for known in (*changes.begun, *changes.moved) if known.status in ENDED]
        rows = list(map(event_values, changes.event_keys, changes.events))
        events = packed(rows)
        if len(events) > JSON_BYTES:
            await self._append_in_parts(rows)
            events = "[]"
        settled = await transaction.value(
            "write",
            packed(sorted(changes.settled)),
            self._worker,
            changes.now_us,
            packed(begun),
            packed(moved),
            self._first_position,
            events,
            packed(outputs),
            packed(ended),
        )
        _expect(settled, len(changes.settled))

    async def _append_in_parts(self, events: Sequence[Sequence[Any]]) -> None:
        begin = size = 0
        for end, row in enumerate(events, 1):
            size += sum(len(value) for value in row if isinstance(value, bytes))
            if size > JSON_BYTES // 2 or end == len(events):
                parts = columns(events[begin:end])
                await self._transaction.rows("append_events", *parts, self._first_position + begin)
                begin, size = end, 0

    async def _write_inputs(self) -> None:
        """Write what was accepted and what was released; what waits for a suspended instance is parked.

        Behind the instances: it is their new status that counts.
        """
        transaction, changes = self._transaction, self._changes
        receivers = sorted((known for known in changes.receivers.values() if known.accepted), key=_by_name)
        if nameless := [(i.name, i.workflow, i.id) for i in receivers if not i.key and not i.awaited]:
            await transaction.rows("await_instances", *columns(nameless), changes.now_us)
        inputs = [
            (known.name, digest(row.message_id), *input_values(position, row, _holder(known, owner)))
            for known in receivers
            for position, row, owner in (known.accepted or {}).values()
        ]
        if inputs:
            await transaction.rows("insert_inputs", *columns(inputs))
        if changes.released:
            released = [(known.name, position, _holder(known, None)) for known, position, _ in changes.released]
            await transaction.rows("release_inputs", *columns(released), self._worker)
        if suspended := [i.name for i in changes.moved if i.status == "suspended" and not i.suspended]:
            await transaction.rows("park_inputs", suspended)
        if suspended := [i.name for i in changes.begun if i.status == "suspended"]:
            await transaction.rows("park_inputs", suspended)
        if resumed := [i.name for i in changes.moved if i.suspended and i.status != "suspended"]:
            await transaction.rows("unpark_inputs", resumed)
            changes.news = True

    def _begun_row(self, i: PostgresKnown) -> tuple[Any, ...]:
        told = (i.status, i.state, clean(i.error), i.definition_version, i.context)
        return (i.name, i.key, i.workflow, i.id, i.version, *told, i.context_version, self._position(i))

    def _moved_row(self, i: PostgresKnown) -> tuple[Any, ...]:
        return (i.key, i.version, i.status, i.state, clean(i.error), i.context_version, self._position(i))

    def _position(self, i: PostgresKnown) -> int:
        """Return the position in the feed of an instance's last event."""
        return self._first_position + i.place if i.place else i.position


def _expect(found: int, expected: int) -> None:
    if found != expected:
        raise Surprise


def _by_name(known: PostgresKnown) -> bytes:
    return known.name


def _holder(known: PostgresKnown, owner: int | None) -> int | None:
    return PARKED if owner is None and known.status == "suspended" else owner


def _output_row(o: Born) -> tuple[Any, ...]:
    return (
        o.instance,
        o.version,
        o.kind,
        o.destination,
        o.due_us,
        o.priority,
        o.key,
        o.owner,
        o.attempts,
        clean(o.error),
    )
