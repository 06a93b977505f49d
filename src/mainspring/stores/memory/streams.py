"""Streams in dicts, and the feed of all of them in a list."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import islice

from mainspring.port.records import DeadLetter, EventRow, InputRow, Loaded, Outline, OutlineSpot, Ref, Remembered
from mainspring.stores.memory.tables import Instance, Verbs


class StreamVerbs(Verbs):
    """The verbs of streams."""

    async def load(self, refs: Sequence[Ref], most: int | None = None) -> list[Loaded | None]:
        return [self._loaded(self._tables.at(ref), most) for ref in refs]

    def _loaded(self, instance: Instance, most: int | None) -> Loaded | None:
        if instance.row is None:
            return None
        after = instance.snapshot.version if instance.snapshot else 0
        return Loaded(instance.row, instance.snapshot, instance.behind(after, most))

    async def stream(self, ref: Ref, after: int, limit: int) -> list[EventRow]:
        return self._tables.at(ref).behind(after, limit)

    async def feed(self, after: int, limit: int) -> list[tuple[int, Ref, EventRow]]:
        behind = islice(self._tables.feed, bisect_right(self._tables.feed, after, key=lambda fed: fed[0]), None)
        there = (fed for fed in behind if fed[2].version in (at := self._tables.at(fed[1])).events and at.version >= 0)
        return list(islice(there, limit))

    async def outlines(self, spots: Sequence[OutlineSpot], limit: int) -> list[Outline]:
        wanted = ((key, self._tables.at(self._tables.begun[key - 1]).behind(after)) for key, after in spots)
        return list(islice((outline(key, event) for key, events in wanted for event in events), limit))

    async def messages(self, ref: Ref, message_id: str) -> list[InputRow | EventRow | DeadLetter]:
        instance = self._tables.at(ref)
        waiting = [one.row for one in instance.inbox.values() if one.row.message_id == message_id]
        letters = [letter for letter in self._tables.letters_of(ref) if letter.output is None]
        taken = instance.taken.get(message_id)
        return [*waiting, *((taken,) if taken else ()), *(one for one in letters if one.message_id == message_id)]

    async def remembered(self, key: str) -> Remembered | None:
        result = self._tables.remembered.get(key)
        return result if result and result.expires_us > self.now_us() else None


def outline(instance: int, event: EventRow) -> Outline:
    """Return an event without its bodies.

    >>> outline(7, EventRow(1, "Began", 0))[:4]
    (7, 1, 'Began', 0)
    """
    return (
        instance,
        event.version,
        event.event,
        event.time_us,
        event.type,
        event.kind,
        event.cause,
        event.state,
        event.attempt,
        event.duration_us,
        event.actor,
        sum(len(part) for part in (event.body, event.detail, event.context) if part is not None),
    )
