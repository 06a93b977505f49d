"""Work in dicts: a commit, and who holds what."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from itertools import islice

from mainspring.errors import LendingError
from mainspring.port.loans import Loan
from mainspring.port.records import NO_LEAVES, Claims, Leaves, Outcome, OutputKey, Ref, Relayed, Unit
from mainspring.port.suspects import Alone, Suspect
from mainspring.stores.commit.changes import Changes
from mainspring.stores.commit.facts import Known, Name
from mainspring.stores.commit.judge import Judge
from mainspring.stores.commit.questions import Questions
from mainspring.stores.memory.changes import write
from mainspring.stores.memory.facts import facts_of
from mainspring.stores.memory.tables import ASIDE, Input, Output, Verbs


class WorkVerbs(Verbs):
    """The verbs of work."""

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

    async def claim(
        self, worker: int, destinations: Sequence[str], workflows: Sequence[str], limit: int, leaves: Leaves = NO_LEAVES
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
        return Claims([self._tables.claim_of(*item) for item in due], [i.row for i in inputs], next_due_us)

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
        for key, output in instance.outbox.items():
            if key.version == suspect.version:
                taken = Alone(output.lost, self._tables.claim_of(key, output))
                return self._take_alone(worker, key, output, taken)
        return None

    def _take_alone(self, worker: int, key: OutputKey | int, work: Input | Output, taken: Alone) -> Alone | None:
        if work.owner != ASIDE:
            return None
        work.owner, self._tables.alone[worker] = worker, key
        return taken

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

    async def wait_for_work(self, timeout_seconds: float) -> None:
        news = asyncio.create_task(self._news.wait())
        timeout = asyncio.create_task(self._clock.sleep(timeout_seconds))
        try:
            await asyncio.wait((news, timeout), return_when=asyncio.FIRST_COMPLETED)
        finally:
            news.cancel()
            timeout.cancel()
        self._news.clear()

    @property
    def lends(self) -> bool:
        return False

    async def lend(self, worker: int, limit_seconds: float) -> Loan:
        raise LendingError("There is no database in memory to write to", "Use SQLite or PostgreSQL.")

    async def relay(self, limit: int) -> Relayed:
        return Relayed(0)  # no other process can write here


def urgency(item: tuple[OutputKey, Output]) -> tuple[int, int, int, int]:
    """Return by what outputs are sorted for a claim."""
    key, output = item
    return -output.row.priority, output.due_us, key.instance, key.version
