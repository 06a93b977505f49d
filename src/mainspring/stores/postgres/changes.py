"""The change phase: what a batch's units do, collected and written in one statement, and a few more for rare things."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import astuple, replace

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
from mainspring.stores.postgres.facts import PLACE_BITS, Known, OutputFact, Spot
from mainspring.stores.postgres.faults import Surprise
from mainspring.stores.postgres.sql import digest, packed
from mainspring.stores.postgres.transaction import Transaction
from mainspring.stores.rows import dead_letter_values, input_values, snapshot_values, unhandled

PARKED: Final = -1
_CANCELS: Final = {"timers": "cancel_timers", "unclaimed": "cancel_unclaimed", "forward": "cancel_forward"}
# A JSON array may not have more than 256 MB in PostgreSQL, and is no good form for large things anyway.
JSON_BYTES: Final = 32 * 1_024 * 1_024


class Born:
    """A new output, or one that is tried again before anybody has seen it.

    >>> Born(7, OutputRow(3, "send", "Charge"), 0, None).kind
    'send'
    """

    __slots__ = (
        "attempts",
        "destination",
        "due_us",
        "error",
        "instance",
        "key",
        "kind",
        "owner",
        "priority",
        "version",
    )

    def __init__(self, instance: int, row: OutputRow, due_us: int, owner: int | None) -> None:
        self.instance = instance
        self.version = row.version
        self.kind = row.kind
        self.destination = row.destination
        self.due_us = due_us
        self.priority = row.priority
        self.key = row.key
        self.owner = owner
        self.attempts = 0
        self.error: str | None = None


class Changes:
    """Rows to be written. `news` says that there is work now which nobody holds.

    >>> Changes(1, 0).news
    False
    """

    def __init__(self, worker: int, now_us: int) -> None:
        self._worker = worker
        self.now_us = now_us
        self.news = False
        self.begun: list[Known] = []
        self.moved: list[Known] = []
        self.events: list[tuple[Any, ...]] = []
        self.outputs: dict[Spot, Born] = {}
        self.settled: set[Spot] = set()
        self.retried: dict[Spot, tuple[int, int, str | None]] = {}
        self._cancelled_keys: list[tuple[int, str]] = []
        self._cancelled: dict[str, list[int]] = {"timers": [], "unclaimed": [], "forward": []}
        self._fired: list[tuple[bytes, str | None]] = []
        self._consumed: list[tuple[bytes, int]] = []
        self._released: list[tuple[Known, int]] = []
        self._receivers: dict[bytes, Known] = {}
        self.discarded: list[int] = []
        self._dead_letters: list[tuple[Any, ...]] = []
        self._handled: list[tuple[str, str, int]] = []
        self.results: dict[str, Remembered] = {}
        self.snapshots: dict[int, Snapshot] = {}
        self.renewed: dict[int, tuple[int, bytes]] = {}
        self.attributes: dict[int, tuple[AttributeRow, ...]] = {}
        self._trimmed: dict[int, tuple[int, int]] = {}
        self.attempts: list[Attempt] = []

    # ---- collecting

    def record(self, key: int, row: OutputRow, owner: int | None) -> None:
        due_us = self.now_us + row.after_us if row.at_us is None else row.at_us
        self.outputs[key, row.version] = Born(key, row, due_us, owner)
        if owner is None:
            self._tell(due_us)

    def trim(self, key: int, unit: Unit) -> None:
        """Remove what a unit leaves behind; several units of a batch together, from where the first one looks."""
        known = self._trimmed.get(key)
        after = trim_after(unit)
        self._trimmed[key] = after if known is None else min(after, known[0]), unit.expected_version or 0

    def settle(self, spot: Spot) -> Born | None:
        """Remove an output, and return it if it is so new that it is not in the database yet."""
        born = self.outputs.pop(spot, None)
        if born is None:
            self.settled.add(spot)
        return born

    def retry(self, retry: Retry) -> None:
        spot = (retry.output.instance, retry.output.version)
        due_us = retry.due_us(self.now_us)
        if born := self.outputs.get(spot):
            born.due_us, born.owner, born.attempts, born.error = due_us, None, retry.attempts, clean(retry.error)
        else:
            self.retried[spot] = (due_us, retry.attempts, clean(retry.error))
        self._tell(due_us)

    def cancel(
        self, known: Known, keys: Sequence[str], everything: str | None, facts: Mapping[Spot, OutputFact]
    ) -> None:
        """Remove timers, or all that nobody holds, from the database and from what this batch has changed."""
        for version in range(known.since + 1, known.version + 1) if known.moved else ():
            born = self.outputs.get((known.key, version))
            if born is not None and _is_cancelled(born, born.owner, keys, everything):
                del self.outputs[known.key, version]
        for spot in [spot for spot in self.retried if spot[0] == known.key]:
            if _is_cancelled(facts[spot], None, keys, everything):
                del self.retried[spot]
                self.settled.add(spot)
        for message_id, (_, row, _) in list((known.accepted or {}).items()):
            if row.timer_key is not None and (row.timer_key in keys or everything in ("timers", "forward")):
                del (known.accepted or {})[message_id]
        self._fired += [(known.name, key) for key in keys]
        if everything in ("timers", "forward"):
            self._fired.append((known.name, None))
        if known.key:
            self._cancelled_keys += [(known.key, key) for key in keys]
            if everything is not None:
                self._cancelled[everything].append(known.key)

    def consume(self, known: Known, position: int) -> None:
        known.consumed = (*known.consumed, position)
        self._consumed.append((known.name, position))
        self.news = True  # the next input is free now

    def release(self, known: Known, positions: Iterable[int]) -> None:
        self._released += [(known, position) for position in positions]
        self.news = True

    def accept(self, known: Known, position: int, row: InputRow, owner: int | None) -> None:
        if known.accepted is None:
            known.accepted = {}
        known.accepted[row.message_id] = (position, row, owner)
        self._receivers[known.name] = known
        if owner is None:
            self.news = True

    def bury(self, letter: DeadLetter, output: Born | OutputFact | None) -> None:
        row = None if output is None else (output.kind, output.destination, output.priority, output.key)
        self._dead_letters.append(dead_letter_values(replace(letter, error=clean(letter.error)), row))

    def handle(self, unit: Unit) -> None:
        self._handled += [(unit.workflow, unit.instance, version) for version in unit.handles]
        self._dead_letters = unhandled(self._dead_letters, unit)

    def _tell(self, due_us: int) -> None:
        if due_us - self.now_us < SOON_US:
            self.news = True

    # ---- writing

    async def write(self, transaction: Transaction, first_position: int) -> None:
        """Write it all. What is taken away goes first: a timer cancelled and set anew in one step must stay."""
        if len(self.events) >> PLACE_BITS:
            raise ValueError(f"{len(self.events)} events are too many for one commit")
        await self._take_away(transaction)
        await self._write_instances(transaction, first_position)
        await self._write_inputs(transaction)
        if self._dead_letters:
            await transaction.rows("insert_dead_letters", *_columns(self._dead_letters))
        if self.snapshots:
            snapshots = [snapshot_values(key, snapshot) for key, snapshot in sorted(self.snapshots.items())]
            await transaction.rows("replace_snapshots", *_columns(snapshots))
        if self.attributes:
            await self._write_attributes(transaction)
        if self.attempts:
            await self._write_attempts(transaction)
        if self.results:
            await transaction.rows("sweep_results", self.now_us)
            # In the order of their names, so that two batches never wait for each other.
            results = sorted((digest(result.key), *astuple(result)) for result in self.results.values())
            await transaction.rows("replace_results", *_columns(results))
        if self._trimmed:
            # Last, for it is what is left in the outbox and among the dead letters that counts.
            trims = [(key, *span) for key, span in sorted(self._trimmed.items())]
            await transaction.rows("trim_events", *_columns(trims))

    async def _write_attributes(self, transaction: Transaction) -> None:
        await transaction.rows("delete_attributes", sorted(self.attributes))
        if rows := [(key, *astuple(row)) for key, rows in sorted(self.attributes.items()) for row in rows]:
            await transaction.rows("insert_attributes", *_columns(rows))

    async def _write_attempts(self, transaction: Transaction) -> None:
        rows = sorted(
            (a.instance, a.version, a.number, a.began_us, a.ended_us, clean(a.worker), clean(a.error))
            for a in self.attempts
        )
        await transaction.rows("insert_attempts", *_columns(rows))
        instances = sorted({row[0] for row in rows})
        await transaction.rows("forget_attempts", instances, ATTEMPTS_KEPT, ATTEMPTS_OF_INSTANCE)

    async def _take_away(self, transaction: Transaction) -> None:
        if self._cancelled_keys or any(self._cancelled.values()):
            await self._cancel_outputs(transaction)
        if self.retried:
            # Only now: what was given back after everything unclaimed was cancelled must stay.
            rows = [(*spot, *row) for spot, row in sorted(self.retried.items())]
            _expect(await transaction.value("retry_outputs", *_columns(rows), self._worker), len(rows))
        if self._consumed:
            consumed = _columns(sorted(self._consumed))
            _expect(await transaction.value("delete_inputs", *consumed), len(self._consumed))
        if self._fired:
            await transaction.rows("cancel_fired", *_columns(self._fired))
        if self.discarded:
            await transaction.rows("delete_dead_letters", self.discarded)
        if self._handled:
            await transaction.rows("delete_handled", *_columns(self._handled))

    async def _lock_work(self, transaction: Transaction) -> None:
        """Hold still what may be cancelled, against claims."""
        instances = {instance for instance, _ in self._cancelled_keys}
        instances.update(*self._cancelled.values())
        names = {name for name, _ in self._fired}
        if instances or names:
            await transaction.rows("lock_work", sorted(instances), sorted(names))

    async def _cancel_outputs(self, transaction: Transaction) -> None:
        await self._lock_work(transaction)
        if self.settled:
            # Before the cancelling, which would take some of them away and leave the count wrong.
            settled, self.settled = sorted(self.settled), set[Spot]()
            _expect(await transaction.value("delete_outputs", *_columns(settled), self._worker), len(settled))
        if self._cancelled_keys:
            await transaction.rows("cancel_keys", *_columns(self._cancelled_keys))
        for everything, query in _CANCELS.items():
            if instances := self._cancelled[everything]:
                await transaction.rows(query, instances)

    async def _write_instances(self, transaction: Transaction, first_position: int) -> None:
        if awaited := [known.awaited for known in self.begun if known.awaited]:
            await transaction.rows("stop_awaiting", sorted(awaited))
        if not (self.settled or self.begun or self.moved or self.outputs):
            return
        # By name, so that two batches which begin the same instances never wait for each other.
        begun = [_begun_row(known) for known in sorted(self.begun, key=_by_name)]
        moved = [_moved_row(known) for known in self.moved]
        if self.renewed:
            await transaction.rows("renew_instances", *_columns([(key, *told) for key, told in self.renewed.items()]))
        outputs = [_output_row(born) for born in self.outputs.values()]
        ended = [(known.key, known.workflow) for known in (*self.begun, *self.moved) if known.status in ENDED]
        events = packed(self.events)
        if len(events) > JSON_BYTES:
            await self._append_in_parts(transaction, first_position)
            events = "[]"
        settled = await transaction.value(
            "write",
            packed(sorted(self.settled)),
            self._worker,
            self.now_us,
            packed(begun),
            packed(moved),
            first_position,
            events,
            packed(outputs),
            packed(ended),
        )
        _expect(settled, len(self.settled))

    async def _append_in_parts(self, transaction: Transaction, first_position: int) -> None:
        begin = size = 0
        for end, row in enumerate(self.events, 1):
            size += sum(len(value) for value in row if isinstance(value, bytes))
            if size > JSON_BYTES // 2 or end == len(self.events):
                part = self.events[begin:end]
                await transaction.rows("append_events", *_columns(part), first_position + begin)
                begin, size = end, 0

    async def _write_inputs(self, transaction: Transaction) -> None:
        """Write what was accepted and what was given back; what waits for a suspended instance is parked.

        Behind the instances: it is their new status that counts.
        """
        receivers = sorted((known for known in self._receivers.values() if known.accepted), key=_by_name)
        if nameless := [(i.name, i.workflow, i.id) for i in receivers if not i.key and not i.awaited]:
            await transaction.rows("await_instances", *_columns(nameless), self.now_us)
        inputs = [
            (known.name, digest(row.message_id), *input_values(position, row, _holder(known, owner)))
            for known in receivers
            for position, row, owner in (known.accepted or {}).values()
        ]
        if inputs:
            await transaction.rows("insert_inputs", *_columns(inputs))
        if self._released:
            released = [(known.name, position, _holder(known, None)) for known, position in self._released]
            await transaction.rows("release_inputs", *_columns(released), self._worker)
        if suspended := [i.name for i in self.moved if i.status == "suspended" and not i.suspended]:
            await transaction.rows("park_inputs", suspended)
        if suspended := [i.name for i in self.begun if i.status == "suspended"]:
            await transaction.rows("park_inputs", suspended)
        if resumed := [i.name for i in self.moved if i.suspended and i.status != "suspended"]:
            await transaction.rows("unpark_inputs", resumed)
            self.news = True


def clean(text: str | None) -> str | None:
    r"""Return what an error said as PostgreSQL can keep it: it knows no zero bytes in a text.

    >>> clean("boom\0")
    'boom\ufffd'
    """
    return text.replace("\0", "\ufffd") if text is not None and "\0" in text else text


def _columns(rows: Sequence[Sequence[Any]]) -> list[Sequence[Any]]:
    """Return rows as columns.

    >>> _columns([(7, "a"), (8, "b")])
    [(7, 8), ('a', 'b')]
    """
    return list(zip(*rows, strict=True))


def _expect(found: int, expected: int) -> None:
    if found != expected:
        raise Surprise


def _by_name(known: Known) -> bytes:
    return known.name


def _holder(known: Known, owner: int | None) -> int | None:
    return PARKED if owner is None and known.status == "suspended" else owner


def _begun_row(i: Known) -> tuple[Any, ...]:
    told = (i.status, i.state, clean(i.error), i.definition_version, i.context)
    return (i.name, i.key, i.workflow, i.id, i.version, *told, i.context_version, i.position)


def _moved_row(i: Known) -> tuple[Any, ...]:
    return (i.key, i.version, i.status, i.state, clean(i.error), i.context_version, i.position)


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
        o.error,
    )


def _is_cancelled(row: Born | OutputFact, owner: int | None, keys: Sequence[str], everything: str | None) -> bool:
    if everything in ("timers", "forward") and row.kind == "timer":
        return True
    if everything == "forward" and owner is None and row.key == ARMED:
        return True
    if everything == "unclaimed" and owner is None:
        return True
    return row.key in keys
