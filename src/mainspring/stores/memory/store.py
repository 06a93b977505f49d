"""The verbs of the port, on tables of dicts and lists.

A batch needs no rollback here: each unit is judged before anything is changed, and nothing awaits in between.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice

from mainspring.port.attempts import Attempt
from mainspring.port.attributes import AttributeRow
from mainspring.port.clock import Clock
from mainspring.port.leaving import NOTHING, Leaves, Waiting
from mainspring.port.outlines import Outline, OutlineSpot
from mainspring.port.purging import Purgeable, PurgeCursor, Purged, PurgePage
from mainspring.port.records import (
    Cause,
    Claims,
    DeadLetter,
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
from mainspring.port.store import Tally, TaskSpot
from mainspring.port.suspects import Alone, Suspect
from mainspring.port.tasks import Hand, Refused, TaskFilter, TaskRow
from mainspring.stores.commit.changes import Changes
from mainspring.stores.commit.facts import Known, Name
from mainspring.stores.commit.judge import Judge
from mainspring.stores.commit.questions import Questions
from mainspring.stores.memory import tables
from mainspring.stores.memory.changes import write
from mainspring.stores.memory.facts import facts_of
from mainspring.stores.memory.lending import NothingToLend
from mainspring.stores.memory.projections import ProjectionTables
from mainspring.stores.memory.tables import ASIDE, Input, Instance, Output, matches, outline, urgency
from mainspring.stores.memory.workers import WorkerTables


class MemoryStore(WorkerTables, ProjectionTables, NothingToLend):
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

    async def open(self) -> None:
        self._news = asyncio.Event()  # it belongs to one event loop, and a test may open the store in several

    async def close(self) -> None: ...

    def now_us(self) -> int:
        return self._clock.now_us()

    # ---- commit

    async def commit(self, worker: int, units: Sequence[Unit]) -> list[Outcome]:
        void: set[Name] = set()
        return [self._commit(worker, unit, void) for unit in units]

    def _commit(self, worker: int, unit: Unit, void: set[Name]) -> Outcome:
        questions = Questions([(worker, unit)], Known)
        facts = facts_of(self._tables, questions)
        changes: Changes[Known] = Changes(self.now_us())
        outcomes = Judge(questions, facts, changes, void).decide()
        write(self._tables, changes, facts)
        if changes.news:
            self._news.set()
        return outcomes[0]

    # ---- work

    async def claim(
        self, worker: int, destinations: Sequence[str], workflows: Sequence[str], limit: int, leaves: Leaves = NOTHING
    ) -> Claims:
        if worker not in self._tables.workers:
            return Claims([], [], None)
        now_us = self.now_us()
        free = [(k, o) for k, o in self._tables.outbox.items() if o.owner is None and o.row.destination in destinations]
        due = sorted((item for item in free if item[1].due_us <= now_us), key=urgency)[:limit]
        inputs = list(islice(self._steppable(worker, workflows, leaves), limit))
        for held in (*(output for _, output in due), *inputs):
            held.owner = worker
        next_due_us = min((output.due_us for _, output in free if output.owner is None), default=None)
        return Claims([self._claimed(*item) for item in due], [i.row for i in inputs], next_due_us)

    async def claim_alone(self, worker: int, suspect: Suspect | None) -> Alone | None:
        if worker not in self._tables.workers:
            return None
        self._tables.alone.pop(worker, None)
        if suspect is None:
            return None
        instance = self._tables.at(Ref(suspect.workflow, suspect.instance))
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
        work.owner, self._tables.alone[worker] = worker, key
        return taken

    def _type(self, output: OutputKey) -> str:
        return self._tables.at(self._tables.outbox[output].ref).events[output.version].type or ""

    def _parked(self, waiting: Input) -> bool:
        return waiting.free and self._tables.at(Ref(waiting.row.workflow, waiting.row.instance)).suspended

    def _steppable(self, worker: int, workflows: Sequence[str], leaves: Leaves) -> Iterator[Input]:
        blocked: set[Ref] = set(leaves.instances)
        for waiting in self._tables.inbox.values():
            ref = Ref(waiting.row.workflow, waiting.row.instance)
            strange = (waiting.row.type, waiting.row.type_version) in leaves.types
            if waiting.owner not in (None, worker) or strange:
                blocked.add(ref)
            free = waiting.owner is None and ref not in blocked
            if free and ref.workflow in workflows and not self._tables.at(ref).suspended:
                yield waiting

    def _claimed(self, key: OutputKey, output: Output) -> OutputClaim:
        instance, row = self._tables.at(output.ref), output.row
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
        letter, output = self._tables.dead.get(dead_letter, (None, None))
        if letter is None or letter.output is None or output is None:
            return False
        if not self._tables.at(output.ref).is_at(expected_version):
            return False
        del self._tables.dead[dead_letter]
        self._tables.put_output(letter.output, Output(output.ref, output.row, self.now_us()))
        self._news.set()
        return True

    # ---- reading

    async def load(self, refs: Sequence[Ref], most: int | None = None) -> list[Loaded | None]:
        return [self._loaded(self._tables.at(ref), most) for ref in refs]

    def _loaded(self, instance: Instance, most: int | None) -> Loaded | None:
        if instance.row is None:
            return None
        after = instance.snapshot.version if instance.snapshot else 0
        return Loaded(instance.row, instance.snapshot, instance.behind(after, most))

    async def remembered(self, key: str) -> Remembered | None:
        result = self._tables.remembered.get(key)
        return result if result and result.expires_us > self.now_us() else None

    async def instances(self, where: InstanceFilter, limit: int, after: int = 0) -> list[InstanceRow]:
        begun = (self._tables.at(ref) for ref in self._tables.begun[after:])
        return list(islice((i.row for i in begun if i.row and matches(where, i.row, i.attributes)), limit))

    async def search(self, where: InstanceFilter, limit: int, after: int | None = None, newest: bool = False) -> Found:
        return tables.searched(self._tables.begun, self._tables.at, where, limit, after, newest)

    async def attributes(self, ref: Ref) -> list[AttributeRow]:
        return list(self._tables.at(ref).attributes)

    async def attribute_names(self) -> list[AttributeName]:
        return tables.attribute_names(map(self._tables.at, self._tables.begun))

    async def stream(self, ref: Ref, after: int, limit: int) -> list[EventRow]:
        return self._tables.at(ref).behind(after, limit)

    async def feed(self, after: int, limit: int) -> list[tuple[int, Ref, EventRow]]:
        behind = islice(self._tables.feed, bisect_right(self._tables.feed, after, key=lambda fed: fed[0]), None)
        there = (fed for fed in behind if fed[2].version in (at := self._tables.at(fed[1])).events and at.version >= 0)
        return list(islice(there, limit))

    async def outlines(self, spots: Sequence[OutlineSpot], limit: int) -> list[Outline]:
        wanted = ((key, self._tables.at(self._tables.begun[key - 1]).behind(after)) for key, after in spots)
        return list(islice((outline(key, event) for key, events in wanted for event in events), limit))

    async def inbox(self, ref: Ref, limit: int) -> list[InputRow]:
        return [waiting.row for waiting in islice(self._tables.at(ref).inbox.values(), limit)]

    async def outputs(self, ref: Ref | None, timers: bool, limit: int) -> list[OutputClaim]:
        wanted = [
            (key, output)
            for key, output in self._tables.outbox.items()
            if (output.row.kind == "timer") == timers and ref in (None, output.ref)
        ]
        wanted.sort(key=lambda item: item[1].due_us)
        return [self._claimed(*item) for item in wanted[:limit]]

    async def attempts(self, ref: Ref, limit: int) -> list[Attempt]:
        return sorted(self._tables.at(ref).attempts, key=lambda one: (one.version, one.ended_us, one.number))[:limit]

    async def waiting(self, before_us: int) -> list[Waiting]:
        free = (one.row for one in self._tables.inbox.values() if one.owner is None)
        mine = (row for row in free if not self._tables.at(Ref(row.workflow, row.instance)).suspended)
        return tables.waiting_of(row for row in mine if row.time_us < before_us)

    async def timers(self, limit: int) -> list[OutputClaim]:
        every = await self.outputs(None, timers=True, limit=len(self._tables.outbox))
        return [claim for claim in every if self._tables.outbox[claim.output].owner is None][:limit]

    async def dead_letters(self, limit: int, after: int = 0, ids: Sequence[int] | None = None) -> list[DeadLetter]:
        behind = (one for one, _ in self._tables.dead.values() if one.id > after and (ids is None or one.id in ids))
        return list(islice(behind, limit))

    async def tally(self) -> Tally:
        return tables.tally_of(row for ref in self._tables.begun if (row := self._tables.at(ref).row))

    async def stats(self) -> Stats:
        has = self._tables
        depths = {"inbox": len(has.inbox), "dead_letters": len(has.dead), "workers": len(has.workers)}
        return tables.stats_of(await self.tally(), has.outbox.values(), self.now_us(), **depths)

    # ---- tasks

    async def tasks(self, where: TaskFilter, limit: int, after: TaskSpot | None = None) -> list[TaskRow]:
        return self._tables.tasks.list(where, limit, after)

    async def task(self, ref: Ref, version: int) -> TaskRow | None:
        return self._tables.tasks.get(ref, version)

    async def hand(self, ref: Ref, version: int, hand: Hand) -> TaskRow | Refused:
        return self._tables.tasks.hand(ref, version, hand, self.now_us())

    async def pick(self, role: str, actor: str, limit: int) -> list[TaskRow]:
        return self._tables.tasks.pick(role, actor, limit, self.now_us())

    # ---- purging

    async def purgeable(self, workflow: str, before_us: int, limit: int, after: PurgeCursor | None = None) -> PurgePage:
        ends = sorted(
            ((ended_us, row.key), row)
            for ref in self._tables.begun
            if ref.workflow == workflow
            and (row := (instance := self._tables.at(ref)).row)
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
            instance = self._tables.at(ref)
            if instance.version == one.version and instance.ended_us is not None and self._is_done(ref):
                instance.bury(self.now_us())
                self._tables.tasks.purge(ref)
                tombstones += 1
            if instance.version < 0:
                count = min(len(instance.events), events - removed)
                for version in list(islice(instance.events, count)):
                    del instance.events[version]
                removed += count
                if instance.events:
                    left.append(one.key)
                else:
                    self._tables.feed = [fed for fed in self._tables.feed if fed[1] != ref]
                    instance.ended_us = None
        return Purged(tombstones, removed, tuple(left))

    def _is_done(self, ref: Ref) -> bool:
        """Tell whether nothing is kept for an instance: no input, no output, no dead letter."""
        instance = self._tables.at(ref)
        return not (instance.inbox or instance.outbox or self._tables.letters_of(ref))
