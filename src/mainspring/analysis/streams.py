"""The streams of many instances: read in batches, a long one in pages, each whole and as of one moment.

Outlines are streams without their bodies, in pages: memory and read transactions stay small, however many there are.
Each page of outlines is a question of its own. An instance that moves between two pages may show an event that its row
does not know yet; one that is purged meanwhile shows none.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import AsyncIterator, Sequence
from heapq import heappush, heappushpop
from typing import Final
from zlib import crc32

from msgspec import Struct

from mainspring.app.search import found
from mainspring.engine.recording.event_details import read_detail
from mainspring.errors import DamagedRecordError, NoSuchInstanceError
from mainspring.port.records import EventRow, InstanceFilter, InstanceRow, Loaded, Outline, OutlineSpot, Ref, Snapshot
from mainspring.port.store import Store

INSTANCES_PER_READ: Final = 200
EVENTS_PER_READ: Final = 200
"""Of each instance; the rest of a longer stream comes in pages."""
EVENTS_PER_PAGE: Final = 5_000
INSTANCES_PER_PAGE: Final = 1_000


class Stream(Struct, frozen=True):
    """An instance with the first events of its stream. Where its history is not `kept`, they are what is left of it.

    >>> row = InstanceRow(7, "W", "i", 1, "running", None, None, 1, b"{}", 0, 0)
    >>> Stream(row, None, [EventRow(1, "Began", 0)]).kept
    True
    """

    row: InstanceRow
    snapshot: Snapshot | None
    events: list[EventRow]

    @property
    def ref(self) -> Ref:
        """Whose it is."""
        return Ref(self.row.workflow, self.row.id)

    @property
    def kept(self) -> bool:
        """Whether all that happened is there."""
        return self.snapshot is None or not self.snapshot.is_all


class Unread(Struct, frozen=True):
    """An instance whose stream cannot be read, and why.

    >>> row = InstanceRow(7, "W", "i", 1, "running", None, None, 1, b"{}", 0, 0)
    >>> Unread(row, "its stream is damaged").why
    'its stream is damaged'
    """

    row: InstanceRow
    why: str


DAMAGED: Final = "its stream is damaged: `mainspring doctor` says more"
PURGED: Final = "it was purged meanwhile"


async def listed(store: Store, wheres: Sequence[InstanceFilter]) -> AsyncIterator[list[InstanceRow]]:
    """Yield the instances that some filters find, one filter after the other, page by page."""
    for where in wheres:
        after = 0
        while rows := await found(store, where, INSTANCES_PER_PAGE, after):
            yield rows
            after = rows[-1].key


async def sampled(store: Store, wheres: Sequence[InstanceFilter], most: int) -> list[InstanceRow]:
    """Return at most so many instances of each workflow that the filters find, in the order of their keys.

    They are those whose ids have the lowest checksums, which is as good as by lot, and the same ones every time.
    """
    kept: dict[str, list[tuple[int, int, InstanceRow]]] = {}
    async for rows in listed(store, wheres):
        for row in rows:
            # The heap gives away its smallest, and the lowest checksums are to stay.
            mine, entry = kept.setdefault(row.workflow, []), (-crc32(row.id.encode()), -row.key, row)
            if len(mine) < most:
                heappush(mine, entry)
            else:
                heappushpop(mine, entry)
    return sorted((row for mine in kept.values() for _, _, row in mine), key=lambda row: row.key)


async def read(store: Store, rows: Sequence[InstanceRow]) -> list[Stream | Unread]:
    """Return the streams of some instances, each with its first events; `pages` brings the others."""
    refs = [Ref(row.workflow, row.id) for row in rows]
    try:
        loaded = await store.load(refs, EVENTS_PER_READ)
    except DamagedRecordError:
        if len(rows) == 1:
            return [Unread(rows[0], DAMAGED)]
        # One of them is to blame, and the others are not.
        return [(await read(store, [row]))[0] for row in rows]
    return [await _stream(store, row, each) for row, each in zip(rows, loaded, strict=True)]


async def _stream(store: Store, row: InstanceRow, loaded: Loaded | None) -> Stream | Unread:
    if loaded is None or loaded.row.purged_us is not None:
        return Unread(row, PURGED)
    snapshot = loaded.snapshot
    if snapshot is None:
        return Stream(loaded.row, None, loaded.events)
    try:
        # What was loaded begins behind the snapshot.
        events = await store.stream(Ref(row.workflow, row.id), 0, EVENTS_PER_PAGE)
    except DamagedRecordError:
        return Unread(row, DAMAGED)
    return Stream(loaded.row, snapshot, [event for event in events if event.version <= loaded.row.version])


async def pages(store: Store, stream: Stream) -> AsyncIterator[list[EventRow]]:
    """Yield all events of a stream up to the version that its row has, page by page.

    Raises DamagedRecordError, or NoSuchInstanceError if it is purged meanwhile.
    """
    yield stream.events
    last = stream.row.version
    version = stream.events[-1].version if stream.events else 0
    while version < last:
        page = await store.stream(stream.ref, version, min(EVENTS_PER_PAGE, last - version))
        if not page and stream.kept:
            raise NoSuchInstanceError(str(stream.ref))
        if not page:
            return  # the last events were trimmed
        yield page
        version = page[-1].version


OUTLINED_INSTANCES_PER_PAGE: Final = 2_000
OUTLINED_EVENTS_PER_PAGE: Final = 20_000

_EVENT: Final = 2


class OutlinePage(Struct, frozen=True):
    """Events, instance by instance in the order of their keys, each in the order of versions.

    A long stream goes on in the next page. `instances` are those whose first events are here, or in the pages that
    follow. `resets` says of each Reset, by key and version, to which version it went back; None where it is not known.
    """

    instances: Sequence[InstanceRow]
    rows: Sequence[Outline]
    resets: dict[OutlineSpot, int | None] = {}


async def outline_pages(
    store: Store,
    where: InstanceFilter,
    instances_per_page: int = OUTLINED_INSTANCES_PER_PAGE,
    events_per_page: int = OUTLINED_EVENTS_PER_PAGE,
) -> AsyncIterator[OutlinePage]:
    """Return the streams of the instances that are found. The engine's own are found by the name of their workflow."""
    after = 0
    while instances := await found(store, where, instances_per_page, after):
        after = instances[-1].key
        async for page in pages_of(store, instances, instances_per_page, events_per_page):
            yield page


