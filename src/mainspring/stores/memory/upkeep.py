"""Opening, and what is removed in the end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import islice

from mainspring.port.purges import Purgeable, PurgeCursor, Purged, PurgePage
from mainspring.port.records import Ref
from mainspring.stores.memory.tables import Verbs


class UpkeepVerbs(Verbs):
    """The verbs of upkeep."""

    era = None

    async def open(self) -> None:
        self._news = asyncio.Event()  # it belongs to one event loop, and a test may open the store in several

    async def close(self) -> None: ...

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
        """Return True if nothing is kept for an instance: no input, no output, no dead letter."""
        instance = self._tables.at(ref)
        return not (instance.inbox or instance.outbox or self._tables.letters_of(ref))
