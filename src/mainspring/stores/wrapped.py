"""A store around another: for those that change what some verbs take or return."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mainspring.port.attempts import Attempt
from mainspring.port.attributes import AttributeRow
from mainspring.port.loans import Loan
from mainspring.port.projections import Advance, Behind, Checkpoint, Document
from mainspring.port.purges import Purgeable, PurgeCursor, Purged, PurgePage
from mainspring.port.records import (
    NO_LEAVES,
    Claims,
    DeadLetter,
    EventRow,
    InputRow,
    InstanceFilter,
    InstanceRow,
    Leaves,
    Loaded,
    Outcome,
    Outline,
    OutlineSpot,
    OutputClaim,
    OutputKey,
    Ref,
    Relayed,
    Remembered,
    Stats,
    Tally,
    Unit,
    Waiting,
)
from mainspring.port.searches import AttributeName, Found
from mainspring.port.store import Store
from mainspring.port.suspects import Alone, Suspect
from mainspring.port.tasks import Hand, Refused, TaskFilter, TaskRow, TaskSpot
from mainspring.port.workers import WorkerRow


class WrappedStore:
    """Hands every verb on to its store. Written out, so that a verb that is new is a choice for all that wrap one."""

    def __init__(self, store: Store) -> None:
        self._store = store
        # It is asked several times a step: without a call of its own between.
        self.now_us = store.now_us
        self.era: Callable[[], int] | None = store.era

    def __str__(self) -> str:
        return str(self._store)

    # ---- work

    async def commit(self, worker: int, units: Sequence[Unit]) -> list[Outcome]:
        return await self._store.commit(worker, units)

    async def claim(
        self, worker: int, destinations: Sequence[str], workflows: Sequence[str], limit: int, leaves: Leaves = NO_LEAVES
    ) -> Claims:
        return await self._store.claim(worker, destinations, workflows, limit, leaves)

    async def claim_alone(self, worker: int, suspect: Suspect | None) -> Alone | None:
        return await self._store.claim_alone(worker, suspect)

    async def relay(self, limit: int) -> Relayed:
        return await self._store.relay(limit)

    async def restore_output(self, dead_letter: int, expected_version: int | None = None) -> bool:
        return await self._store.restore_output(dead_letter, expected_version)

    async def wait_for_work(self, timeout_seconds: float) -> None:
        await self._store.wait_for_work(timeout_seconds)

    @property
    def lends(self) -> bool:
        return self._store.lends

    async def lend(self, worker: int, limit_seconds: float) -> Loan:
        return await self._store.lend(worker, limit_seconds)

    # ---- workers

    async def register_worker(self, name: str, lease_us: int, knows: str = "") -> int:
        return await self._store.register_worker(name, lease_us, knows)

    async def heartbeat(self, worker: int, standing: str = "") -> bool:
        return await self._store.heartbeat(worker, standing)

    async def release_worker(self, worker: int) -> None:
        await self._store.release_worker(worker)

    async def relieve(self) -> int:
        return await self._store.relieve()

    # ---- streams

    async def load(self, refs: Sequence[Ref], most: int | None = None) -> list[Loaded | None]:
        return await self._store.load(refs, most)

    async def stream(self, ref: Ref, after: int, limit: int) -> list[EventRow]:
        return await self._store.stream(ref, after, limit)

    async def feed(self, after: int, limit: int) -> list[tuple[int, Ref, EventRow]]:
        return await self._store.feed(after, limit)

    async def outlines(self, spots: Sequence[OutlineSpot], limit: int) -> list[Outline]:
        return await self._store.outlines(spots, limit)

    async def messages(self, ref: Ref, message_id: str) -> list[InputRow | EventRow | DeadLetter]:
        return await self._store.messages(ref, message_id)

    async def remembered(self, key: str) -> Remembered | None:
        return await self._store.remembered(key)

    # ---- instances

    async def instances(self, where: InstanceFilter, limit: int, after: int = 0) -> list[InstanceRow]:
        return await self._store.instances(where, limit, after)

    async def search(self, where: InstanceFilter, limit: int, after: int | None = None, newest: bool = False) -> Found:
        return await self._store.search(where, limit, after, newest)

    async def attributes(self, ref: Ref) -> list[AttributeRow]:
        return await self._store.attributes(ref)

    async def attribute_names(self) -> list[AttributeName]:
        return await self._store.attribute_names()

    async def tally(self) -> Tally:
        return await self._store.tally()

    # ---- backlog

    async def inbox(self, ref: Ref, limit: int) -> list[InputRow]:
        return await self._store.inbox(ref, limit)

    async def outputs(self, ref: Ref | None, timers: bool, limit: int) -> list[OutputClaim]:
        return await self._store.outputs(ref, timers, limit)

    async def timers(self, limit: int) -> list[OutputClaim]:
        return await self._store.timers(limit)

    async def attempts(self, ref: Ref, limit: int) -> list[Attempt]:
        return await self._store.attempts(ref, limit)

    async def waiting(self, before_us: int) -> list[Waiting]:
        return await self._store.waiting(before_us)

    async def dead_letters(self, limit: int, after: int = 0, ids: Sequence[int] | None = None) -> list[DeadLetter]:
        return await self._store.dead_letters(limit, after, ids)

    async def suspects(self, limit: int) -> list[Suspect]:
        return await self._store.suspects(limit)

    async def workers(self) -> list[WorkerRow]:
        return await self._store.workers()

    async def holds(self, worker: int) -> list[OutputKey]:
        return await self._store.holds(worker)

    async def holds_inputs(self, worker: int) -> list[tuple[Ref, int]]:
        return await self._store.holds_inputs(worker)

    async def stats(self) -> Stats:
        return await self._store.stats()

    # ---- tasks

    async def tasks(self, where: TaskFilter, limit: int, after: TaskSpot | None = None) -> list[TaskRow]:
        return await self._store.tasks(where, limit, after)

    async def task(self, ref: Ref, version: int) -> TaskRow | None:
        return await self._store.task(ref, version)

    async def hand(self, ref: Ref, version: int, hand: Hand) -> TaskRow | Refused:
        return await self._store.hand(ref, version, hand)

    async def pick(self, role: str, actor: str, limit: int) -> list[TaskRow]:
        return await self._store.pick(role, actor, limit)

    # ---- projections

    async def checkpoints(self, projection: str | None = None) -> list[Checkpoint]:
        return await self._store.checkpoints(projection)

    async def advance(self, move: Advance) -> bool:
        return await self._store.advance(move)

    async def documents(self, projection: str, keys: Sequence[str], generation: int | None = None) -> list[Document]:
        return await self._store.documents(projection, keys, generation)

    async def list_documents(self, projection: str, prefix: str, after: str, limit: int) -> list[Document]:
        return await self._store.list_documents(projection, prefix, after, limit)

    async def clear_documents(self, projection: str, generation: int, limit: int) -> int:
        return await self._store.clear_documents(projection, generation, limit)

    async def behind(self, position: int, limit: int) -> Behind:
        return await self._store.behind(position, limit)

    # ---- upkeep

    async def open(self) -> None:
        await self._store.open()

    async def close(self) -> None:
        await self._store.close()

    async def purgeable(self, workflow: str, before_us: int, limit: int, after: PurgeCursor | None = None) -> PurgePage:
        return await self._store.purgeable(workflow, before_us, limit, after)

    async def purge(self, found: Sequence[Purgeable], events: int) -> Purged:
        return await self._store.purge(found, events)
