"""Many instances, checked: their streams are read in batches and walked, here or in several processes.

listed ─▶ chunks of instances ─▶ read ─▶ walk ─▶ a report on each chunk ─▶ one report

Streams in a file are checked as those in a database are: with the code of an app that need not run.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import Final, TypeAlias

from msgspec.structs import replace

from mainspring.analysis.export.stream_file import Item, read_file
from mainspring.analysis.processes import Sharing, shared
from mainspring.analysis.streams import (
    DAMAGED,
    INSTANCES_PER_READ,
    PURGED,
    Stream,
    Unread,
    listed,
    pages,
    read,
    sampled,
)
from mainspring.analysis.what_if.comparison import Comparison
from mainspring.analysis.what_if.contrast import Stored
from mainspring.analysis.what_if.old_code import EVENTS_PER_QUESTION, Beside, OldCode, OldStates, Part, Past, hold
from mainspring.analysis.what_if.report import EXAMPLES, Report, Tally
from mainspring.app import Mainspring
from mainspring.app.internals import internals_of
from mainspring.engine.inputs.stored_streams import pinned
from mainspring.engine.registry import Registry, WorkflowEntry
from mainspring.errors import CodecError, DamagedRecordError, NoSuchInstanceError
from mainspring.port.records import EventRow, InstanceFilter, InstanceRow, Loaded, Ref
from mainspring.port.store import Store
from mainspring.purity.guarding import Watch

INSTANCES_PER_CHUNK: Final = 1_000
CHUNKS_ALONE: Final = 4
"""So many chunks are done sooner than other processes are started."""

NOT_KEPT: Final = "its history is not kept; its state can be read"
NOT_BEGUN: Final = "its first input has not been taken yet"

Progress: TypeAlias = Callable[[Report], None]


async def check(
    app: Mainspring,
    wheres: Sequence[InstanceFilter] = (InstanceFilter(),),
    *,
    sample: int | None = None,
    examples: int = EXAMPLES,
    sharing: Sharing | None = None,
    against: OldCode | None = None,
    on_progress: Progress | None = None,
) -> Report:
    """Walk the streams of the instances that the filters find with the code of an app that runs, and report.

    `sample` takes at most that many instances of each workflow, at random but the same ones every time. Where there are
    many instances, the processes of `sharing` share the work. With `against`, every state is held against the one that
    the old code comes to.
    """
    tally = Tally(examples)
    chunks = _chunks(internals_of(app).engine.store, wheres, sample)
    work = _Work(examples, against)
    try:
        async for report in _reports(app, chunks, work, sharing):
            tally.add(report)
            if on_progress is not None:
                on_progress(report)
    finally:
        work.close()
    return replace(tally.report(), against=None if against is None else against.name)


async def check_sample(
    store: Store, registry: Registry, wheres: Sequence[InstanceFilter], sample: int, examples: int = EXAMPLES
) -> Report:
    """Walk the streams of a sample here and now, with the code in a registry; for an app that need not run."""
    tally, watch = Tally(examples), Watch()
    async for chunk in _chunks(store, wheres, sample):
        tally.add(await _report(store, registry, chunk, Tally(examples), watch))
    return tally.report()


async def _reports(
    app: Mainspring, chunks: AsyncIterator[list[InstanceRow]], work: _Work, sharing: Sharing | None
) -> AsyncIterator[Report]:
    if sharing is None or sharing.processes == 1:
        async for chunk in chunks:
            yield await work(app, chunk)
        return
    first: list[list[InstanceRow]] = []
    async for chunk in chunks:
        first.append(chunk)
        if len(first) > CHUNKS_ALONE:
            break
    if len(first) > CHUNKS_ALONE:
        async for report in shared(_behind(first, chunks), work, sharing):
            yield report
        return
    for chunk in first:
        yield await work(app, chunk)


async def _behind(
    first: list[list[InstanceRow]], rest: AsyncIterator[list[InstanceRow]]
) -> AsyncIterator[list[InstanceRow]]:
    for chunk in first:
        yield chunk
    async for chunk in rest:
        yield chunk


async def _chunks(
    store: Store, wheres: Sequence[InstanceFilter], sample: int | None
) -> AsyncIterator[list[InstanceRow]]:
    if sample is None:
        async for rows in listed(store, wheres):
            for begin in range(0, len(rows), INSTANCES_PER_CHUNK):
                yield rows[begin : begin + INSTANCES_PER_CHUNK]
        return
    chosen = await sampled(store, wheres, sample)
    for begin in range(0, len(chosen), INSTANCES_PER_CHUNK):
        yield chosen[begin : begin + INSTANCES_PER_CHUNK]


# ---- one chunk


class _Work:
    """Reports on chunks, one after the other; it travels to where the work is done."""

    def __init__(self, examples: int, against: OldCode | None) -> None:
        self._examples = examples
        self._against = against
        self._watch = Watch()
        self._old: OldStates | None = None

    async def __call__(self, app: Mainspring, chunk: Sequence[InstanceRow]) -> Report:
        if self._against is not None and self._old is None:
            self._old = await asyncio.to_thread(OldStates, self._against)
        return await _report(
            internals_of(app).engine.store,
            internals_of(app).registry,
            chunk,
            Tally(self._examples),
            self._watch,
            self._old,
        )

    def close(self) -> None:
        """End the process of the old code, if there is one here. Those of helpers end with their helpers."""
        if self._old is not None:
            self._old.close()


async def _report(
    store: Store,
    registry: Registry,
    rows: Sequence[InstanceRow],
    tally: Tally,
    watch: Watch,
    old: OldStates | None = None,
) -> Report:
    for begin in range(0, len(rows), INSTANCES_PER_READ):
        streams = await read(store, rows[begin : begin + INSTANCES_PER_READ])
        for group in [streams] if old is None else _groups(streams):
            # The loop may have other things to do than to wait for another process.
            pasts = {} if old is None else await asyncio.to_thread(_pasts, old, group)
            for stream in group:
                if isinstance(stream, Unread):
                    tally.unchecked(stream.row, stream.why)
                else:
                    await _check(store, registry, stream, tally, watch, old, pasts.get(stream.ref))
    return tally.report()


def _groups(streams: Sequence[Stream | Unread]) -> Iterator[list[Stream | Unread]]:
    """Yield streams that one question to the old code can hold: a switch between processes takes as long as a step."""
    group: list[Stream | Unread] = []
    events = 0
    for stream in streams:
        size = len(stream.events) if isinstance(stream, Stream) else 0
        if group and events + size > EVENTS_PER_QUESTION:
            yield group
            group, events = [], 0
        group.append(stream)
        events += size
    yield group


def _pasts(old: OldStates, group: Sequence[Stream | Unread]) -> dict[Ref, Past]:
    """Return what the old code makes of the streams that are there as a whole; longer ones are asked for in parts."""
    streams = [each for each in group if isinstance(each, Stream) and _is_short(each)]
    pasts = old.pasts([Part(each.events, each.row, ends=True) for each in streams])
    return {each.ref: past for each, past in zip(streams, pasts, strict=True)}


def _is_short(stream: Stream) -> bool:
    events = stream.events
    whole = bool(events) and events[-1].version == stream.row.version and stream.kept
    return whole and len(events) <= EVENTS_PER_QUESTION


async def _check(
    store: Store,
    registry: Registry,
    stream: Stream,
    tally: Tally,
    watch: Watch,
    old: OldStates | None,
    past: Past | None,
) -> None:
    row = stream.row
    entry = entry_of(registry, row)
    if isinstance(entry, str):
        tally.unchecked(row, entry)
        return
    snapshot = stream.snapshot
    stored = {} if snapshot is None else {snapshot.version: Stored(snapshot.type, snapshot.type_version, snapshot.body)}
    walk = Comparison(entry, stream.ref, stored, tally.told(row, entry.version), watch)
    if past is not None:
        hold(walk, past)
    beside = Beside(walk, row, old if past is None else None)
    if snapshot is not None and snapshot.is_all:
        try:
            entry.recorder.state(snapshot)
            walk.gone = NOT_KEPT
        except CodecError as error:
            walk.unreadable_state(snapshot, error)
    elif row.version == 0:
        walk.gone = NOT_BEGUN
    elif stream.events and stream.events[-1].version == row.version:
        await _take(beside, stream.events, ends=True)
    else:
        try:
            async for page in pages(store, stream):
                await _take(beside, page)
            await _take(beside, (), ends=True)
        except DamagedRecordError:
            walk.gone = DAMAGED
        except NoSuchInstanceError:
            walk.gone = PURGED
    tally.walked(row, entry.version, walk)


async def _take(beside: Beside, rows: Sequence[EventRow], *, ends: bool = False) -> None:
    if beside.old is None:
        beside.take(rows, ends=ends)
    else:
        await asyncio.to_thread(beside.take, rows, ends=ends)


def entry_of(registry: Registry, row: InstanceRow) -> WorkflowEntry | str:
    """Return the version of a workflow that an instance would run under, or why there is none."""
    newest = registry.workflows.get(row.workflow)
    if newest is None:
        return f"this app has no workflow {row.workflow}"
    entry = pinned(newest, Loaded(row, None, []))
    if entry is None:
        version = f"version {row.definition_version} of {row.workflow}"
        return f"it runs under {version}, and this app knows {newest.known()}"
    return entry


ITEMS_AT_ONCE: Final = 1_000
NO_VERSION: Final = "an archive does not say which version of its workflow it ran under, and this app has several"


def check_file(
    app: Mainspring,
    path: Path,
    wanted: Callable[[InstanceRow], bool] = lambda _: True,
    *,
    examples: int = EXAMPLES,
    against: OldCode | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> Report:
    """Walk the streams of a file that `export` or a purge has written with the code of an app, and report.

    The app is not started. With `against`, every state is held against the one that the old code comes to.
    `on_progress` is called with the number of lines read since its last call.
    """
    internals_of(app).registry.add_publication()
    internals_of(app).registry.add_fan_out()
    with nullcontext() if against is None else OldStates(against) as old:
        check = _Check(internals_of(app).registry, wanted, examples, old)
        items = read_file(path, internals_of(app).seal)
        while page := list(islice(items, ITEMS_AT_ONCE)):
            for item in page:
                check.take(item)
            if on_progress is not None:
                on_progress(len(page))
        check.close()
    return replace(check.tally.report(), against=None if against is None else against.name)


class _Check:
    """Takes the items of a file, one after the other; one instance is open at a time."""

    def __init__(
        self, registry: Registry, wanted: Callable[[InstanceRow], bool], examples: int, old: OldStates | None
    ) -> None:
        self.tally = Tally(examples)
        self._registry = registry
        self._wanted = wanted
        self._watch = Watch()
        self._old = old
        self._rows: list[EventRow] = []
        self._row: InstanceRow | None = None
        self._entry: WorkflowEntry | None = None
        self._beside: Beside | None = None

    def take(self, item: Item) -> None:
        beside = self._beside
        if isinstance(item, InstanceRow):
            self.close()
            self._begin(item)
        elif beside is None:
            return
        elif isinstance(item, EventRow):
            self._rows.append(item)
            if len(self._rows) == EVENTS_PER_QUESTION:
                self._give(beside)
        elif beside.walk.gone is None:
            self._give(beside)
            beside.walk.stop(item.why, inside=item.inside)

    def close(self) -> None:
        """Count the instance that is open."""
        beside, entry, row = self._beside, self._entry, self._row
        self._beside = None
        if beside is not None and entry is not None and row is not None:
            self._give(beside, ends=True)
            self.tally.walked(row, entry.version, beside.walk)

    def _give(self, beside: Beside, *, ends: bool = False) -> None:
        rows, self._rows = self._rows, []
        beside.take(rows, ends=ends)

    def _begin(self, row: InstanceRow) -> None:
        if not self._wanted(row):
            return
        entry = entry_of(self._registry, row)
        if not isinstance(entry, str) and not row.definition_version and len(entry.versions) > 1:
            entry = NO_VERSION
        if isinstance(entry, str):
            self.tally.unchecked(row, entry)
            return
        self._row, self._entry = row, entry
        told = self.tally.told(row, entry.version)
        walk = Comparison(entry, Ref(row.workflow, row.id), told=told, watch=self._watch)
        self._beside = Beside(walk, row, self._old)


def matches(where: InstanceFilter, row: InstanceRow) -> bool:
    """Return True if a filter finds an instance, by all that a file says of it.

    >>> matches(InstanceFilter(status="running"), InstanceRow(7, "W", "i", 1, "failed", None, None, 1, b"{}", 0, 0))
    False

    An archive does not say under which version of its workflow an instance ran, so that is asked of exports alone.

    >>> matches(InstanceFilter(workflow_version=2), InstanceRow(7, "W", "i", 1, "failed", None, None, 1, b"{}", 0, 0))
    False
    """
    return all(_conditions(where, row))


def _conditions(where: InstanceFilter, row: InstanceRow) -> Iterator[bool]:
    yield where.workflow in (None, row.workflow)
    yield where.status in (None, row.status)
    yield where.state in (None, row.state)
    yield where.workflow_version in (None, row.definition_version or where.workflow_version)
    yield row.id.startswith(where.id_prefix or "")
    yield (where.error or "") in (row.error or "")
    yield where.created_from_us is None or row.created_us >= where.created_from_us
    yield where.created_to_us is None or row.created_us < where.created_to_us
    yield where.updated_from_us is None or row.updated_us >= where.updated_from_us
    yield where.updated_to_us is None or row.updated_us < where.updated_to_us
