"""The loader: states from the store, many instances in one read."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from mainspring.core.fold import fold
from mainspring.engine.lanes import Lane
from mainspring.engine.registry import WorkflowEntry
from mainspring.engine.runtime import Runtime
from mainspring.errors import MainspringError
from mainspring.port.records import EventRow, Loaded, Ref
from mainspring.port.store import Store

INSTANCES_PER_LOAD: Final = 500
EVENTS_PER_PAGE: Final = 10_000
PAUSE_AFTER_STORE_ERROR_SECONDS: Final = 1.0

log = logging.getLogger("mainspring.engine")


class Loader:
    """Loads lanes in batches, and calls `ready` with each."""

    def __init__(self, store: Store, runtime: Runtime, ready: Callable[[Lane], None]) -> None:
        self._store = store
        self._runtime = runtime
        self._ready = ready
        self._wanted: list[Lane] = []
        self._running = False

    def request(self, lane: Lane) -> None:
        """Load a lane soon."""
        lane.loading = True
        self._wanted.append(lane)
        if not self._running:
            self._running = True
            self._runtime.spawn(self._run(), "mainspring-loader")

    async def _run(self) -> None:
        while self._wanted:
            lanes = self._wanted[:INSTANCES_PER_LOAD]
            del self._wanted[:INSTANCES_PER_LOAD]
            try:
                found = [
                    await trusted(self._store, lane.entry, loaded)
                    for lane, loaded in zip(lanes, await self._store.load([lane.ref for lane in lanes]), strict=True)
                ]
            except MainspringError as error:
                log.warning("loading failed, will be tried again: %s", error)
                self._wanted[:0] = lanes
                await self._runtime.clock.sleep(PAUSE_AFTER_STORE_ERROR_SECONDS)
                continue
            for lane, loaded in zip(lanes, found, strict=True):
                self._fill(lane, loaded)
        self._running = False

    def _fill(self, lane: Lane, loaded: Loaded | None) -> None:
        lane.forget()
        if loaded is not None:
            row = loaded.row
            lane.exists = True
            lane.key, lane.version, lane.context = row.key, row.version, row.context
            lane.status, lane.error = row.status, row.error
            try:
                lane.state, lane.snapshot_version = state_of(lane.entry, loaded)
            except Exception as error:  # noqa: BLE001  a stream that cannot be folded blocks its own instance only
                lane.fold_error = error
        lane.loaded = True
        lane.loading = False
        self._ready(lane)


def state_of(entry: WorkflowEntry, loaded: Loaded) -> tuple[Any, int]:
    """Return the state, and the version of the snapshot that it was built on (0 for none)."""
    snapshot = loaded.snapshot
    state: Any = entry.workflow.initial_state if snapshot is None else entry.recorder.state(snapshot)
    events = entry.recorder.folded(loaded.events)
    return fold(entry.workflow, state, events), snapshot.version if snapshot else 0


async def trusted(store: Store, entry: WorkflowEntry, loaded: Loaded | None) -> Loaded | None:
    """Return what was loaded, with the whole stream instead of a snapshot that other code made."""
    if loaded is None or loaded.snapshot is None or loaded.snapshot.fingerprint == entry.fingerprint:
        return loaded
    return Loaded(loaded.row, None, await whole_stream(store, Ref(loaded.row.workflow, loaded.row.id)))


async def whole_stream(store: Store, ref: Ref, after: int = 0) -> list[EventRow]:
    """Return all events of an instance behind a version, read page by page."""
    rows: list[EventRow] = []
    while True:
        page = await store.stream(ref, rows[-1].version if rows else after, EVENTS_PER_PAGE)
        rows.extend(page)
        if len(page) < EVENTS_PER_PAGE:
            return rows
