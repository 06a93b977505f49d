"""What was recorded: instances to be folded, streams, the feed, results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mainspring.errors import DamagedRecordError
from mainspring.port.records import DeadLetter, EventRow, InputRow, Loaded, Outline, OutlineSpot, Ref, Remembered
from mainspring.stores.commit.rows import (
    check_behind,
    check_complete,
    read_dead_letter,
    read_event,
    read_input,
    read_snapshot,
)
from mainspring.stores.sql.dialogue import Dialogue, Verbs, read, read_at_one_moment

_SNAPSHOT_COLUMNS = 7


class StreamVerbs(Verbs):
    """The verbs of streams."""

    @read_at_one_moment
    def load(self, refs: Sequence[Ref], most: int | None = None) -> Dialogue[list[Loaded | None]]:
        found: dict[int, Loaded] = {}
        for place, *row in (yield "load_instances", self.dialect.names(refs)):
            instance, snapshot = row[:-_SNAPSHOT_COLUMNS], row[-_SNAPSHOT_COLUMNS:]
            found[place] = Loaded(self.dialect.instance(instance), read_snapshot(snapshot), [])
        by_key = {loaded.row.key: loaded for loaded in found.values()}
        whole = [loaded for loaded in by_key.values() if loaded.row.purged_us is None]
        behind = [(loaded.row.key, _after(loaded), self._last(loaded, most)) for loaded in whole]
        for row in (yield "load_events", *self.dialect.rows(behind)) if behind else ():
            by_key[row[0]].events.append(read_event(row))
        for key, after, last in behind:
            check_complete(by_key[key].events, after, key, by_key[key].row.version if last is None else last)
        return [by_key[found[place].row.key] if place in found else None for place in range(len(refs))]

    def _last(self, loaded: Loaded, most: int | None) -> int | None:
        """Return the version at which reading stops; None: wherever the stream ends, which is its row's version."""
        if most is not None and _after(loaded) + most < loaded.row.version:
            return _after(loaded) + most
        return None if self.dialect.one_moment else loaded.row.version

    @read_at_one_moment
    def stream(self, ref: Ref, after: int, limit: int) -> Dialogue[list[EventRow]]:
        after = max(after, 0)
        found = yield "stream", *self.dialect.name(ref), after, limit
        gaps = bool(found) and found[-1][1] - after != len(found)
        trimmed = (yield "trimmed", found[0][0]) if gaps else ()
        ends = (yield "stream_end", *self.dialect.name(ref)) if self.dialect.one_moment and len(found) < limit else ()
        events = [read_event(row) for row in found]
        for key, version in ends:
            if after < version != (events[-1].version if events else after):
                raise DamagedRecordError("events", f"instance {key}, version {version} is missing")
        if gaps:
            check_behind(events, after, found[0][0], trimmed[0][0] if trimmed else 0)
        return events

    @read
    def feed(self, after: int, limit: int) -> Dialogue[list[tuple[int, Ref, EventRow]]]:
        found = yield "feed", after, limit
        return [(row[0], Ref(row[1], row[2]), read_event(row[3:])) for row in found]

    @read
    def outlines(self, spots: Sequence[OutlineSpot], limit: int) -> Dialogue[list[Outline]]:
        return cast("list[Outline]", (yield "outlines", *self.dialect.rows(spots), limit) if spots else [])

    @read
    def messages(self, ref: Ref, message_id: str) -> Dialogue[list[InputRow | EventRow | DeadLetter]]:
        name, digest = self.dialect.name(ref), self.dialect.digest(message_id)
        # In this order: what waits may be stepped in between.
        waiting = yield "input_of_message", *name, digest
        taken = yield "event_of_message", *name, message_id
        letters = yield "letters_of_message", ref.workflow, ref.id, message_id
        inputs = [*map(read_input, waiting), *map(read_event, taken)][:1]
        return [*inputs, *map(read_dead_letter, letters)]

    @read
    def remembered(self, key: str) -> Dialogue[Remembered | None]:
        found = yield "remembered", self.dialect.digest(key), self.now_us()
        return Remembered(*found[0]) if found else None


def _after(loaded: Loaded) -> int:
    return loaded.snapshot.version if loaded.snapshot else 0