async def pages_of(
    store: Store,
    instances: Sequence[InstanceRow],
    instances_per_page: int = OUTLINED_INSTANCES_PER_PAGE,
    events_per_page: int = OUTLINED_EVENTS_PER_PAGE,
) -> AsyncIterator[OutlinePage]:
    """Return the streams of instances, which are given in the order of their keys."""
    for first in range(0, len(instances), instances_per_page):
        fresh = instances[first : first + instances_per_page]
        by_key = {row.key: row for row in fresh}
        spots: Sequence[OutlineSpot] = [(row.key, 0) for row in fresh]
        while True:
            rows = await store.outlines(spots, events_per_page)
            yield OutlinePage(fresh, rows, await _resets(store, by_key, rows))
            if len(rows) < events_per_page:
                break
            key, version, *_ = rows[-1]
            spots = [(key, version), *spots[bisect_left(spots, (key + 1, 0)) :]]
            fresh = ()


async def _resets(
    store: Store, instances: dict[int, InstanceRow], rows: Sequence[Outline]
) -> dict[OutlineSpot, int | None]:
    """Return where resets went back to: it stands in what is sealed with the bodies, and resets are few."""
    told: dict[OutlineSpot, int | None] = {}
    for key, version, *_ in [row for row in rows if row[_EVENT] == "Reset"]:
        row = instances[key]
        try:
            events = await store.stream(Ref(row.workflow, row.id), version - 1, 1)
        except DamagedRecordError:
            events = []  # one that cannot be read does not hide the others
        told[key, version] = read_detail(events[0].detail).version if events else None
    return told
