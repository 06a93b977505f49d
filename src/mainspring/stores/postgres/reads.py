"""The read side: questions outside transactions, each a statement or two."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias, cast

from msgspec.structs import astuple

from mainspring.errors import DamagedRecordError
from mainspring.port.attempts import Attempt
from mainspring.port.attributes import AttributeFilter, AttributeRow
from mainspring.port.leaving import Waiting
from mainspring.port.outlines import Outline, OutlineSpot
from mainspring.port.pages import Page
from mainspring.port.records import (
    DeadLetter,
    EventRow,
    InputRow,
    InstanceFilter,
    InstanceRow,
    Loaded,
    OutputClaim,
    OutputKey,
    Ref,
    Remembered,
    Stats,
)
from mainspring.port.store import Tally
from mainspring.port.workers import WorkerRow
from mainspring.stores.commit.rows import (
    check_behind,
    check_complete,
    read_dead_letter,
    read_event,
    read_input,
    read_output,
    read_snapshot,
)
from mainspring.stores.postgres.session import Row
from mainspring.stores.postgres.sql import digest, name_of, packed

Ask: TypeAlias = Callable[..., Awaitable[list[Row]]]

LAST_KEY: Final = 2**63 - 1

_INSTANCE = slice(1, 13)
_SNAPSHOT = slice(13, 20)


async def load(ask: Ask, refs: Sequence[Ref], most: int | None) -> list[Loaded | None]:
    """Return each instance with what is needed to fold it: events up to the version that its row has, or the first."""
    try:
        return await _load(ask, refs, most)
    except DamagedRecordError:
        # One may have been purged between the two statements: then it is a tombstone now.
        return await _load(ask, refs, most)


async def _load(ask: Ask, refs: Sequence[Ref], most: int | None) -> list[Loaded | None]:
    found: dict[int, Loaded] = {}
    for row in await ask("load_instances", [name_of(ref.workflow, ref.id) for ref in refs]):
        found[row[0] - 1] = Loaded(InstanceRow(*row[_INSTANCE]), read_snapshot(row[_SNAPSHOT]), [])
    by_key = {loaded.row.key: loaded for loaded in found.values()}
    whole = [loaded for loaded in by_key.values() if loaded.row.purged_us is None]
    if whole:
        keys, last = [loaded.row.key for loaded in whole], [_last(loaded, most) for loaded in whole]
        for row in await ask("load_events", keys, [_after(loaded) for loaded in whole], last):
            by_key[row[0]].events.append(read_event(row))
    for loaded in whole:
        check_complete(loaded.events, _after(loaded), loaded.row.key, _last(loaded, most))
    return [by_key[found[index].row.key] if index in found else None for index in range(len(refs))]


async def stream(ask: Ask, ref: Ref, after: int, limit: int) -> list[EventRow]:
    """Return the events of an instance behind a version."""
    try:
        return await _stream(ask, ref, after, limit)
    except DamagedRecordError:
        # As above: purged, it has no snapshot any more that says what was trimmed.
        return await _stream(ask, ref, after, limit)


async def _stream(ask: Ask, ref: Ref, after: int, limit: int) -> list[EventRow]:
    found = await ask("stream", name_of(ref.workflow, ref.id), after, limit)
    events = [read_event(row) for row in found]
    if found and found[-1][1] - max(after, 0) != len(events):
        trimmed = await ask("trimmed", found[0][0])
        check_behind(events, max(after, 0), found[0][0], trimmed[0][0] if trimmed else 0)
    return events


async def feed(ask: Ask, after: int, limit: int) -> list[tuple[int, Ref, EventRow]]:
    """Return the events of all instances behind a position."""
    found = await ask("feed", after, limit)
    return [(row[0], Ref(row[1], row[2]), read_event(row[3:])) for row in found]


async def outlines(ask: Ask, spots: Sequence[OutlineSpot], limit: int) -> list[Outline]:
    """Return events of instances without their bodies."""
    rows = await ask("outlines", [key for key, _ in spots], [after for _, after in spots], limit)
    return cast("list[Outline]", rows)


async def inbox(ask: Ask, ref: Ref, limit: int) -> list[InputRow]:
    """Return what waits for an instance."""
    return [read_input(row) for row in await ask("inbox", name_of(ref.workflow, ref.id), limit)]


async def instances(ask: Ask, where: InstanceFilter, limit: int, after: int) -> list[InstanceRow]:
    """Return instances that match."""
    # Rows with a negative key are no instances.
    asked = (max(after, 0), *where.plain, limit, LAST_KEY)
    if not where.attributes:
        return [InstanceRow(*row) for row in await ask("search", *asked, packed(()))]
    first, *others = sorted(where.attributes, key=_is_number)
    rest = packed([astuple(other) for other in others])
    if first.text is None:
        found = await ask("search_by_number", *asked, rest, first.name, first.kind, first.low, first.high)
    else:
        found = await ask("search_by_text", *asked, rest, first.name, first.text)
    return [InstanceRow(*row) for row in found]


async def attributes(ask: Ask, ref: Ref) -> list[AttributeRow]:
    """Return what an instance can be found by."""
    return [AttributeRow(*row) for row in await ask("attributes", name_of(ref.workflow, ref.id))]


async def attempts(ask: Ask, ref: Ref, limit: int) -> list[Attempt]:
    """Return attempts at what an instance sent that failed."""
    return [Attempt(*row) for row in await ask("attempts", name_of(ref.workflow, ref.id), limit)]


async def outputs(ask: Ask, ref: Ref | None, timers: bool, limit: int) -> list[OutputClaim]:
    """Return outputs that are not carried out yet, the next due first."""
    if ref is None:
        spots = await ask("all_outputs", timers, limit)
    else:
        spots = await ask("instance_outputs", name_of(ref.workflow, ref.id), timers, limit)
    if not spots:
        return []
    rows = await ask("outputs", [spot[0] for spot in spots], [spot[1] for spot in spots])
    return [read_output(row) for row in rows]


async def dead_letters(ask: Ask, limit: int, after: int, ids: Sequence[int] | None) -> list[DeadLetter]:
    """Return dead letters, all or some."""
    if ids is not None:
        return [read_dead_letter(row) for row in await ask("dead_letters", after, limit, ids)]
    page = Page[Row, DeadLetter](limit, read_dead_letter)
    while page.wants:
        page.take(await ask("dead_letters", page.last[-1] if page.last else after, page.wants, None))
    return page.records


async def remembered(ask: Ask, key: str, now_us: int) -> Remembered | None:
    """Return a result that has not expired."""
    found = await ask("remembered", digest(key), now_us)
    return Remembered(*found[0]) if found else None


async def workers(ask: Ask) -> list[WorkerRow]:
    """Return the workers that are registered."""
    return [WorkerRow(*row) for row in await ask("registered")]


async def holds(ask: Ask, worker: int) -> list[OutputKey]:
    """Return the outputs that a worker holds."""
    return [OutputKey(*row) for row in await ask("holds", worker)]


async def holds_inputs(ask: Ask, worker: int) -> list[tuple[Ref, int]]:
    """Return the inputs that a worker holds, in their order."""
    return [(Ref(workflow, id), position) for workflow, id, position in await ask("holds_inputs", worker)]


async def stats(ask: Ask, now_us: int) -> Stats:
    """Return depths and ages."""
    counts = {row[0]: row[1] for row in await ask("status_counts")}
    (depths,) = await ask("depths", now_us)
    return Stats(counts, *depths)


async def waiting(ask: Ask, before_us: int) -> list[Waiting]:
    """Return how many inputs of each type wait since before a time."""
    return [Waiting(*row) for row in await ask("waiting", before_us)]


async def tally(ask: Ask) -> Tally:
    """Return how many instances there are by workflow and status."""
    return {(workflow, status): count for workflow, status, count in await ask("tally")}


def _after(loaded: Loaded) -> int:
    return loaded.snapshot.version if loaded.snapshot else 0


def _last(loaded: Loaded, most: int | None) -> int:
    version = loaded.row.version
    return version if most is None else min(version, _after(loaded) + most)


def _is_number(wanted: AttributeFilter) -> bool:
    """An equal text narrows more, and its instances come sorted."""
    return wanted.text is None
