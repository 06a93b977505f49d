"""Units in, outcomes out, inside one open transaction.

A batch is cut into segments, mostly into one. Within a segment the database is asked once and written once, and between
the two each unit is judged in order over what earlier ones have changed. Where that would need more of the database
than was asked (after cancelling, nobody knows here which timers there were), the segment ends before the unit in
question: what it has is written, and the next one asks anew. `mainspring.stores.memory` says the same in fewer words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import count
from typing import Any, Final

import apsw

from mainspring.port.digests import same_message
from mainspring.port.lending import bare_acceptance
from mainspring.port.preconditions import Unmet
from mainspring.port.records import Committed, Conflict, Duplicate, EventRow, InputRow, Outcome, Unit
from mainspring.port.tasks import Refused, barred, refusal
from mainspring.stores.rows import event_values
from mainspring.stores.sqlite.changes import OWNER, Changes
from mainspring.stores.sqlite.facts import Everything, Facts, Known, Name, Owned, Spot
from mainspring.stores.sqlite.sql import scalar

SMALLEST_SEGMENT: Final = 16
NOBODYS: Final[AbstractSet[Name]] = frozenset()


def commit_units(
    connection: apsw.Connection, now_us: int, units: Sequence[Owned], void: set[Name] | None = None
) -> tuple[list[Outcome], bool]:
    """Apply units in order. Return an outcome each, and whether there is work now that nobody holds.

    `void` are the instances of which a unit was refused: what follows in the same commit was built on that one.
    """
    void = set() if void is None else void
    outcomes: list[Outcome] = []
    news = False
    size = len(units)
    while len(outcomes) < len(units):
        segment = Segment(connection, now_us, units[len(outcomes) : len(outcomes) + size], void)
        done = segment.run()
        outcomes += done
        news = news or segment.changes.news
        # After a cut the next one is likely soon: asking about all the rest each time would take quadratic time.
        size = max(SMALLEST_SEGMENT, 2 * len(done))
    return outcomes, news


class Segment:
    """A run of units that is checked at once, judged one by one and written at once."""

    def __init__(self, connection: apsw.Connection, now_us: int, units: Sequence[Owned], void: set[Name]) -> None:
        self._connection = connection
        self._units = units
        self._void = void
        self._facts = Facts(connection, units)
        self.changes = Changes(now_us, inbox_is_parked=bool(self._facts.inbox_is_parked))
        self._taken: dict[tuple[Name, str], EventRow] = {}
        self._accepted: dict[tuple[Name, str], InputRow] = {}
        self._cancelled: set[int] = set()
        self._closed: set[int] = set()
        # Whether any unit did what may force a cut later; most segments never do.
        self._delicate = False
        self._letters: dict[tuple[Name, str], tuple[str | None, bytes | None]] = {}
        self._keys: Iterator[int] | None = None
        self._positions: Iterator[int] | None = None

    def run(self) -> list[Outcome]:
        """Judge and apply units until one needs to know more, and write. Return the outcomes so far."""
        outcomes: list[Outcome] = []
        for (worker, unit), known in zip(self._units, self._facts.known, strict=True):
            if self._delicate and self._needs_more(worker, unit, known):
                break
            refusal = self._refusal(worker, unit, known)
            if refusal is not None and unit.expected_version is not None:
                self._void.add((known.workflow, known.id))
            outcomes.append(refusal or self._apply(worker, unit, known))
        self.changes.write(self._connection)
        return outcomes

    # ---- judging

    def _needs_more(self, worker: int, unit: Unit, known: Known) -> bool:
        """Tell whether earlier units changed what this one depends on, in a way that only the database can tell."""
        inbox = self._facts.inbox_has_rows
        looks = unit.direct or unit.requires is not None
        if (known.accepted and (unit.cancels or unit.cancel_all)) or (known.consumed and looks):
            return True
        if inbox and known.cancelled and (looks or unit.takes is not None):
            return True
        if known.asked and unit.tasks is not None:
            return True
        if unit.accepts and any(row.claimed and self._has_other_inputs(worker, row) for row in unit.accepts):
            return True
        outputs = (*unit.settles, *(retry.output for retry in unit.retries))
        return any(
            output.instance in self._closed
            or (output.instance in self._cancelled and (output.instance, output.version) in self._facts.timers)
            for output in outputs
        )

    def _has_other_inputs(self, worker: int, row: InputRow) -> bool:
        """Tell whether it is unknown by now who holds the inputs that an accepted one comes behind."""
        receiver = self._facts.instances[row.workflow, row.instance]
        fewer = receiver.consumed or receiver.cancelled
        return receiver.released or (fewer and self._others_wait(worker, receiver))

    def _others_wait(self, worker: int, known: Known) -> bool:
        """Tell whether inputs that this worker does not hold wait for an instance."""
        return (known.workflow, known.id, worker) in self._facts.others or not known.holders <= {worker}

    def _refusal(self, worker: int, unit: Unit, known: Known) -> Conflict | Duplicate | Refused | Unmet | None:
        if unit.tasks is not None and unit.tasks.answer is not None:
            answer = unit.tasks.answer
            task = self._facts.tasks.get((known.workflow, known.id, answer.version))
            if refused := refusal(task, answer.actor, answer.roles):
                return refused
        if (unit.dedupe is not None or unit.accepts) and (duplicate := self._duplicate(unit)):
            return duplicate
        requires = unit.requires
        if requires and (unmet := requires.unmet(position=known.version, waiting=self._inputs_wait(known))):
            return unmet
        for output in unit.settles:
            if not self._owns(worker, (output.instance, output.version)):
                return Conflict("lost")
        if unit.retries:
            for retry in unit.retries:
                if not self._owns(worker, (retry.output.instance, retry.output.version)):
                    return Conflict("lost")
        takes = unit.takes
        if takes is not None:
            spot = (takes, known.workflow, known.id)
            if spot in self._facts.not_waiting or takes in self.changes.consumed:
                return Conflict("inbox")
        if unit.expected_version is not None and (
            unit.expected_version != known.version or (self._void and (known.workflow, known.id) in self._void)
        ):
            return Conflict("version")
        if unit.expected_version == 0 and unit.key is None and known.key:
            return Conflict("version")
        if takes is not None and not self._is_next((known.workflow, known.id), takes):
            return Conflict("inbox")
        if unit.direct and (known.accepted or self._facts.queued) and self._inputs_wait(known):
            return Conflict("inbox")
        return unit.tasks and barred(self._facts.open_tasks.get((known.workflow, known.id), ()), unit.tasks)

    def _inputs_wait(self, known: Known) -> bool:
        """Tell whether inputs wait for the instance of a unit that asks for that."""
        return known.accepted or (known.workflow, known.id) in self._facts.queued

    def _is_next(self, name: Name, position: int) -> bool:
        """Tell whether no input waits before one that is to be taken."""
        turns = self._facts.turns[name]
        while turns[0] in self.changes.consumed:
            turns.popleft()
        return turns[0] == position and self._facts.left.get(name, position) >= position

    def _duplicate(self, unit: Unit) -> Duplicate | None:
        if unit.dedupe is not None:
            known = self._message((unit.workflow, unit.instance), unit.dedupe, besides=unit.consumes)
            if known is None and unit.dead_letters:
                known = self._letter(unit)
            if known is None:
                return None
            # It stands in the step, or, where there was none, in what is accepted or buried instead.
            carriers = (*unit.events, *unit.accepts, *unit.dead_letters)
            own = next((carrier for carrier in carriers if carrier.message_id == unit.dedupe), None)
            return Duplicate(same=own is not None and same_message(known, (own.type, own.body)))
        row = unit.accepts[0]
        known = self._message((row.workflow, row.instance), row.message_id)
        if known is None or unit != bare_acceptance(unit):
            return None
        return Duplicate(same=same_message(known, (row.type, row.body)))

    def _letter(self, unit: Unit) -> tuple[str | None, bytes | None] | None:
        """Return type and body of the dead letter that a unit would write again: what nobody takes is kept once."""
        for letter in unit.dead_letters:
            if letter.message_id == unit.dedupe and letter.output is None:
                spot = ((letter.workflow, letter.instance), letter.message_id)
                kept = (m for id, m in self._facts.letters.get(spot, ()) if id not in self.changes.discarded)
                return self._letters.get(spot) or next(kept, None)
        return None

    def _message(
        self, name: Name, message_id: str, besides: int | None = None
    ) -> tuple[str | None, bytes | None] | None:
        """Return type and body of the input with this id, stepped or waiting; not counting the position `besides`."""
        spot = (name, message_id)
        if new := self._taken.get(spot) or self._accepted.get(spot):
            return new.type, new.body
        if old := self._facts.taken.get(spot):
            return old
        waiting = self._facts.waiting.get(spot)
        if waiting is None or waiting[0] == besides or waiting[0] in self.changes.consumed:
            return None
        _, timer_key, type, body = waiting
        cancelled = timer_key is not None and timer_key in self._facts.instances[name].cancelled_timers
        return None if cancelled else (type, body)

    def _owns(self, worker: int, spot: Spot) -> bool:
        born = self.changes.outputs.get(spot)
        if born is not None:
            return born[OWNER] == worker
        if spot in self.changes.settled or spot in self.changes.retried:
            return False
        return (*spot, worker) not in self._facts.not_owned

    # ---- applying

    def _apply(self, worker: int, unit: Unit, known: Known) -> Committed:
        changes = self.changes
        owned = self._claimable(worker, unit) if unit.accepts else NOBODYS
        born = [changes.settle((output.instance, output.version)) for output in unit.settles]
        if unit.consumes is not None:
            changes.consumed.add(unit.consumes)
            known.consumed = self._delicate = True
        if unit.releases:
            changes.release(unit.releases, worker)
            known.released = self._delicate = True
        changes.attempts += unit.attempts
        for retry in unit.retries:
            spot = (retry.output.instance, retry.output.version)
            changes.retry(retry, self._facts.outputs.get(spot, ()), damaged=spot in self._facts.damaged)
        if unit.cancels or unit.cancel_all:
            self._cancel(unit, known)
        if unit.expected_version is not None:
            self._move(worker, unit, known)
        if unit.tasks is not None and unit.tasks.changes:
            changes.tasks.add(known.key, unit.tasks)
            known.asked = self._delicate = True
        unclaimed: list[int] = []
        positions = tuple([self._accept(worker, row, owned, unclaimed) for row in unit.accepts]) if unit.accepts else ()
        if unit.dead_letters:
            self._bury(unit, born)
        if unit.discards:
            changes.discard(unit.discards)
        if unit.handles:
            changes.handle(unit)
        for result in unit.remembers:
            changes.remember(result)
        return Committed(0 if unit.expected_version is None else known.key, positions, tuple(unclaimed))

    def _bury(self, unit: Unit, born: list[tuple[Any, ...] | None]) -> None:
        """Keep dead letters; those of outputs that are settled here with what the outbox says of them."""
        rows = {
            output: self._facts.outputs.get((output.instance, output.version))
            if new is None
            else (new[2], new[3], new[5], new[6])
            for output, new in zip(unit.settles, born, strict=True)
        }
        for letter in unit.dead_letters:
            self.changes.bury(letter, rows.get(letter.output) if letter.output else None)
            if letter.output is None:
                self._letters[(letter.workflow, letter.instance), letter.message_id] = (letter.type, letter.body)

    def _cancel(self, unit: Unit, known: Known) -> None:
        self.changes.cancel(known, unit.cancels, unit.cancel_all)
        known.cancelled = self._delicate = True
        if unit.cancel_all in ("timers", "forward"):
            known.cancelled_timers = Everything()
        elif not isinstance(known.cancelled_timers, Everything):
            known.cancelled_timers |= frozenset(unit.cancels)
        self._cancelled.add(known.key)
        if unit.cancel_all:
            self._closed.add(known.key)

    def _move(self, worker: int, unit: Unit, known: Known) -> None:
        """Append events, set the instance's row and record outputs."""
        changes = self.changes
        if not known.key:
            known.key = self._new_key()
            known.definition_version = unit.definition_version
            known.context = unit.context or b"{}"
            changes.begun.append(known)
        elif not known.moved:
            changes.moved.append(known)
        if not known.moved:
            known.moved = True
            known.since = known.version
        self._append(unit, known)
        known.status, known.state, known.error = unit.status, unit.state, unit.error
        if unit.renews:
            known.definition_version, known.context = unit.definition_version, unit.context or b"{}"
            changes.renewed.add(known)
        for output in unit.outputs:
            owner = worker if output.claimed and worker in self._facts.workers else None
            changes.output(known.key, output, owner)
        if unit.snapshot is not None:
            changes.keep(known.key, unit.snapshot)
        if unit.attributes is not None:
            changes.attributes[known.key] = unit.attributes
        if unit.trims and unit.expected_version:
            changes.trim(known.key, unit)
        if self._facts.inbox_has_rows and unit.status != "suspended" and not unit.direct:
            changes.news = True  # resumed, or the next input is free now; a direct one has nothing behind it

    def _append(self, unit: Unit, known: Known) -> None:
        key, version, rows = known.key, known.version, self.changes.events
        for event in unit.events:
            version += 1
            if event.version != version:
                raise ValueError(f"the event for version {version} of {known.workflow}/{known.id} says {event.version}")
            rows += event_values(key, event)
            if event.message_id is not None:
                self._taken[(unit.workflow, unit.instance), event.message_id] = event
            if event.context is not None:
                known.context_version = version
        known.version = version

    def _claimable(self, worker: int, unit: Unit) -> set[Name]:
        """Return for which instances a unit's inputs are born claimed: not behind what others hold, or nobody."""
        names = {(row.workflow, row.instance) for row in unit.accepts if row.claimed and not unit.releases}
        return {name for name in names if not self._others_wait(worker, self._facts.instances[name])}

    def _accept(self, worker: int, row: InputRow, owned: AbstractSet[Name], unclaimed: list[int]) -> int:
        name = (row.workflow, row.instance)
        if self._message(name, row.message_id) is not None:
            return 0
        position = self._new_position()
        receiver = self._facts.instances[name]
        owner = None
        if row.claimed and worker in self._facts.workers and name in owned:
            owner = worker
        elif row.claimed:
            unclaimed.append(position)
        self.changes.accept(position, row, owner)
        self._accepted[name, row.message_id] = row
        receiver.holders |= {owner}
        receiver.accepted = self._delicate = True
        return position

    def _new_key(self) -> int:
        if self._keys is None:
            self._keys = count(1 + scalar(self._connection, "last_instance"))
        return next(self._keys)

    def _new_position(self) -> int:
        if self._positions is None:
            self._positions = count(1 + scalar(self._connection, "last_number", "inbox"))
        return next(self._positions)
