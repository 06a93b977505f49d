"""Instances that ended, told as examples: of each way to end, the one that took the fewest events.

Messages are shown by their types alone, unless the caller wants their contents too.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from mainspring.analysis.diagram.labels import cut, span_of
from mainspring.app.search import found
from mainspring.core.story import tell
from mainspring.engine.inputs.branches import live
from mainspring.engine.inputs.stored_streams import whole_stream
from mainspring.engine.recording.event_details import read_detail
from mainspring.engine.registry import WorkflowEntry
from mainspring.errors import CodecError, DamagedRecordError
from mainspring.port.records import ENDED, EventRow, InstanceFilter, InstanceRow, Ref
from mainspring.port.store import Store

STORIES: Final = 4
EVENTS_TOLD: Final = 60
INSTANCES_LOOKED_AT: Final = 20_000
INSTANCES_PER_PAGE: Final = 1_000
MESSAGE_CHARACTERS: Final = 200


class Line(Struct, frozen=True):
    """One event of a story: how long after the beginning, what happened, and the state after it."""

    after: str
    what: str
    event: str
    state: str = ""


class Told(Struct, frozen=True):
    """A story: an instance that ended, told from its stream. `took` is from its beginning to its end."""

    status: str
    state: str
    took: str
    like: int
    lines: tuple[Line, ...]


async def stories_of(store: Store, entry: WorkflowEntry, *, payloads: bool = False) -> tuple[Told, ...]:
    """Return the stories of a workflow: of each way to end the shortest, the most frequent way first."""
    shortest: dict[tuple[str, str], InstanceRow] = {}
    ways: dict[tuple[str, str], int] = {}
    after = looked = 0
    while looked < INSTANCES_LOOKED_AT:
        rows = await found(store, InstanceFilter(workflow=entry.name), INSTANCES_PER_PAGE, after)
        if not rows:
            break
        after, looked = rows[-1].key, looked + len(rows)
        for row in rows:
            if row.status in ENDED:
                way = (row.status, row.state or "")
                ways[way] = ways.get(way, 0) + 1
                if way not in shortest or row.version < shortest[way].version:
                    shortest[way] = row
    frequent = sorted(shortest, key=lambda way: (-ways[way], way))
    told: list[Told] = []
    for way in frequent:
        story = await _told(store, entry, shortest[way], ways[way], payloads=payloads)
        if story is not None:
            told.append(story)
        if len(told) == STORIES:
            break
    return tuple(told)


async def _told(store: Store, entry: WorkflowEntry, instance: InstanceRow, like: int, *, payloads: bool) -> Told | None:
    """Return an instance's story, or None where its stream cannot be told: not whole, not readable, or too long."""
    ref = Ref(instance.workflow, instance.id)
    if instance.version > EVENTS_TOLD:
        return None
    try:
        rows = live(await whole_stream(store, ref))
        if not rows or rows[0].event != "Began" or rows[-1].version - rows[0].version + 1 != len(rows):
            return None
        began = rows[0].time_us
        lines = tuple(_line(entry, ref, row, began, payloads=payloads) for row in rows[1:])
    except (CodecError, DamagedRecordError):
        return None  # damaged, erased, or of a type that this app has lost: an unreadable example is none
    took = span_of((rows[-1].time_us - began) / 1e6)
    return Told(instance.status, instance.state or "", took, like, lines)


def _line(entry: WorkflowEntry, ref: Ref, row: EventRow, began_us: int, *, payloads: bool) -> Line:
    after = span_of((row.time_us - began_us) / 1e6)
    what = _contents(entry, ref, row) if payloads else _type(row)
    return Line(after, what, row.event, row.state or "")


def _type(row: EventRow) -> str:
    detail = read_detail(row.detail)
    return row.type or detail.unkept or detail.key or ""


def _contents(entry: WorkflowEntry, ref: Ref, row: EventRow) -> str:
    told = tell([entry.recorder.entry(ref, row)])[0].message
    return cut(told, MESSAGE_CHARACTERS)
