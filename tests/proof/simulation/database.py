"""The one database of a run: the memory store's tables, shared by all processes, and the log of all commits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mainspring.port.projections import Checkpoint, Document
from mainspring.port.purges import Purgeable, Purged
from mainspring.port.records import (
    ENDED,
    NO_LEAVES,
    Claims,
    Committed,
    DeadLetter,
    EventRow,
    InputRow,
    InstanceRow,
    Leaves,
    Outcome,
    OutputKey,
    Ref,
    Unit,
)
from mainspring.stores.commit.facts import Name
from mainspring.stores.memory import MemoryStore
from mainspring.stores.memory.tables import Output
from tests.proof.simulation.loop import VirtualLoop


@dataclass(frozen=True)
class Before:
    """What stood in the tables right before a unit was committed, looked up apart from what judges units."""

    holders: dict[OutputKey, int | None]
    """Who held each output that the unit settles or gives back, of those that were there."""
    waiting: tuple[int, ...]
    """The inputs that waited for the unit's instance."""


@dataclass(frozen=True)
class Commit:
    """A unit that was committed: when by the true time, and by which worker."""

    at_us: int
    worker: int
    unit: Unit
    outcome: Committed
    before: Before


@dataclass(frozen=True)
class Purge:
    """What stood in the tables right before an instance was purged: how it was, and how much was owed to it."""

    at_us: int
    ref: Ref
    status: str
    owed: int
    version: int


