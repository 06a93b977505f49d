"""The verdict on each unit in turn, over the facts and what earlier units of the batch have changed. Pure.

Nothing here waits and nothing is written: a refused unit leaves no trace, one that passes is in the changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Generic, TypeVar

from mainspring.port.digests import same_message
from mainspring.port.loans import bare_acceptance
from mainspring.port.preconditions import Unmet
from mainspring.port.records import Committed, Conflict, Duplicate, EventRow, InputRow, Outcome, Unit
from mainspring.port.tasks import Refused
from mainspring.stores.commit.changes import Born, Changes
from mainspring.stores.commit.facts import NONE, Facts, Known, Message, Name, Spot
from mainspring.stores.commit.questions import Questions

K = TypeVar("K", bound=Known)


class Judge(Generic[K]):
    """Decides a batch. `void` are the instances of which a unit was refused: what follows was built on that one."""

    def __init__(self, questions: Questions[K], facts: Facts, changes: Changes[K], void: set[Name]) -> None:
        self._questions = questions
        self._facts = facts
        self._instances = questions.instances
        self._changes = changes
        self._void = void
        self._taken: dict[tuple[Any, str], EventRow] = {}
        self._cancelled: dict[int, K] = {}
        self._letters: dict[tuple[str, str, str], Message] = {}

    def decide(self) -> list[Outcome]:
        """Return an outcome for each unit."""
        outcomes: list[Outcome] = []
        for (worker, unit), known in zip(self._questions.units, self._questions.known, strict=True):
            refusal = self._refusal(worker, unit, known)
            if refusal is not None and unit.expected_version is not None:
                self._void.add((known.workflow, known.id))
            outcomes.append(refusal or self._apply(worker, unit, known))
        return outcomes

    # ---- judging

    def _refusal(self, worker: int, unit: Unit, known: K) -> Conflict | Duplicate | Refused | Unmet | None:
        if unit.tasks is not None and (refused := self._facts.tasks.refusal(known.key, unit.tasks.answer)):
            return refused
        if (unit.dedupe is not None or unit.accepts) and (duplicate := self._duplicate(unit, known)):
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
        takes = unit.takes if unit.consumes is not None or unit.releases else None
        if takes is not None and not self._waits(known, takes):
            return Conflict("inbox")
        if unit.expected_version is not None and (
            unit.expected_version != known.version or (self._void and (known.workflow, known.id) in self._void)
        ):
            return Conflict("version")
        if unit.expected_version == 0 and unit.key is None and known.key:
            return Conflict("version")  # it has no events, but it is there
        if takes is not None and not self._is_next(known, takes):
            return Conflict("inbox")
        if unit.direct and (known.accepted or self._facts.queued) and self._inputs_wait(known):
            return Conflict("inbox")
        return None if unit.tasks is None else self._facts.tasks.barred(known.key, unit.tasks)

    def _inputs_wait(self, known: K) -> bool:
        """Return True if inputs wait for the instance of a unit that asks for that."""
        return bool(known.accepted) or self._queue_is_left(known)

    def _duplicate(self, unit: Unit, known: K) -> Duplicate | None:
        if unit.dedupe is not None:
            found = self._message(known, unit.dedupe, besides=unit.consumes)
            if found is None and unit.dead_letters:
                found = self._letter(unit)
            if found is None:
                return None
            # It stands in the step, or, where there was none, in what is accepted or buried instead.
            carriers = (*unit.events, *unit.accepts, *unit.dead_letters)
            own = next((carrier for carrier in carriers if carrier.message_id == unit.dedupe), None)
            return Duplicate(same=own is not None and same_message(found, (own.type, own.body)))
        row = unit.accepts[0]
        found = self._message(self._instances[row.workflow, row.instance], row.message_id)
        if found is None or unit != bare_acceptance(unit):
            return None
        return Duplicate(same=same_message(found, (row.type, row.body)))

    def _letter(self, unit: Unit) -> Message | None:
        """Return type and body of the dead letter that a unit would write again: it is kept once."""
        for letter in unit.dead_letters:
            if letter.message_id == unit.dedupe and letter.output is None:
                spot = (letter.workflow, letter.instance, letter.message_id)
                kept = (m for id, m in self._facts.letters.get(spot, ()) if id not in self._changes.discarded)
                return self._letters.get(spot) or next(kept, None)
        return None

    def _message(self, known: K, message_id: str, besides: int | None = None) -> Message | None:
        """Return type and body of the input with this id, stepped or waiting; not counting the position `besides`."""
        spot = (known.name, message_id)
        if self._taken and (new := self._taken.get(spot)):
            return new.type, new.body
        if known.accepted and message_id in known.accepted:
            row = known.accepted[message_id][1]
            return row.type, row.body
        if old := self._facts.taken.get(spot):
            return old
        waiting = self._facts.waiting.get(spot)
        if waiting is None or waiting[0] == besides or waiting[0] in known.consumed:
            return None
        _, timer_key, message = waiting
        return None if known.cancelled_fired(timer_key) else message

    def _owns(self, worker: int, spot: Spot) -> bool:
        changes = self._changes
        born = changes.outputs.get(spot)
        if born is not None:
            return born.owner == worker
        if spot in changes.settled or spot in changes.retried:
            return False
        fact = self._facts.outputs.get(spot)
        if fact is None:
            return True
        if fact.kind is None or fact.owner != worker:
            return False
        known = self._cancelled.get(spot[0])
        if known is None:
            return True
        return fact.key not in known.cancelled_keys and not (fact.kind == "timer" and known.cancelled_timers)

    def _waits(self, known: K, position: int) -> bool:
        """Return True if an input of this instance waits at a position."""
        spot = (position, known.name)
        if spot not in self._facts.consumable or position in known.consumed:
            return False
        return not known.cancelled_fired(self._facts.consumable[spot])

    def _is_next(self, known: K, position: int) -> bool:
        """Return True if no input waits before one that is to be taken."""
        turns, left = self._facts.turns[known.name], self._facts.left.get(known.name, ())
        while turns[0] != position and not self._waits(known, turns[0]):
            turns.popleft()
        return turns[0] == position and not any(
            first < position and not known.cancelled_fired(timer_key) for timer_key, first in left
        )

    def _queue_is_left(self, known: K) -> bool:
        """Return True if inputs wait for an instance, of those that waited before this batch."""
        left = sum(
            count for timer_key, count in self._facts.queued.get(known.name, ()) if not known.cancelled_fired(timer_key)
        )
        taken = (self._facts.consumable[position, known.name] for position in known.consumed)
        return left > sum(not known.cancelled_fired(timer_key) for timer_key in taken)

    # ---- applying

    def _apply(self, worker: int, unit: Unit, known: K) -> Committed:
        changes = self._changes
        # A worker that is not registered any more holds nothing: its claim would never be released.
        owner = worker if worker in self._facts.workers else None
        claimable = self._claimable(worker, unit) if unit.accepts else NONE
        born: Sequence[Born | None] = ()
        if unit.settles:
            born = [changes.settle((output.instance, output.version)) for output in unit.settles]
        if unit.consumes is not None:
            changes.consume(known, unit.consumes)
        if unit.releases:
            changes.release(known, unit.releases, worker)
        if unit.attempts:
            changes.attempts += unit.attempts
        for retry in unit.retries:
            changes.retry(retry)
        if unit.cancels or unit.cancel_all:
            self._cancel(unit, known)
        if unit.expected_version is not None:
            self._move(owner, unit, known)
        if unit.tasks is not None:
            self._facts.tasks.apply(known.key, unit.tasks, changes.now_us)
        unclaimed: list[int] = []
        positions: tuple[int, ...] = ()
        if unit.accepts:
            positions = tuple([self._accept(owner, row, claimable, unclaimed) for row in unit.accepts])
        if unit.dead_letters:
            self._bury(unit, born)
        if unit.discards:
            changes.discarded += unit.discards
        if unit.handles:
            changes.handle(unit)
        for result in unit.remembers:
            changes.results[result.key] = result
        return Committed(0 if unit.expected_version is None else known.key, positions, tuple(unclaimed))

    def _bury(self, unit: Unit, born: Sequence[Any]) -> None:
        """Keep dead letters; those of outputs that are settled here with what the outbox says of them."""
        rows = dict(zip(unit.settles, born, strict=True))
        for letter in unit.dead_letters:
            output = letter.output if letter.output in rows else None
            fact = output and (rows[output] or self._facts.outputs[output.instance, output.version])
            self._changes.dead_letters.append((letter, fact or None))
            if letter.output is None:
                self._letters[letter.workflow, letter.instance, letter.message_id] = (letter.type, letter.body)

    def _cancel(self, unit: Unit, known: K) -> None:
        self._changes.cancel(known, unit.cancels, unit.cancel_all, self._facts.outputs)
        known.cancelled_keys |= frozenset(unit.cancels)
        known.cancelled_timers |= unit.cancel_all in ("timers", "forward")
        if known.key:
            self._cancelled[known.key] = known

    def _move(self, owner: int | None, unit: Unit, known: K) -> None:
        """Append events, set the instance's row and record outputs."""
        changes = self._changes
        if not known.moved:
            known.moved = True
            known.since = known.version
            if known.key:
                changes.moved.append(known)
            else:
                known.key = next(self._facts.keys)
                known.definition_version = unit.definition_version
                known.context = unit.context or b"{}"
                changes.begun.append(known)
        self._append(unit, known)
        known.status, known.state, known.error = unit.status, unit.state, unit.error
        if unit.renews:
            known.definition_version, known.context = unit.definition_version, unit.context or b"{}"
            changes.renewed.append(known)
        for output in unit.outputs:
            changes.record(known.key, output, owner if output.claimed else None)
        if unit.snapshot is not None:
            changes.snapshots[known.key] = unit.snapshot
        if unit.attributes is not None:
            changes.attributes[known.key] = unit.attributes
        if unit.trims and unit.expected_version:
            changes.trim(known.key, unit)

    def _append(self, unit: Unit, known: K) -> None:
        version, rows = known.version, self._changes.events
        for event in unit.events:
            version += 1
            if event.version != version:
                raise ValueError(f"the event for version {version} of {known.workflow}/{known.id} says {event.version}")
            rows.append(event)
            if event.message_id is not None:
                self._taken[known.name, event.message_id] = event
            if event.context is not None:
                known.context_version = version
        if version != known.version:
            self._changes.event_keys += (known.key,) * len(unit.events)
            known.version = version
            known.place = len(rows)

    def _accept(self, owner: int | None, row: InputRow, claimable: AbstractSet[Name], unclaimed: list[int]) -> int:
        known = self._instances[row.workflow, row.instance]
        if self._message(known, row.message_id) is not None:
            return 0
        position = next(self._facts.positions)
        holder = owner if row.claimed and (row.workflow, row.instance) in claimable else None
        if row.claimed and holder is None:
            unclaimed.append(position)
        self._changes.accept(known, position, row, holder)
        return position

    def _claimable(self, worker: int, unit: Unit) -> AbstractSet[Name]:
        """Return for which instances a unit's inputs are born claimed: not behind others' or unclaimed ones."""
        names = {(row.workflow, row.instance) for row in unit.accepts if row.claimed and not unit.releases}
        return {name for name in names if not self._others_wait(worker, self._instances[name])}

    def _others_wait(self, worker: int, known: K) -> bool:
        """Return True if inputs that this worker does not hold wait for an instance."""
        if known.accepted and any(owner != worker for _, _, owner in known.accepted.values()):
            return True
        facts = self._facts
        waiting = facts.others.get((known.name, worker), ())
        left = sum(count for timer_key, count in waiting if not known.cancelled_fired(timer_key))
        for position in {*known.consumed, *known.released}:
            spot = (position, known.name)
            if spot not in facts.consumable or known.cancelled_fired(facts.consumable[spot]):
                continue
            if facts.holders[spot] != worker:
                left -= position in known.consumed
            else:
                left += position not in known.consumed
        return left > 0
