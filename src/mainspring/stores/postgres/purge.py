"""Purging: which ended instances may go, and a bounded piece of their going in one transaction."""

from __future__ import annotations

from collections.abc import Sequence

from mainspring.port.purging import Purgeable, PurgeCursor, Purged, PurgePage
from mainspring.stores.postgres.reads import Ask
from mainspring.stores.postgres.transaction import Transaction


async def purgeable(ask: Ask, workflow: str, before_us: int, limit: int, after: PurgeCursor | None) -> PurgePage:
    """Return a page of ended instances, without those that something is kept for."""
    seen = await ask("purgeable", workflow, before_us, *(after or (-1, -1)), limit)
    found = [
        Purgeable(key, workflow, id, version, ended_us, purged_us)
        for ended_us, key, id, version, purged_us, is_done in seen
        if is_done
    ]
    return PurgePage(found, (seen[-1][0], seen[-1][1]) if len(seen) == limit else None)


async def purge(transaction: Transaction, found: Sequence[Purgeable], events: int, now_us: int | None) -> Purged:
    """Make tombstones, then remove events. What was a tombstone before has only events to lose.

    What another purge or a commit is at is skipped, so that nobody waits for a purge, nor a purge for anybody.
    """
    wanted = ([one.key for one in found], [one.version for one in found])
    locked = [key for (key,) in await transaction.rows("lock_purgeable", *wanted)]
    buried = [key for (key,) in await transaction.rows("bury_instances", locked, now_us)]
    await transaction.rows("delete_snapshots", buried)
    await transaction.rows("delete_tasks", buried)
    await transaction.rows("delete_attributes", buried)
    await transaction.rows("delete_attempts", buried)
    gone = [key for (key,) in await transaction.rows("tombstones", locked)]
    ((removed, position),) = await transaction.rows("purge_events", gone, events)
    left = {key for (key,) in await transaction.rows("with_events", gone)}
    ended = [one for one in found if one.key in gone and one.key not in left]
    await transaction.rows(
        "delete_endings", [one.workflow for one in ended], [one.ended_us for one in ended], [one.key for one in ended]
    )
    await transaction.rows("remember_purged", position)
    return Purged(len(buried), removed, tuple(sorted(left)))
