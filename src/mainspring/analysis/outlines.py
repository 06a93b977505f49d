"""The streams of many instances without their bodies, in pages: memory and read transactions stay small, however many.

Each page is a question of its own. An instance that moves between two pages may show an event that its row does not
know yet; one that is purged meanwhile shows none.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import AsyncIterator, Sequence
from typing import Final

from msgspec import Struct

from mainspring.app.search import found
from mainspring.engine.recording.event_details import read_detail
from mainspring.errors import DamagedRecordError
from mainspring.port.records import InstanceFilter, InstanceRow, Outline, OutlineSpot, Ref
from mainspring.port.store import Store

INSTANCES_PER_PAGE: Final = 2_000
EVENTS_PER_PAGE: Final = 20_000

_EVENT: Final = 2


class OutlinePage(Struct, frozen=True):
    """Events, instance by instance in the order of their keys, each in the order of versions.

    A long stream goes on in the next page. `instances` are those whose first events are here, or in the pages that
    follow. `resets` says of each Reset, by key and version, to which version it went back; None where nobody can tell.

    >>> OutlinePage([], []).resets
    {}
    """

    instances: Sequence[InstanceRow]
    rows: Sequence[Outline]
    resets: dict[OutlineSpot, int | None] = {}


async def outline_pages(
    store: Store,
    where: InstanceFilter,
    instances_per_page: int = INSTANCES_PER_PAGE,
    events_per_page: int = EVENTS_PER_PAGE,
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
    instances_per_page: int = INSTANCES_PER_PAGE,
    events_per_page: int = EVENTS_PER_PAGE,
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
