"""Purging: which ended instances may go, and a bounded piece of their going in one transaction."""

from __future__ import annotations

from collections.abc import Sequence

from mainspring.port.purges import Purgeable, PurgeCursor, Purged, PurgePage
from mainspring.stores.sql.dialogue import Dialogue, Verbs, read


class UpkeepVerbs(Verbs):
    """The verbs of purging."""

    era = None

    @read
    def purgeable(
        self, workflow: str, before_us: int, limit: int, after: PurgeCursor | None = None
    ) -> Dialogue[PurgePage]:
        seen = yield "purgeable", workflow, before_us, *(after or (-1, -1)), limit
        found = [
            Purgeable(key, workflow, id, version, ended_us, purged_us)
            for ended_us, key, id, version, purged_us, is_done in seen
            if is_done
        ]
        return PurgePage(found, (seen[-1][0], seen[-1][1]) if len(seen) == limit else None)

    async def purge(self, found: Sequence[Purgeable], events: int) -> Purged:
        if not found:
            return Purged(0, 0, ())
        return await self.in_transaction(lambda now_us: self._purge(found, events, now_us))

    def _purge(self, found: Sequence[Purgeable], events: int, now_us: int | None) -> Dialogue[Purged]:
        """Make tombstones, then remove events. What was a tombstone before has only events to lose.

        What another purge or a commit has locked is skipped, so that a purge neither blocks nor waits.
        """
        listed = self.dialect.values
        wanted = self.dialect.rows([(one.key, one.version) for one in found])
        locked = [key for (key,) in (yield "lock_purgeable", *wanted)]
        buried = [key for (key,) in (yield "bury_instances", listed(locked), now_us)]
        for query in ("delete_snapshots", "delete_tasks", "delete_attributes", "delete_attempts"):
            yield query, listed(buried)
        gone = [key for (key,) in (yield "tombstones", listed(locked))]
        ((removed, *last_position),) = yield "purge_events", listed(gone), events
        left = {key for (key,) in (yield "with_events", listed(gone))}
        ended = [(one.workflow, one.ended_us, one.key) for one in found if one.key in gone and one.key not in left]
        if ended:
            yield "delete_endings", *self.dialect.rows(ended)
        if last_position:
            yield "remember_purged", *last_position
        return Purged(len(buried), removed, tuple(sorted(left)))
