"""The read side: questions that a reader thread asks on its own connection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, cast

import apsw
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
from mainspring.port.suspects import Suspect
from mainspring.port.workers import WorkerRow
from mainspring.stores.commit.rows import (
    check_behind,
    check_complete,
    read_dead_letter,
    read_event,
    read_input,
    read_instance,
    read_snapshot,
)
from mainspring.stores.sqlite.outputs import checked_output
from mainspring.stores.sqlite.searching import LAST_KEY, few_of, of_few
from mainspring.stores.sqlite.sql import packed, rows, savepoint

Row: TypeAlias = tuple[Any, ...]

_INSTANCE = slice(1, 15)
_SNAPSHOT = slice(15, 22)


def load(connection: apsw.Connection, refs: Sequence[Ref], most: int | None) -> list[Loaded | None]:
    """Return each instance with what is needed to fold it, or the first part of that, all as of one moment."""
    with savepoint(connection):  # one read transaction: rows and events fit together
        found: dict[int, Loaded] = {}
        for row in rows(connection, "load_instances", packed([(ref.workflow, ref.id) for ref in refs])):
            found[row[0]] = Loaded(read_instance(row[_INSTANCE]), read_snapshot(row[_SNAPSHOT]), [])
        by_key = {loaded.row.key: loaded for loaded in found.values()}
        whole = {key: loaded for key, loaded in by_key.items() if loaded.row.purged_us is None}
        behind = [(key, _after(loaded), _last(loaded, most)) for key, loaded in whole.items()]
        for row in rows(connection, "load_events", packed(behind)):
            by_key[row[0]].events.append(read_event(row))
    for key, after, last in behind:
        version = by_key[key].row.version
        check_complete(by_key[key].events, after, key, version if last is None else last)
    return [by_key[found[index].row.key] if index in found else None for index in range(len(refs))]


def stream(connection: apsw.Connection, ref: Ref, after: int, limit: int) -> list[EventRow]:
    """Return the events of an instance behind a version."""
    after = max(after, 0)
    with savepoint(connection):  # one read transaction: what is there and what was trimmed fit together
        found = rows(connection, "stream", ref.workflow, ref.id, after, limit)
        gaps = bool(found) and found[-1][1] - after != len(found)
        trimmed = rows(connection, "trimmed", found[0][0]) if gaps else []
        end = rows(connection, "stream_end", ref.workflow, ref.id) if len(found) < limit else []
    events = [read_event(row) for row in found]
    for key, version in end:
        if after < version != (events[-1].version if events else after):
            raise DamagedRecordError("events", f"instance {key}, version {version} is missing")
    if gaps:
        check_behind(events, after, found[0][0], trimmed[0][0] if trimmed else 0)
    return events


def feed(connection: apsw.Connection, after: int, limit: int) -> list[tuple[int, Ref, EventRow]]:
    """Return the events of all instances behind a position."""
    found = rows(connection, "feed", after, limit)
    return [(row[0], Ref(row[1], row[2]), read_event(row[3:])) for row in found]


def outlines(connection: apsw.Connection, spots: Sequence[OutlineSpot], limit: int) -> list[Outline]:
    """Return events of instances without their bodies."""
    return cast("list[Outline]", rows(connection, "outlines", packed(spots), limit))


def inbox(connection: apsw.Connection, ref: Ref, limit: int) -> list[InputRow]:
    """Return what waits for an instance."""
    return [read_input(row) for row in rows(connection, "inbox", ref.workflow, ref.id, limit)]


def instances(connection: apsw.Connection, where: InstanceFilter, limit: int, after: int) -> list[InstanceRow]:
    """Return instances that match."""
    page = Page[Row, InstanceRow](limit, read_instance)
    with savepoint(connection):  # one read transaction: what an index has found is still there
        few = few_of(connection, where)
        while page.wants:
            behind = page.last[0] if page.last else after
            page.take(_instances(connection, where, page.wants, behind, few))
    return page.records


def _instances(
    connection: apsw.Connection, where: InstanceFilter, limit: int, after: int, few: list[int] | None
) -> list[Row]:
    if few is not None:
        return of_few(connection, few, where, limit, after)
    asked = (after, *where.plain, limit, LAST_KEY)
    if not where.attributes:
        return rows(connection, "search", *asked, packed(()))
    first, *others = sorted(where.attributes, key=_is_number)
    rest = packed([astuple(other) for other in others])
    if first.text is None:
        return rows(connection, "search_by_number", *asked, rest, first.name, first.kind, first.low, first.high)
    return rows(connection, "search_by_text", *asked, rest, first.name, first.text)


def attributes(connection: apsw.Connection, ref: Ref) -> list[AttributeRow]:
    """Return what an instance can be found by."""
    return [AttributeRow(*row) for row in rows(connection, "attributes", ref.workflow, ref.id)]


def attempts(connection: apsw.Connection, ref: Ref, limit: int) -> list[Attempt]:
    """Return attempts at what an instance sent that failed."""
    return [Attempt(*row) for row in rows(connection, "attempts", ref.workflow, ref.id, limit)]


def outputs(connection: apsw.Connection, ref: Ref | None, timers: bool, limit: int) -> list[OutputClaim]:
    """Return outputs that are not carried out yet, the next due first."""
    with savepoint(connection):
        if ref is None:
            spots = rows(connection, "all_outputs", int(timers), limit)
        else:
            spots = rows(connection, "instance_outputs", ref.workflow, ref.id, int(timers), limit)
        return [checked_output(row) for row in rows(connection, "claimed_outputs", packed(spots))]


def dead_letters(connection: apsw.Connection, limit: int, after: int, ids: Sequence[int] | None) -> list[DeadLetter]:
    """Return dead letters, all or some."""
    if ids is not None:
        return [read_dead_letter(row) for row in rows(connection, "dead_letters_by_id", after, limit, packed(ids))]
    page = Page[Row, DeadLetter](limit, read_dead_letter)
    while page.wants:
        page.take(rows(connection, "dead_letters", page.last[-1] if page.last else after, page.wants))
    return page.records


def remembered(connection: apsw.Connection, key: str, now_us: int) -> Remembered | None:
    """Return a result that has not expired."""
    found = rows(connection, "remembered", key, now_us)
    return Remembered(*found[0]) if found else None


def workers(connection: apsw.Connection) -> list[WorkerRow]:
    """Return the workers that are registered."""
    return [WorkerRow(*row) for row in rows(connection, "workers")]


def holds(connection: apsw.Connection, worker: int) -> list[OutputKey]:
    """Return the outputs that a worker holds."""
    return [OutputKey(*row) for row in rows(connection, "holds", worker)]


def holds_inputs(connection: apsw.Connection, worker: int) -> list[tuple[Ref, int]]:
    """Return the inputs that a worker holds, in their order."""
    return [(Ref(workflow, id), position) for workflow, id, position in rows(connection, "holds_inputs", worker)]


def suspects(connection: apsw.Connection, limit: int) -> list[Suspect]:
    """Return what was lost with its workers."""
    found = rows(connection, "suspects", limit)
    return [
        Suspect(workflow, id, type, version, lost, destination, bool(aside), type_version, position)
        for workflow, id, type, version, lost, destination, aside, type_version, position in found
    ]


def stats(connection: apsw.Connection, now_us: int) -> Stats:
    """Return depths and ages, all as of one moment."""
    with savepoint(connection):
        counts = dict(rows(connection, "status_counts"))
        return Stats(counts, *rows(connection, "depths", now_us)[0])


def waiting(connection: apsw.Connection, before_us: int) -> list[Waiting]:
    """Return how many inputs of each type wait since before a time."""
    return [Waiting(*row) for row in rows(connection, "waiting", before_us)]


def tally(connection: apsw.Connection) -> Tally:
    """Return how many instances there are by workflow and status."""
    return {(workflow, status): count for workflow, status, count in rows(connection, "tally")}


def _after(loaded: Loaded) -> int:
    return loaded.snapshot.version if loaded.snapshot else 0


def _last(loaded: Loaded, most: int | None) -> int | None:
    """Return the version at which reading stops before the stream's end."""
    if most is None or _after(loaded) + most >= loaded.row.version:
        return None
    return _after(loaded) + most


def _is_number(wanted: AttributeFilter) -> bool:
    """An equal text narrows more, and its instances come sorted."""
    return wanted.text is None
