"""What waits, who holds it, and what failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice

from mainspring.port.attempts import Attempt
from mainspring.port.records import DeadLetter, InputRow, OutputClaim, OutputKey, Ref, Stats, Waiting
from mainspring.port.suspects import SUSPECT, Suspect
from mainspring.port.workers import WorkerRow
from mainspring.stores.memory.instances import InstanceVerbs
from mainspring.stores.memory.tables import ASIDE


class BacklogVerbs(InstanceVerbs):
    """The verbs of the backlog; it counts instances, too."""

    async def inbox(self, ref: Ref, limit: int) -> list[InputRow]:
        return [waiting.row for waiting in islice(self._tables.at(ref).inbox.values(), limit)]

    async def outputs(self, ref: Ref | None, timers: bool, limit: int) -> list[OutputClaim]:
        wanted = [
            (key, output)
            for key, output in self._tables.outbox.items()
            if (output.row.kind == "timer") == timers and ref in (None, output.ref)
        ]
        wanted.sort(key=lambda item: item[1].due_us)
        return [self._tables.claim_of(*item) for item in wanted[:limit]]

    async def timers(self, limit: int) -> list[OutputClaim]:
        every = await self.outputs(None, timers=True, limit=len(self._tables.outbox))
        return [claim for claim in every if self._tables.outbox[claim.output].owner is None][:limit]

    async def attempts(self, ref: Ref, limit: int) -> list[Attempt]:
        return sorted(self._tables.at(ref).attempts, key=lambda one: (one.version, one.ended_us, one.number))[:limit]

    async def waiting(self, before_us: int) -> list[Waiting]:
        free = (one.row for one in self._tables.inbox.values() if one.owner is None)
        times: dict[tuple[str, str, int], list[int]] = {}
        for row in free:
            if row.time_us < before_us and not self._tables.at(Ref(row.workflow, row.instance)).suspended:
                times.setdefault((row.workflow, row.type, row.type_version), []).append(row.time_us)
        return [Waiting(*name, len(found), min(found)) for name, found in sorted(times.items())]

    async def dead_letters(self, limit: int, after: int = 0, ids: Sequence[int] | None = None) -> list[DeadLetter]:
        behind = (one for one, _ in self._tables.dead.values() if one.id > after and (ids is None or one.id in ids))
        return list(islice(behind, limit))

    async def suspects(self, limit: int) -> list[Suspect]:
        found: list[Suspect] = []
        for key, output in self._tables.outbox.items():
            if output.lost >= SUSPECT:
                name = (output.ref.workflow, output.ref.id, self._tables.type_of(key), key.version)
                found.append(Suspect(*name, output.lost, output.row.destination, output.owner == ASIDE))
        for waiting in self._tables.inbox.values():
            if waiting.lost >= SUSPECT and not self._tables.is_parked(waiting):
                row, aside = waiting.row, waiting.owner == ASIDE
                name = (row.workflow, row.instance, row.type, None)
                found.append(Suspect(*name, waiting.lost, "", aside, row.type_version, row.position))
        return sorted(found, key=lambda suspect: -suspect.lost)[:limit]

    async def workers(self) -> list[WorkerRow]:
        return [WorkerRow(key, **vars(each)) for key, each in self._tables.workers.items()]

    async def holds(self, worker: int) -> list[OutputKey]:
        return [key for key, output in self._tables.outbox.items() if output.owner == worker]

    async def holds_inputs(self, worker: int) -> list[tuple[Ref, int]]:
        held = [waiting.row for waiting in self._tables.inbox.values() if waiting.owner == worker]
        return [(Ref(row.workflow, row.instance), row.position) for row in held]

    async def stats(self) -> Stats:
        has, now_us = self._tables, self.now_us()
        outputs = has.outbox.values()
        timers = sum(output.row.kind == "timer" for output in outputs)
        oldest_due_us = min((output.due_us for output in outputs if output.due_us <= now_us), default=None)
        counts: Counter[str] = Counter()
        for (_, status), count in (await self.tally()).items():
            counts[status] += count
        depths = (len(has.inbox), len(outputs) - timers, timers, len(has.dead))
        return Stats(dict(counts), *depths, oldest_due_us, len(has.workers))
