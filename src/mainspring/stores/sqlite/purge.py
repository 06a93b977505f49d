"""Purging: which ended instances may go, and a bounded piece of their going in one transaction."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from mainspring.port.purging import Purgeable, PurgeCursor, Purged, PurgePage
from mainspring.stores.sqlite.sql import change, packed, rows
from mainspring.stores.sqlite.writer import Transaction


def purgeable(
    connection: apsw.Connection, workflow: str, before_us: int, limit: int, after: PurgeCursor | None
) -> PurgePage:
    """Return a page of ended instances, without those that something is kept for."""
    seen = rows(connection, "purgeable", workflow, before_us, *(after or (-1, -1)), limit)
    found = [
        Purgeable(key, workflow, id, version, ended_us, purged_us)
        for ended_us, key, id, version, purged_us, is_done in seen
        if is_done
    ]
    return PurgePage(found, (seen[-1][0], seen[-1][1]) if len(seen) == limit else None)


def purge(transaction: Transaction, found: Sequence[Purgeable], events: int) -> Purged:
    """Make tombstones, then remove events. What was a tombstone before has only events to lose."""
    connection = transaction.connection
    wanted = packed([(one.key, one.version) for one in found])
    buried = [key for (key,) in rows(connection, "bury_instances", wanted, transaction.now_us)]
    change(connection, "delete_snapshots", packed(buried))
    change(connection, "delete_tasks", packed(buried))
    change(connection, "delete_attributes", packed(buried))
    change(connection, "delete_attempts", packed(buried))
    gone = [key for (key,) in rows(connection, "tombstones", packed([one.key for one in found]))]
    change(connection, "purge_events", packed(gone), events)
    removed = connection.changes()
    left = {key for (key,) in rows(connection, "with_events", packed(gone))}
    ended = [(one.workflow, one.ended_us, one.key) for one in found if one.key in gone and one.key not in left]
    change(connection, "delete_endings", packed(ended))
    return Purged(len(buried), removed, tuple(sorted(left)))
