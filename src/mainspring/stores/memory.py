"""The store port in dicts and lists: what each verb means, and a store for tests and for work that may be forgotten.

A batch needs no rollback here: `_refusal` looks at a unit before `_apply` changes anything, and nothing awaits between.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from msgspec.structs import replace

from mainspring.port.attempts import Attempt
from mainspring.port.attributes import AttributeRow
from mainspring.port.clock import Clock
from mainspring.port.digests import same_message
from mainspring.port.leaving import NOTHING, Leaves, Waiting
from mainspring.port.lending import bare_acceptance
from mainspring.port.outlines import Outline, OutlineSpot
from mainspring.port.preconditions import Unmet
from mainspring.port.purging import Purgeable, PurgeCursor, Purged, PurgePage
from mainspring.port.records import (
    Cause,
    Claims,
    Committed,
    Conflict,
    DeadLetter,
    Duplicate,
    EventRow,
    InputRow,
    InstanceFilter,
    InstanceRow,
    Loaded,
    Outcome,
    OutputClaim,
    OutputKey,
    Ref,
    Remembered,
    Stats,
    Unit,
)
from mainspring.port.searching import AttributeName, Found
from mainspring.port.store import Tally
from mainspring.port.suspects import Alone, Suspect
from mainspring.port.tasks import Refused
from mainspring.stores import memory_tables
from mainspring.stores.memory_lending import NothingToLend
from mainspring.stores.memory_projections import ProjectionTables
from mainspring.stores.memory_tables import ASIDE, Input, Instance, Output, cancels, matches, outline, place, urgency
from mainspring.stores.memory_tasks import TaskVerbs
from mainspring.stores.memory_workers import WorkerTables


class MemoryStore(WorkerTables, TaskVerbs, ProjectionTables, NothingToLend):
    """A store that forgets everything with its process.

    >>> from mainspring.testing.clock import VirtualClock
    >>> store = MemoryStore(VirtualClock())
    >>> unit = Unit("W", "i", expected_version=0, events=(EventRow(1, "Began", 0),))
    >>> asyncio.run(store.commit(0, [unit, unit]))
    [Committed(key=1, positions=(), unclaimed=()), Conflict(reason='version')]
    """

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._instances: dict[Ref, Instance] = {}
        self._begun: list[Ref] = []
        self._feed: list[tuple[int, Ref, EventRow]] = []
        # A dead letter keeps the outbox row that it was, so that it can become one again.
        self._dead: dict[int, tuple[DeadLetter, Output | None]] = {}
        self._remembered: dict[str, Remembered] = {}
        self._inputs_accepted = self._letters_died = self._events_fed = 0

    async def open(self) -> None:
        self._news = asyncio.Event()  # it belongs to one event loop, and a test may open the store in several

    async def close(self) -> None: ...

    def now_us(self) -> int:
        return self._clock.now_us()

    # ---- commit

    async def commit(self, worker: int, units: Sequence[Unit]) -> list[Outcome]:
        outcomes: list[Outcome] = []
        void: set[Ref] = set()
        for unit in units:
            refusal = self._refusal(worker, unit, void)
            if refusal is not None and unit.expected_version is not None:
                # Whatever comes behind it was built on it, even if it happens to expect the right version.
                void.add(Ref(unit.workflow, unit.instance))
            outcomes.append(refusal or self._apply(worker, unit))
        return outcomes

    def _refusal(self, worker: int, unit: Unit, void: set[Ref]) -> Conflict | Duplicate | Refused | Unmet | None:
        instance = self._at(Ref(unit.workflow, unit.instance))
        if refused := self._tasks.refusal(unit):
            return refused
        if duplicate := self._duplicate(instance, unit):
            return duplicate
        requires = unit.requires
        if requires and (unmet := requires.unmet(position=instance.version, waiting=bool(instance.inbox))):
            return unmet
        for key in (*unit.settles, *(retry.output for retry in unit.retries)):
            if key not in self._outbox or self._outbox[key].owner != worker:
                return Conflict("lost")
        if unit.takes is not None and unit.takes not in instance.inbox:
            return Conflict("inbox")
        if unit.expected_version is not None and (
            unit.expected_version != instance.version or Ref(unit.workflow, unit.instance) in void
        ):
            return Conflict("version")
        if unit.expected_version == 0 and unit.key is None and instance.row is not None:
            return Conflict("version")
        if unit.direct and instance.inbox:
            return Conflict("inbox")
        if unit.takes is not None and unit.takes != next(iter(instance.inbox)):
            return Conflict("inbox")
        return self._tasks.barred(unit)

    def _duplicate(self, instance: Instance, unit: Unit) -> Duplicate | None:
        known = own = None
        if unit.dedupe is not None:
            known = instance.known(unit.dedupe, besides=unit.consumes) or self._buried(unit)
            # It stands in the step, or, where there was none, in what is accepted or buried instead.
            carriers = (*unit.events, *unit.accepts, *unit.dead_letters)
            own = next((carrier for carrier in carriers if carrier.message_id == unit.dedupe), None)
        elif unit.accepts and unit == bare_acceptance(unit):
            own = unit.accepts[0]
            known = self._at(Ref(own.workflow, own.instance)).known(own.message_id)
        if known is None:
            return None
        return Duplicate(same=own is not None and same_message((own.type, own.body), (known.type, known.body)))

    def _buried(self, unit: Unit) -> DeadLetter | None:
        """Return the dead letter that a unit would write again: a message that nobody takes is kept once."""
        pairs = ((own, letter) for own in unit.dead_letters for letter, _ in self._dead.values())
        return next((old for own, old in pairs if own.message_id == unit.dedupe and place(old) == place(own)), None)

    def _apply(self, worker: int, unit: Unit) -> Committed:
        ref = Ref(unit.workflow, unit.instance)
        owned = self._claimable(worker, unit)
        settled = self._take_away(worker, unit, ref)
        # Only now: a step that cancels a timer and schedules it anew must keep the new one.
        key = self._move(worker, unit, ref) if unit.expected_version is not None else 0
        row = self._at(ref).row
        self._tasks.apply(unit, row.key if row else 0, row.context if row else b"{}", self.now_us())
        positions = tuple(self._accept(worker, row, owned) for row in unit.accepts)
        accepted = [(row, position) for row, position in zip(unit.accepts, positions, strict=True) if position]
        unclaimed = tuple(at for row, at in accepted if row.claimed and self._inbox[at].owner is None)
        for letter in unit.dead_letters:
            self._letters_died += 1
            output = settled.get(letter.output) if letter.output else None
            self._dead[self._letters_died] = (replace(letter, id=self._letters_died), output)
        self._remembered |= {result.key: result for result in unit.remembers}
        if unit.trims:
            # Last, for it is what is left in the outbox and among the dead letters that counts.
            self._at(ref).trim(unit, self._pinned(ref, self._at(ref)))
        return Committed(key, positions, unclaimed)

    def _take_away(self, worker: int, unit: Unit, ref: Ref) -> dict[OutputKey, Output]:
        """Remove or give back what the unit is done with, and return the outputs that it settles."""
        instance = self._at(ref)
        if unit.consumes is not None:
            self._drop_input(instance, unit.consumes)
        for position in unit.releases:
            if (waiting := instance.inbox.get(position)) and waiting.owner == worker:
                waiting.give_back()
                self._news.set()
        instance.note(unit.attempts)
        for retry in unit.retries:
            output = self._outbox[retry.output]
            output.lost = 0 if retry.attempts > output.attempts else output.lost
            output.give_back()
            output.attempts, output.error = retry.attempts, retry.error
            output.due_us = retry.due_us(self.now_us())
            if not retry.after_us:
                self._news.set()
        settled = {key: self._drop_output(key) for key in set(unit.settles)}
        for key, output in list(instance.outbox.items()):
            if cancels(unit, output):
                self._drop_output(key)
        for position, waiting in list(instance.inbox.items()):
            timer = waiting.row.timer_key
            if timer is not None and (timer in unit.cancels or unit.cancel_all in ("timers", "forward")):
                self._drop_input(instance, position)
        for id in (*unit.discards, *memory_tables.handled(unit, self._dead)):
            self._dead.pop(id, None)
        return settled

    def _move(self, worker: int, unit: Unit, ref: Ref) -> int:
        """Append the unit's events, set the instance's row, and record its outputs. Return the instance's key."""
        instance = self._instances.setdefault(ref, Instance())
        now_us = self.now_us()
        if instance.row is None:
            self._begun.append(ref)
            began = (len(self._begun), ref.workflow, ref.id, 0, unit.status, unit.state, unit.error)
            instance.row = InstanceRow(*began, unit.definition_version, unit.context or b"{}", now_us, now_us)
        for event in unit.events:
            instance.events[event.version] = event
            self._events_fed += 1
            self._feed.append((self._events_fed, ref, event))
            if event.message_id is not None:
                instance.taken[event.message_id] = event
        if instance.suspended and unit.status != "suspended":
            for waiting in instance.inbox.values():
                waiting.lost, waiting.owner = 0, None if waiting.free else waiting.owner
        told: dict[str, Any] = {"status": unit.status, "state": unit.state, "error": unit.error}
        if unit.renews:
            told |= {"definition_version": unit.definition_version, "context": unit.context or b"{}"}
            self._tasks.renew(ref, told["context"])
        instance.takes(
            replace(instance.row, version=instance.row.version + len(unit.events), updated_us=now_us, **told)
        )
        instance.snapshot = unit.snapshot or instance.snapshot
        if unit.attributes is not None:
            instance.attributes = unit.attributes
        for output in unit.outputs:
            due_us = now_us + output.after_us if output.at_us is None else output.at_us
            owner = self._owner(worker, claimed=output.claimed)
            self._put_output(OutputKey(instance.row.key, output.version), Output(ref, output, due_us, owner=owner))
        if instance.inbox and not instance.suspended:
            self._news.set()  # resumed, or the next input is free now
        return instance.row.key

    def _pinned(self, ref: Ref, instance: Instance) -> set[int]:
        """Return the versions of the outputs of an instance that are not carried out, or are dead letters."""
        letters = memory_tables.letters_of(self._dead, ref)
        pinned = {key.version for key in instance.outbox}
        return pinned | {letter.output.version for letter in letters if letter.output is not None}

    def _claimable(self, worker: int, unit: Unit) -> set[Ref]:
        """Return for which instances a unit's inputs are born claimed: not behind what others hold, or nobody."""
        refs = {Ref(row.workflow, row.instance) for row in unit.accepts if row.claimed and not unit.releases}
        return {ref for ref in refs if all(waiting.owner == worker for waiting in self._at(ref).inbox.values())}

    def _accept(self, worker: int, row: InputRow, owned: set[Ref]) -> int:
        ref = Ref(row.workflow, row.instance)
        instance = self._instances.setdefault(ref, Instance())
        if instance.known(row.message_id):
            return 0
        self._inputs_accepted += 1
        position = self._inputs_accepted
        owner = self._owner(worker, claimed=row.claimed and ref in owned)
        self._inbox[position] = instance.inbox[position] = Input(replace(row, position=position), owner=owner)
        return position

    def _owner(self, worker: int, *, claimed: bool) -> int | None:
        """Return who holds new work: never a worker that was relieved, for nobody would take it away again."""
        if claimed and worker in self._workers:
            return worker
        self._news.set()
        return None

    def _put_output(self, key: OutputKey, output: Output) -> None:
        self._outbox[key] = self._instances[output.ref].outbox[key] = output

    def _drop_output(self, key: OutputKey) -> Output:
        output = self._outbox.pop(key)
        return self._instances[output.ref].outbox.pop(key)

    def _drop_input(self, instance: Instance, position: int) -> None:
        del self._inbox[position], instance.inbox[position]

    # ---- work

    async def claim(
        self, worker: int, destinations: Sequence[str], workflows: Sequence[str], limit: int, leaves: Leaves = NOTHING
    ) -> Claims:
        if worker not in self._workers:
            return Claims([], [], None)
        now_us = self.now_us()
        free = [(k, o) for k, o in self._outbox.items() if o.owner is None and o.row.destination in destinations]
        due = sorted((item for item in free if item[1].due_us <= now_us), key=urgency)[:limit]
        inputs = list(islice(self._steppable(worker, workflows, leaves), limit))
        for held in (*(output for _, output in due), *inputs):
            held.owner = worker
        next_due_us = min((output.due_us for _, output in free if output.owner is None), default=None)
        return Claims([self._claimed(*item) for item in due], [i.row for i in inputs], next_due_us)

    async def claim_alone(self, worker: int, suspect: Suspect | None) -> Alone | None:
        if worker not in self._workers:
            return None
        self._alone.pop(worker, None)
        if suspect is None:
            return None
        instance = self._at(Ref(suspect.workflow, suspect.instance))
        if suspect.position is not None:
            waiting = next(iter(instance.inbox.values()), None)
            if waiting is None or waiting.row.position != suspect.position or instance.suspended:
                return None
            return self._take_alone(worker, suspect.position, waiting, Alone(waiting.lost, input=waiting.row))
        found = [item for item in instance.outbox.items() if item[0].version == suspect.version]
        return self._take_alone(worker, *found[0], Alone(found[0][1].lost, self._claimed(*found[0]))) if found else None

    def _take_alone(self, worker: int, key: OutputKey | int, work: Input | Output, taken: Alone) -> Alone | None:
        if work.owner != ASIDE:
            return None
        work.owner, self._alone[worker] = worker, key
        return taken

    def _type(self, output: OutputKey) -> str:
        return self._at(self._outbox[output].ref).events[output.version].type or ""

    def _parked(self, waiting: Input) -> bool:
        return waiting.free and self._at(Ref(waiting.row.workflow, waiting.row.instance)).suspended

    def _steppable(self, worker: int, workflows: Sequence[str], leaves: Leaves) -> Iterator[Input]:
        blocked: set[Ref] = set(leaves.instances)
        for waiting in self._inbox.values():
            ref = Ref(waiting.row.workflow, waiting.row.instance)
            strange = (waiting.row.type, waiting.row.type_version) in leaves.types
            if waiting.owner not in (None, worker) or strange:
                blocked.add(ref)
            free = waiting.owner is None and ref not in blocked
            if free and ref.workflow in workflows and not self._at(ref).suspended:
                yield waiting

    def _claimed(self, key: OutputKey, output: Output) -> OutputClaim:
        instance, row = self._at(output.ref), output.row
        event = instance.events[key.version]
        cause = instance.events[event.cause] if event.cause is not None else None
        before = (e.context for v in range(key.version, 0, -1) if (e := instance.events.get(v)))
        context = next((c for c in before if c is not None), instance.row.context if instance.row else b"{}")
        return OutputClaim(
            key,
            output.ref.workflow,
            output.ref.id,
            row.kind,
            row.destination,
            output.attempts,
            output.due_us,
            row.priority,
            event.type or "",
            event.type_version,
            event.body or b"",
            event.detail,
            context,
            Cause(cause.message_id, cause.kind, cause.cause) if cause is not None else None,
            output.error,
        )

    async def wait_for_work(self, timeout_seconds: float) -> None:
        news = asyncio.create_task(self._news.wait())
        timeout = asyncio.create_task(self._clock.sleep(timeout_seconds))
        try:
            await asyncio.wait((news, timeout), return_when=asyncio.FIRST_COMPLETED)
        finally:
            news.cancel()
            timeout.cancel()
        self._news.clear()

    async def restore_output(self, dead_letter: int, expected_version: int | None = None) -> bool:
        letter, output = self._dead.get(dead_letter, (None, None))
        if letter is None or letter.output is None or output is None:
            return False
        if not self._at(output.ref).is_at(expected_version):
            return False
        del self._dead[dead_letter]
        self._put_output(letter.output, Output(output.ref, output.row, self.now_us()))
        self._news.set()
        return True

    # ---- reading

    async def load(self, refs: Sequence[Ref], most: int | None = None) -> list[Loaded | None]:
        return [self._loaded(self._at(ref), most) for ref in refs]

    def _loaded(self, instance: Instance, most: int | None) -> Loaded | None:
        if instance.row is None:
            return None
        after = instance.snapshot.version if instance.snapshot else 0
        return Loaded(instance.row, instance.snapshot, instance.behind(after, most))

    async def remembered(self, key: str) -> Remembered | None:
        result = self._remembered.get(key)
        return result if result and result.expires_us > self.now_us() else None

    async def instances(self, where: InstanceFilter, limit: int, after: int = 0) -> list[InstanceRow]:
        begun = (self._at(ref) for ref in self._begun[after:])
        return list(islice((i.row for i in begun if i.row and matches(where, i.row, i.attributes)), limit))

    async def search(self, where: InstanceFilter, limit: int, after: int | None = None, newest: bool = False) -> Found:
        return memory_tables.searched(self._begun, self._at, where, limit, after, newest)

    async def attributes(self, ref: Ref) -> list[AttributeRow]:
        return list(self._at(ref).attributes)

    async def attribute_names(self) -> list[AttributeName]:
        return memory_tables.attribute_names(map(self._at, self._begun))

    async def stream(self, ref: Ref, after: int, limit: int) -> list[EventRow]:
        return self._at(ref).behind(after, limit)

    async def feed(self, after: int, limit: int) -> list[tuple[int, Ref, EventRow]]:
        behind = islice(self._feed, bisect_right(self._feed, after, key=lambda fed: fed[0]), None)
        there = (fed for fed in behind if fed[2].version in (at := self._at(fed[1])).events and at.version >= 0)
        return list(islice(there, limit))

    async def outlines(self, spots: Sequence[OutlineSpot], limit: int) -> list[Outline]:
        wanted = ((key, self._at(self._begun[key - 1]).behind(after)) for key, after in spots)
        return list(islice((outline(key, event) for key, events in wanted for event in events), limit))

    async def inbox(self, ref: Ref, limit: int) -> list[InputRow]:
        return [waiting.row for waiting in islice(self._at(ref).inbox.values(), limit)]

    async def outputs(self, ref: Ref | None, timers: bool, limit: int) -> list[OutputClaim]:
        wanted = [
            (key, output)
            for key, output in self._outbox.items()
            if (output.row.kind == "timer") == timers and ref in (None, output.ref)
        ]
        wanted.sort(key=lambda item: item[1].due_us)
        return [self._claimed(*item) for item in wanted[:limit]]

    async def attempts(self, ref: Ref, limit: int) -> list[Attempt]:
        return sorted(self._at(ref).attempts, key=lambda one: (one.version, one.ended_us, one.number))[:limit]

    async def waiting(self, before_us: int) -> list[Waiting]:
        free = (one.row for one in self._inbox.values() if one.owner is None)
        mine = (row for row in free if not self._at(Ref(row.workflow, row.instance)).suspended)
        return memory_tables.waiting_of(row for row in mine if row.time_us < before_us)

    async def timers(self, limit: int) -> list[OutputClaim]:
        every = await self.outputs(None, timers=True, limit=len(self._outbox))
        return [claim for claim in every if self._outbox[claim.output].owner is None][:limit]

    async def dead_letters(self, limit: int, after: int = 0, ids: Sequence[int] | None = None) -> list[DeadLetter]:
        behind = (one for one, _ in self._dead.values() if one.id > after and (ids is None or one.id in ids))
        return list(islice(behind, limit))

    async def tally(self) -> Tally:
        return memory_tables.tally_of(row for ref in self._begun if (row := self._at(ref).row))

    async def stats(self) -> Stats:
        depths = {"inbox": len(self._inbox), "dead_letters": len(self._dead), "workers": len(self._workers)}
        return memory_tables.stats_of(await self.tally(), self._outbox.values(), self.now_us(), **depths)

    # ---- purging

    async def purgeable(self, workflow: str, before_us: int, limit: int, after: PurgeCursor | None = None) -> PurgePage:
        ends = sorted(
            ((ended_us, row.key), row)
            for ref in self._begun
            if ref.workflow == workflow
            and (row := (instance := self._at(ref)).row)
            and (ended_us := instance.ended_us) is not None
            and ended_us < before_us
            and (after is None or (ended_us, row.key) > after)
        )
        found = [
            Purgeable(row.key, row.workflow, row.id, row.version, ended_us, row.purged_us)
            for (ended_us, _), row in ends[:limit]
            if row.purged_us is not None or (row.updated_us < before_us and self._is_done(Ref(row.workflow, row.id)))
        ]
        return PurgePage(found, ends[limit - 1][0] if len(ends) > limit else None)

    async def purge(self, found: Sequence[Purgeable], events: int) -> Purged:
        tombstones, removed, left = 0, 0, list[int]()
        for one in found:
            ref = Ref(one.workflow, one.id)
            instance = self._at(ref)
            if instance.version == one.version and instance.ended_us is not None and self._is_done(ref):
                instance.bury(self.now_us())
                self._tasks.purge(ref)
                tombstones += 1
            if instance.version < 0:
                count = min(len(instance.events), events - removed)
                for version in list(islice(instance.events, count)):
                    del instance.events[version]
                removed += count
                if instance.events:
                    left.append(one.key)
                else:
                    self._feed = [fed for fed in self._feed if fed[1] != ref]
                    instance.ended_us = None
        return Purged(tombstones, removed, tuple(left))

    def _is_done(self, ref: Ref) -> bool:
        """Tell whether nothing is kept for an instance: no input, no output, no dead letter."""
        instance = self._at(ref)
        return not (instance.inbox or instance.outbox or memory_tables.letters_of(self._dead, ref))

    def _at(self, ref: Ref) -> Instance:
        return self._instances.get(ref) or Instance()