class TrueClock:
    """The database's clock, which is right by definition."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def now_us(self) -> int:
        return self._loop.now_us

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("a database waits for nobody")


class News:
    """Stands where the memory store has its event: there are many who listen."""

    def __init__(self) -> None:
        self.listeners: list[Callable[[], None]] = []

    def set(self) -> None:
        for listener in self.listeners:
            listener()


class Database(MemoryStore):
    """Tables that outlive every process. A verb is one transaction: nothing of it awaits."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__(TrueClock(loop))
        self.news = News()
        self._news: Any = self.news
        self.commits: list[Commit] = []
        # The rows of a table that a handler writes in the transaction of its result.
        self.payments: list[str] = []
        self.sessions: dict[int, str] = {}
        # Commands that operators took back from the dead letters, by their ids.
        self.restored: list[str] = []
        # Those of them that their instances had gone on without, with the reason.
        self.restored_late: list[tuple[str, str]] = []
        # What stood in the tables right before an instance was purged, and the rows that have gone with it.
        self.purges: list[Purge] = []
        self._gone: dict[Ref, list[EventRow]] = {}
        self._gone_feed: list[tuple[int, Ref, EventRow]] = []
        # When each timer was taken to be fired.
        self.timers_taken: list[tuple[int, OutputKey]] = []
        self._befores: list[Before] = []

    def _commit(self, worker: int, unit: Unit, void: set[Name]) -> Outcome:
        keys = (*unit.settles, *(retry.output for retry in unit.retries))
        holders = {key: output.owner for key in keys if (output := self._tables.outbox.get(key)) is not None}
        before = Before(holders, tuple(self._tables.at(Ref(unit.workflow, unit.instance)).inbox))
        outcome = super()._commit(worker, unit, void)
        if isinstance(outcome, Committed):
            self._befores.append(before)
        return outcome

    async def claim(
        self, worker: int, destinations: Sequence[str], workflows: Sequence[str], limit: int, leaves: Leaves = NO_LEAVES
    ) -> Claims:
        claims = await super().claim(worker, destinations, workflows, limit, leaves)
        self.timers_taken += [(self.now_us(), claim.output) for claim in claims.outputs if claim.kind == "timer"]
        return claims

    async def commit(self, worker: int, units: Sequence[Unit]) -> list[Outcome]:
        self._befores.clear()
        outcomes = await super().commit(worker, units)
        befores = iter(self._befores)
        for unit, outcome in zip(units, outcomes, strict=True):
            if isinstance(outcome, Committed):
                self.commits.append(Commit(self.now_us(), worker, unit, outcome, next(befores)))
        return outcomes

    async def commit_with(self, worker: int, unit: Unit, writes: Sequence[str]) -> Outcome:
        """Commit a unit together with what a handler wrote; if it is refused, nothing of either is kept."""
        (outcome,) = await self.commit(worker, [unit])
        if isinstance(outcome, Committed):
            self.payments.extend(writes)
        return outcome

    async def restore_output(self, dead_letter: int, expected_version: int | None = None) -> bool:
        letter = next((letter for letter in self.letters if letter.id == dead_letter), None)
        restored = await super().restore_output(dead_letter, expected_version)
        if restored and letter is not None:
            self.restored.append(letter.message_id)
            if why := self._gone_on(letter):
                self.restored_late.append((letter.message_id, why))
        return restored

    def _gone_on(self, letter: DeadLetter) -> str | None:
        """Return why nobody waits any more for a command of an instance, as its rows say now."""
        instance = self._tables.at(Ref(letter.workflow, letter.instance))
        if letter.kind != "send" or letter.output is None or instance.row is None:
            return None
        if instance.row.status in (*ENDED, "compensating"):
            return f"its instance was {instance.row.status}"
        answers = [row for row in instance.events.values() if row.cause == letter.output.version]
        taken = any(row.event == "Received" and row.type == "SendFailed" for row in answers)
        return "its instance had taken its failure" if taken else None

    async def purge(self, found: Sequence[Purgeable], events: int) -> Purged:
        befores = {Ref(one.workflow, one.id): self._purge_of(Ref(one.workflow, one.id)) for one in found}
        rows = {ref: list(self._tables.at(ref).events.values()) for ref in befores}
        fed = [entry for entry in self._tables.feed if entry[1] in befores]
        purged = await super().purge(found, events)
        for ref, before in befores.items():
            row = self._tables.at(ref).row
            if before is not None and row is not None and row.purged_us is not None:
                self.purges.append(before)
                self._gone[ref] = rows[ref]
                self._gone_feed += [entry for entry in fed if entry[1] == ref]
        return purged

    def _purge_of(self, ref: Ref) -> Purge | None:
        """Return what stands in the tables; None where it was purged before."""
        instance = self._tables.at(ref)
        if instance.row is None or instance.row.purged_us is not None:
            return None
        letters = sum(Ref(letter.workflow, letter.instance) == ref for letter in self.letters)
        owed = len(instance.inbox) + len(instance.outbox) + letters
        return Purge(self.now_us(), ref, instance.row.status, owed, instance.row.version)

    def end_session(self, name: str) -> None:
        """Know that a process is gone: whoever looks relieves its workers."""
        for worker, owner in self.sessions.items():
            if owner == name and worker in self._tables.workers:
                self._tables.workers[worker].ends_us = self.now_us()

    # ---- what the judge reads

    def streams(self) -> dict[Ref, list[EventRow]]:
        """Return what is left of each stream; of one that was purged, what it was then."""
        return {
            ref: self._gone.get(ref) or list(self._tables.instances[ref].events.values()) for ref in self._tables.begun
        }

    def forgot(self, letter: DeadLetter) -> bool:
        """Tell whether a purged instance had taken it: a tombstone knows no ids, and what comes again is late."""
        gone = self._gone.get(Ref(letter.workflow, letter.instance), ())
        return any(row.message_id == letter.message_id for row in gone)

    @property
    def rows(self) -> dict[Ref, InstanceRow]:
        """The rows of all instances, in the order of their beginning."""
        return {ref: row for ref in self._tables.begun if (row := self._tables.instances[ref].row) is not None}

    @property
    def letters(self) -> list[DeadLetter]:
        """All dead letters."""
        return [letter for letter, _ in self._tables.dead.values()]

    @property
    def waiting(self) -> list[InputRow]:
        """All that waits in inboxes."""
        return [waiting.row for waiting in self._tables.inbox.values()]

    @property
    def owed(self) -> list[tuple[OutputKey, Output]]:
        """All that is not carried out."""
        return list(self._tables.outbox.items())

    @property
    def fed(self) -> list[tuple[int, Ref, EventRow]]:
        """The feed, with what was purged."""
        return sorted((*self._gone_feed, *self._tables.feed), key=lambda entry: entry[0])

    def projected(self, name: str) -> tuple[Checkpoint, dict[str, Document]] | None:
        """Return how far a projection is, and its documents."""
        live = next((c for (n, _), c in self._checkpoints.items() if n == name and c.status == "live"), None)
        return None if live is None else (live, self._documents.get((name, live.generation), {}))

    def busy(self, until_us: int) -> list[str]:
        """Return what is still to be done up to a moment."""
        waiting = [
            f"input {i.row.message_id} of {i.row.workflow}/{i.row.instance}" for i in self._tables.inbox.values()
        ]
        owed = [
            f"{output.row.kind} {output.ref}/{key.version} to {output.row.destination}"
            for key, output in self._tables.outbox.items()
            if output.due_us <= until_us
        ]
        return waiting + owed
