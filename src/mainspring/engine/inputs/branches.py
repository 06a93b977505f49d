"""Branches: which part of a stream counts, where an instance was reset or began anew. Nothing is ever taken out."""

from __future__ import annotations

from collections.abc import Sequence

from mainspring.engine.recording.event_details import read_detail
from mainspring.port.records import EventRow


def branches(row: EventRow) -> bool:
    """Return True if from this event on another part of the stream counts than before.

    >>> branches(EventRow(1, "Began", 0)), branches(EventRow(7, "Began", 0))
    (False, True)
    """
    return row.event == "Reset" or (row.event == "Began" and row.version > 1)


def live(rows: Sequence[EventRow]) -> Sequence[EventRow]:
    """Return the events of a whole stream that count. A Reset itself counts, and what it went back behind does not.

    >>> [row.version for row in live([EventRow(n, "Received", 0) for n in range(1, 4)] + [EventRow(4, "Began", 0)])]
    [4]
    """
    if not any(branches(row) for row in rows):
        return rows
    kept: list[EventRow] = []
    for row in rows:
        if row.event == "Began":
            kept.clear()
        elif row.event == "Reset":
            back_to = read_detail(row.detail).version or 0
            while kept and kept[-1].version > back_to:
                kept.pop()
        kept.append(row)
    return kept


def abandoned(rows: Sequence[EventRow]) -> frozenset[int]:
    """Return the versions of a whole stream that do not count any more.

    >>> sorted(abandoned([EventRow(1, "Began", 0), EventRow(2, "Received", 0), EventRow(3, "Began", 0)]))
    [1, 2]
    """
    counting = live(rows)
    if counting is rows:
        return frozenset()
    return frozenset(row.version for row in rows) - {row.version for row in counting}
