"""What a store must hold, as plain dictionaries: the port's words once more, written without a look at any store.

The model invents no numbers. Keys, positions and ids are the store's own; the model takes them over and asks only that
they are new and increase. What may be done to a task, and how a checkpoint may move, are rules of the port itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from mainspring.port.attributes import AttributeRow
from mainspring.port.digests import same_message
from mainspring.port.projections import Checkpoint, Document
from mainspring.port.records import (
    ARMED,
    ENDED,
    Cause,
    Committed,
    Conflict,
    DeadLetter,
    Duplicate,
    EventRow,
    InputRow,
    InstanceRow,
    Outcome,
    OutputClaim,
    OutputKey,
    OutputRow,
    Ref,
    Remembered,
    Retry,
    Snapshot,
    Unit,
)
from mainspring.port.tasks import Refused, TaskRow, answered, opened, refusal, reopened
from mainspring.port.trims import trim_after
from mainspring.testing.clock import VirtualClock


@dataclass
class Waiting:
    """An input in an inbox."""

    row: InputRow
    owner: int | None


@dataclass
class Recorded:
    """An output in an outbox."""

    ref: Ref
    row: OutputRow
    due_us: int
    owner: int | None
    attempts: int = 0
    error: str | None = None


@dataclass
class Trim:
    """What a step has trimmed: versions from one to another, but for those needed when it was taken."""

    ref: Ref
    versions: range
    needed: set[int]


@dataclass
class Tables:
    """Everything a store holds."""

    clock: VirtualClock
    workers: dict[int, tuple[int, int]] = field(default_factory=dict[int, tuple[int, int]])
    instances: dict[Ref, InstanceRow] = field(default_factory=dict[Ref, InstanceRow])
    ended_us: dict[Ref, int] = field(default_factory=dict[Ref, int])
    snapshots: dict[Ref, Snapshot] = field(default_factory=dict[Ref, Snapshot])
    attributes: dict[Ref, tuple[AttributeRow, ...]] = field(default_factory=dict[Ref, tuple[AttributeRow, ...]])
    # In the order of the feed.
    events: dict[tuple[Ref, int], EventRow] = field(default_factory=dict[tuple[Ref, int], EventRow])
    inbox: dict[int, Waiting] = field(default_factory=dict[int, Waiting])
    outbox: dict[OutputKey, Recorded] = field(default_factory=dict[OutputKey, Recorded])
    letters: dict[int, tuple[DeadLetter, Recorded | None]] = field(
        default_factory=dict[int, tuple[DeadLetter, Recorded | None]]
    )
    # Buried by the last batch, without ids yet.
    buried: list[tuple[DeadLetter, Recorded | None]] = field(default_factory=list[tuple[DeadLetter, Recorded | None]])
    remembered: dict[str, Remembered] = field(default_factory=dict[str, Remembered])
    tasks: dict[tuple[Ref, int], TaskRow] = field(default_factory=dict[tuple[Ref, int], TaskRow])
    checkpoints: dict[tuple[str, int], Checkpoint] = field(default_factory=dict[tuple[str, int], Checkpoint])
    documents: dict[tuple[str, int], dict[str, Document]] = field(
        default_factory=dict[tuple[str, int], dict[str, Document]]
    )
    trims: list[Trim] = field(default_factory=list[Trim])
    last_key: int = 0
    last_position: int = 0
    last_letter: int = 0

    # ---- small questions

    def version(self, ref: Ref) -> int:
        """Return the version that a unit must expect; of a tombstone none fits."""
        row = self.instances.get(ref)
        return 0 if row is None else row.version if row.purged_us is None else -1

    def stream(self, ref: Ref) -> list[EventRow]:
        """Return what can be read of an instance's stream."""
        own = [event for (owner, _), event in self.events.items() if owner == ref]
        return [] if self.version(ref) < 0 else own

    def inputs(self, ref: Ref) -> dict[int, Waiting]:
        """Return what waits for an instance, in order."""
        return {
            at: one for at, one in self.inbox.items() if (one.row.workflow, one.row.instance) == (ref.workflow, ref.id)
        }

    def outputs(self, ref: Ref) -> dict[OutputKey, Recorded]:
        """Return what an instance has recorded and is not carried out."""
        return {key: one for key, one in self.outbox.items() if one.ref == ref}

    def known(self, ref: Ref, message: str, besides: int | None = None) -> tuple[str | None, bytes | None] | None:
        """Return the input of an instance with an id: stepped, or waiting elsewhere than at one position."""
        stepped = ((e.type, e.body) for e in self.stream(ref) if e.message_id == message)
        waiting = (
            (w.row.type, w.row.body)
            for at, w in self.inputs(ref).items()
            if at != besides and w.row.message_id == message
        )
        return next(stepped, None) or next(waiting, None)

    def claim_of(self, key: OutputKey) -> OutputClaim:
        """Return an output as a store shows it."""
        one = self.outbox[key]
        event = self.events[one.ref, key.version]
        contexts = [e.context for e in self.stream(one.ref) if e.version <= key.version and e.context is not None]
        cause = None if event.cause is None else self.events[one.ref, event.cause]
        return OutputClaim(
            key,
            one.ref.workflow,
            one.ref.id,
            one.row.kind,
            one.row.destination,
            one.attempts,
            one.due_us,
            one.row.priority,
            event.type or "",
            event.type_version,
            event.body or b"",
            event.detail,
            contexts[-1] if contexts else self.instances[one.ref].context,
            cause and Cause(cause.message_id, cause.kind, cause.cause),
            one.error,
        )

    # ---- commit

    def check(self, worker: int, units: list[Unit], outcomes: list[Outcome]) -> None:
        """Judge a batch: each unit must have had its outcome, and what was committed is applied."""
        void: set[Ref] = set()
        for unit, outcome in zip(units, outcomes, strict=True):
            ref = Ref(unit.workflow, unit.instance)
            refused = self._refusal(worker, unit, void)
            if refused is None:
                assert isinstance(outcome, Committed), (outcome, unit)
                self._apply(worker, unit, outcome)
            else:
                assert outcome == refused, (outcome, refused, unit)
                if unit.expected_version is not None:
                    void.add(ref)

    def _refusal(self, worker: int, unit: Unit, void: set[Ref]) -> Outcome | None:
        ref = Ref(unit.workflow, unit.instance)
        if unit.tasks is not None and (answer := unit.tasks.answer) is not None:
            refused = refusal(self.tasks.get((ref, answer.version)), answer.actor, answer.roles)
            if refused is not None:
                return Refused(refused.reason)
        if (duplicate := self._duplicate(ref, unit)) is not None:
            return duplicate
        needed = [*unit.settles, *(retry.output for retry in unit.retries)]
        if any(key not in self.outbox or self.outbox[key].owner != worker for key in needed):
            return Conflict("lost")
        if unit.takes is not None and unit.takes not in self.inputs(ref):
            return Conflict("inbox")
        if unit.expected_version is not None:
            is_new = unit.expected_version == 0 and unit.key is None
            if unit.expected_version != self.version(ref) or ref in void or (is_new and ref in self.instances):
                return Conflict("version")
        early = unit.takes is not None and unit.takes != min(self.inputs(ref))
        return Conflict("inbox") if early or (unit.direct and self.inputs(ref)) else None

    def _duplicate(self, ref: Ref, unit: Unit) -> Duplicate | None:
        if unit.dedupe is None:
            if len(unit.accepts) != 1 or unit != Unit(ref.workflow, ref.id, unit.key, accepts=unit.accepts):
                return None
            only = unit.accepts[0]
            known = self.known(Ref(only.workflow, only.instance), only.message_id)
            return known and Duplicate(same_message(known, (only.type, only.body)))
        known = self.known(ref, unit.dedupe, besides=unit.consumes)
        for own in unit.dead_letters:
            if own.message_id == unit.dedupe:
                known = known or next(
                    (_content(letter) for letter, _ in self.letters.values() if _same(letter, own)), None
                )
                known = known or next((_content(letter) for letter, _ in self.buried if _same(letter, own)), None)
        if known is None:
            return None
        carriers = [
            _content(one) for one in (*unit.events, *unit.accepts, *unit.dead_letters) if one.message_id == unit.dedupe
        ]
        return Duplicate(bool(carriers) and same_message(known, carriers[0]))

    def _apply(self, worker: int, unit: Unit, outcome: Committed) -> None:
        ref = Ref(unit.workflow, unit.instance)
        free = {one for one in self._receivers(unit) if unit.releases or self._is_behind_others(one, worker)}
        settled = {key: self.outbox[key] for key in unit.settles}
        self._take_away(worker, unit, ref)
        if unit.expected_version is None:
            assert outcome.key == 0, outcome
        else:
            self._move(worker, unit, ref, outcome.key)
        self._do_tasks(unit, ref)
        self._accept(worker, unit, outcome, free)
        self.buried += [(letter, settled.get(letter.output) if letter.output else None) for letter in unit.dead_letters]
        self.remembered.update({one.key: one for one in unit.remembers})
        if unit.trims and unit.expected_version:
            versions = range(trim_after(unit) + 1, unit.expected_version + 1)
            self.trims.append(Trim(ref, versions, self.needed(ref)))

    def _take_away(self, worker: int, unit: Unit, ref: Ref) -> None:
        if unit.consumes is not None:
            del self.inbox[unit.consumes]
        for position, waiting in self.inputs(ref).items():
            if position in unit.releases and waiting.owner == worker:
                waiting.owner = None
        for retry in unit.retries:
            self._retry(retry)
        for key in set(unit.settles):
            del self.outbox[key]
        for key, output in self.outputs(ref).items():
            if _cancels(unit, output):
                del self.outbox[key]
        for position, waiting in self.inputs(ref).items():
            timer = waiting.row.timer_key
            if timer is not None and (timer in unit.cancels or unit.cancel_all in ("timers", "forward")):
                del self.inbox[position]
        for id in unit.discards:
            self.letters.pop(id, None)
        if unit.handles:
            self.letters = {id: one for id, one in self.letters.items() if not _handles(unit, one[0])}
            self.buried = [one for one in self.buried if not _handles(unit, one[0])]

    def _retry(self, retry: Retry) -> None:
        output = self.outbox[retry.output]
        output.owner, output.attempts, output.error = None, retry.attempts, retry.error
        output.due_us = self.clock.now_us() + retry.after_us

    def _move(self, worker: int, unit: Unit, ref: Ref, key: int) -> None:
        now_us = self.clock.now_us()
        row = self.instances.get(ref)
        if row is None:
            assert key > self.last_key, f"the key {key} is not new"
            self.last_key = key
            row = InstanceRow(
                *(key, ref.workflow, ref.id, 0, unit.status, unit.state, unit.error, unit.definition_version),
                unit.context or b"{}",
                now_us,
                now_us,
            )
        assert row.key == key, (row, key)
        changes: dict[str, Any] = {"status": unit.status, "state": unit.state, "error": unit.error}
        if unit.renews:
            changes |= {"definition_version": unit.definition_version, "context": unit.context or b"{}"}
            for spot in [spot for spot in self.tasks if spot[0] == ref]:
                self.tasks[spot] = replace(self.tasks[spot], context=changes["context"])
        self.instances[ref] = replace(row, version=row.version + len(unit.events), updated_us=now_us, **changes)
        self.events.update({(ref, event.version): event for event in unit.events})
        if unit.status not in ENDED:
            self.ended_us.pop(ref, None)
        else:
            self.ended_us.setdefault(ref, now_us)
        if unit.snapshot is not None:
            self.snapshots[ref] = unit.snapshot
        if unit.attributes is not None:
            self.attributes[ref] = unit.attributes
        for output in unit.outputs:
            due_us = now_us + output.after_us if output.at_us is None else output.at_us
            owner = worker if output.claimed and worker in self.workers else None
            self.outbox[OutputKey(key, output.version)] = Recorded(ref, output, due_us, owner)

    def _do_tasks(self, unit: Unit, ref: Ref) -> None:
        if (work := unit.tasks) is None:
            return
        now_us = self.clock.now_us()
        for (owner, version), task in list(self.tasks.items()):
            if owner != ref:
                continue
            if work.answer is not None and work.answer.version == version:
                self.tasks[ref, version] = answered(task, work.answer, now_us)
            elif work.reopens == version:
                self.tasks[ref, version] = reopened(task)
            elif task.status == "open" and (work.close_all or task.key in work.closes):
                self.tasks[ref, version] = replace(task, status="closed", ended_us=now_us)
        for one in work.opens:
            self.tasks[ref, one.version] = opened(one, ref.workflow, ref.id, now_us, self.instances[ref].context)

    def _receivers(self, unit: Unit) -> set[Ref]:
        return {Ref(row.workflow, row.instance) for row in unit.accepts}

    def _is_behind_others(self, ref: Ref, worker: int) -> bool:
        return any(one.owner != worker for one in self.inputs(ref).values())

    def _accept(self, worker: int, unit: Unit, outcome: Committed, free: set[Ref]) -> None:
        assert len(outcome.positions) == len(unit.accepts), (outcome, unit)
        unclaimed: list[int] = []
        for row, position in zip(unit.accepts, outcome.positions, strict=True):
            ref = Ref(row.workflow, row.instance)
            if self.known(ref, row.message_id) is not None:
                assert position == 0, f"{row.message_id} was accepted twice"
                continue
            assert position > self.last_position, f"the position {position} is not new"
            self.last_position = position
            owner = worker if row.claimed and worker in self.workers and ref not in free else None
            self.inbox[position] = Waiting(replace(row, position=position), owner)
            if row.claimed and owner is None:
                unclaimed.append(position)
        assert list(outcome.unclaimed) == unclaimed, (outcome, unit)

    # ---- after a batch

    def number_letters(self, found: list[DeadLetter]) -> None:
        """Take over the ids of the dead letters that the last batch has left."""
        assert [replace(letter, id=0) for letter in found] == [letter for letter, _ in self.buried]
        for letter, (_, output) in zip(found, self.buried, strict=True):
            assert letter.id > self.last_letter, f"the id {letter.id} is not new"
            self.last_letter = letter.id
            self.letters[letter.id] = (letter, output)
        self.buried.clear()

    def needed(self, ref: Ref) -> set[int]:
        """Return the versions that outputs or dead letters of an instance point to, and the inputs of these."""
        letters = [letter for letter, _ in (*self.letters.values(), *self.buried)]
        own = [
            one.output.version
            for one in letters
            if one.output and (one.workflow, one.instance) == (ref.workflow, ref.id)
        ]
        versions = {key.version for key in self.outputs(ref)} | set(own)
        causes = {self.events[ref, version].cause for version in versions if (ref, version) in self.events}
        return versions | {cause for cause in causes if cause is not None}

    def take_trims(self, left: dict[Ref, set[int]]) -> None:
        """Judge what the trims of the last batch have left of streams: nothing needed is gone, the rest is."""
        for ref in {trim.ref for trim in self.trims}:
            own = [trim for trim in self.trims if trim.ref == ref]
            needed = self.needed(ref)
            must, may = set[int](), set[int]()
            for trim in own:
                trimmed = {
                    v for v in trim.versions if (e := self.events.get((ref, v))) and not (e.message_id or e.actor)
                }
                may |= trimmed - needed
                must |= trimmed - needed - trim.needed
            gone = {event.version for event in self.stream(ref)} - left[ref]
            assert gone <= may, f"{ref} has lost {sorted(gone - may)}, which something needs"
            assert gone >= must, f"{ref} has kept {sorted(must - gone)}, which nothing needs"
            for version in gone:
                del self.events[ref, version]
        self.trims.clear()


def _content(one: EventRow | InputRow | DeadLetter) -> tuple[str | None, bytes | None]:
    return one.type, one.body


def _handles(unit: Unit, letter: DeadLetter) -> bool:
    own = (letter.workflow, letter.instance) == (unit.workflow, unit.instance)
    return own and letter.output is not None and letter.output.version in unit.handles


def _same(one: DeadLetter, other: DeadLetter) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in ("workflow", "instance", "message_id", "output"))


def _cancels(unit: Unit, output: Recorded) -> bool:
    if output.row.key in unit.cancels:
        return True
    is_timer, is_free = output.row.kind == "timer", output.owner is None
    match unit.cancel_all:
        case None:
            return False
        case "timers":
            return is_timer
        case "unclaimed":
            return is_free
        case "forward":
            return is_timer or (is_free and output.row.key == ARMED)
