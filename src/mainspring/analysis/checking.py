"""Many instances, checked: their streams are read in batches and walked, here or in several processes.

    here                             elsewhere
    listed ─▶ chunks of instances ─▶ read ─▶ walk ─▶ a report on each chunk
                                                          │
    one report  ◀────────────────────────────────────────┘

A process that helps loads the app itself and reads with its own connection; it carries nothing out.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import random
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from multiprocessing import connection
from multiprocessing.connection import Connection
from typing import Any, Final, TypeAlias

from mainspring.analysis.findings import Stored
from mainspring.analysis.streams import (
    DAMAGED,
    INSTANCES_PER_READ,
    PURGED,
    Stream,
    Unread,
    listed,
    pages,
    read,
)
from mainspring.analysis.walk import Walk
from mainspring.analysis.watch import Watch
from mainspring.analysis.what_if import EXAMPLES, Report, Tally
from mainspring.app import Mainspring
from mainspring.app.tuning import tune_process
from mainspring.engine.loader import pinned
from mainspring.engine.registry import Registry, WorkflowEntry
from mainspring.errors import CodecError, DamagedRecordError, NoSuchInstanceError, OperationError, told
from mainspring.port.records import InstanceFilter, InstanceRow, Loaded
from mainspring.port.store import Store

INSTANCES_PER_CHUNK: Final = 1_000
CHUNKS_ALONE: Final = 4
"""So many chunks are done sooner than other processes are started."""
END_SECONDS: Final = 10.0

NOT_KEPT: Final = "its history is not kept; its state can be read"
NOT_BEGUN: Final = "its first input has not been taken yet"

Load: TypeAlias = Callable[[], Mainspring]
"""Loads the app in another process: it must be a function that can be pickled."""
Progress: TypeAlias = Callable[[Report], None]

_SPAWN: Final = multiprocessing.get_context("spawn")


async def check(
    app: Mainspring,
    wheres: Sequence[InstanceFilter] = (InstanceFilter(),),
    *,
    sample: int | None = None,
    examples: int = EXAMPLES,
    load: Load | None = None,
    processes: int | None = None,
    on_progress: Progress | None = None,
) -> Report:
    """Walk the streams of the instances that the filters find with the code of an app that runs, and report.

    `sample` takes at most so many instances of each workflow, by chance, and the same ones every time. With `load`, and
    where there are many instances, so many `processes` share the work; as many as there are cores unless given.
    """
    tally = Tally(examples)
    chunks = _chunks(app.engine.store, wheres, sample)
    async for report in _reports(app, chunks, examples, load, processes or os.cpu_count() or 1):
        tally.add(report)
        if on_progress is not None:
            on_progress(report)
    return tally.report()


async def _reports(
    app: Mainspring, chunks: AsyncIterator[list[InstanceRow]], examples: int, load: Load | None, processes: int
) -> AsyncIterator[Report]:
    watch = Watch()
    if load is None or processes == 1:
        async for chunk in chunks:
            yield await check_chunk(app.engine.store, app.registry, chunk, examples, watch)
        return
    first: list[list[InstanceRow]] = []
    async for chunk in chunks:
        first.append(chunk)
        if len(first) > CHUNKS_ALONE:
            break
    if len(first) <= CHUNKS_ALONE:
        for chunk in first:
            yield await check_chunk(app.engine.store, app.registry, chunk, examples, watch)
        return
    async for report in _shared(load, _behind(first, chunks), examples, processes):
        yield report


async def _behind(first: list[list[InstanceRow]], rest: AsyncIterator[list[InstanceRow]]) -> AsyncIterator[Any]:
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
    chosen = await _sampled(store, wheres, sample)
    for begin in range(0, len(chosen), INSTANCES_PER_CHUNK):
        yield chosen[begin : begin + INSTANCES_PER_CHUNK]


async def _sampled(store: Store, wheres: Sequence[InstanceFilter], sample: int) -> list[InstanceRow]:
    """Return so many instances of each workflow, every one as likely as any other (a reservoir)."""
    chance = random.Random(0)  # noqa: S311  the same sample of the same instances, every time
    chosen: dict[str, list[InstanceRow]] = {}
    seen: dict[str, int] = {}
    async for rows in listed(store, wheres):
        for row in rows:
            mine = chosen.setdefault(row.workflow, [])
            seen[row.workflow] = seen.get(row.workflow, 0) + 1
            if len(mine) < sample:
                mine.append(row)
            elif (place := chance.randrange(seen[row.workflow])) < sample:
                mine[place] = row
    return sorted((row for rows in chosen.values() for row in rows), key=lambda row: row.key)


# ---- one chunk


async def check_chunk(
    store: Store, registry: Registry, rows: Sequence[InstanceRow], examples: int, watch: Watch
) -> Report:
    """Return the report on some instances."""
    tally = Tally(examples)
    for begin in range(0, len(rows), INSTANCES_PER_READ):
        for stream in await read(store, rows[begin : begin + INSTANCES_PER_READ]):
            if isinstance(stream, Unread):
                tally.unchecked(stream.row, stream.why)
            else:
                await _check(store, registry, stream, tally, watch)
    return tally.report()


async def _check(store: Store, registry: Registry, stream: Stream, tally: Tally, watch: Watch) -> None:
    row = stream.row
    entry = entry_of(registry, row)
    if isinstance(entry, str):
        tally.unchecked(row, entry)
        return
    snapshot = stream.snapshot
    stored = {} if snapshot is None else {snapshot.version: Stored(snapshot.type, snapshot.type_version, snapshot.body)}
    walk = Walk(entry, stream.ref, stored, tally.told(row, entry.version), watch)
    if snapshot is not None and snapshot.is_all:
        try:
            entry.recorder.state(snapshot)
            walk.gone = NOT_KEPT
        except CodecError as error:
            walk.unreadable_state(snapshot, error)
    elif row.version == 0:
        walk.gone = NOT_BEGUN
    elif stream.events[-1].version == row.version:
        walk.take(stream.events)
        walk.end()
    else:
        try:
            async for page in pages(store, stream):
                walk.take(page)
            walk.end()
        except DamagedRecordError:
            walk.gone = DAMAGED
        except NoSuchInstanceError:
            walk.gone = PURGED
    tally.walked(row, entry.version, walk)


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


# ---- several processes


async def _shared(
    load: Load, chunks: AsyncIterator[list[InstanceRow]], examples: int, processes: int
) -> AsyncIterator[Report]:
    """Let processes report on chunks: each has one at a time, and gets the next with its answer."""
    helpers = [_Helper(load, examples) for _ in range(processes)]
    try:
        busy: set[_Helper] = set()
        idle = list(helpers)
        async for chunk in chunks:
            if not idle:
                idle = await _answered(busy)
                for helper in idle:
                    yield helper.report()
            helper = idle.pop()
            helper.give(chunk)
            busy.add(helper)
        while busy:
            for helper in await _answered(busy):
                yield helper.report()
    finally:
        for helper in helpers:
            helper.dismiss()
        for helper in helpers:
            helper.wait()


async def _answered(busy: set[_Helper]) -> list[_Helper]:
    by_pipe = {helper.pipe: helper for helper in busy}
    ready = await asyncio.to_thread(connection.wait, list(by_pipe))
    answered = [helper for pipe, helper in by_pipe.items() if pipe in ready]
    busy.difference_update(answered)
    return answered


class _Helper:
    """A process that reports on the chunks that it is given, one after the other."""

    def __init__(self, load: Load, examples: int) -> None:
        self.pipe, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=_help, args=(load, examples, theirs), daemon=True)
        self._process.start()
        theirs.close()

    def give(self, chunk: list[InstanceRow]) -> None:
        self.pipe.send(chunk)

    def report(self) -> Report:
        try:
            answer: Report | str = self.pipe.recv()
        except EOFError:
            answer = f"it ended with exit code {self._exit_code()}"
        if isinstance(answer, str):
            raise OperationError("A process that helps to check", f"has failed: {answer}", "Try --processes 1.")
        return answer

    def dismiss(self) -> None:
        self.pipe.close()

    def wait(self) -> None:
        self._process.join(END_SECONDS)
        if self._process.is_alive():
            self._process.kill()
            self._process.join(END_SECONDS)

    def _exit_code(self) -> int | None:
        self._process.join(END_SECONDS)
        return self._process.exitcode


def _help(load: Load, examples: int, pipe: Connection) -> None:
    """Be such a process, until nobody gives any more."""
    # An interrupt at the terminal reaches all processes: who gave the work ends it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tune_process()
    try:
        # Not inside the loop: a module may run one of its own while it is imported.
        asyncio.run(_serve(load(), examples, pipe))
    except (EOFError, BrokenPipeError):
        return
    except Exception as error:  # noqa: BLE001  told to who waits for it
        pipe.send(told(error))


async def _serve(app: Mainspring, examples: int, pipe: Connection) -> None:
    watch = Watch()
    await app.start(work=False)
    try:
        while True:
            pipe.send(await check_chunk(app.engine.store, app.registry, pipe.recv(), examples, watch))
    finally:
        await app.stop()
