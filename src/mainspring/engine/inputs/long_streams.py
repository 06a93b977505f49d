"""Long streams: read and folded in pieces, so that all others make progress meanwhile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeAlias

from msgspec import Struct

from mainspring.core.fold import fold
from mainspring.engine.inputs.branches import abandoned, branches, live
from mainspring.engine.recording.children import CHILDREN_MARK, STARTS, has_children
from mainspring.engine.registry import WorkflowEntry
from mainspring.engine.watching.code_watch import Load
from mainspring.port.records import EventRow, Loaded, Ref, Snapshot
from mainspring.port.store import Store

# A turn of the event loop that folds so many takes about a millisecond.
EVENTS_AT_ONCE: Final = 100

Lull: TypeAlias = Callable[[], Awaitable[None]]
"""Returns when others have had their turns."""


class Folded(Struct):
    """What the events of an instance have come to.

    `error` says why they cannot be folded; `asked`, `children` and `abandoned` are what a lane knows of them.
    """

    state: Any
    snapshot_version: int
    asked: bool
    children: bool
    abandoned: frozenset[int] = frozenset()
    error: Exception | None = None


def trusts(entry: WorkflowEntry, snapshot: Snapshot) -> bool:
    """Return True if a snapshot was made by this very code, or is all there is."""
    return snapshot.is_all or snapshot.fingerprint.removesuffix(CHILDREN_MARK) == entry.fingerprint


def is_long(entry: WorkflowEntry, loaded: Loaded, *, whole: bool = False) -> bool:
    """Return True if there is more to fold than should be folded at once; with `whole`, whatever snapshot there is."""
    row, snapshot = loaded.row, loaded.snapshot
    after = snapshot.version if snapshot and trusts(entry, snapshot) and not whole else 0
    return row.purged_us is None and row.version - after > EVENTS_AT_ONCE


def folded_at_once(entry: WorkflowEntry, loaded: Loaded) -> Folded:
    """Fold all that was loaded."""
    snapshot = loaded.snapshot
    folded = Folded(
        state=entry.workflow.initial_state,
        snapshot_version=0,
        # What stands before a snapshot was not read: it may have opened a task.
        asked=snapshot is not None or any(event.event == "Asked" for event in loaded.events),
        children=has_children(loaded),
        abandoned=abandoned(loaded.events),
    )
    try:
        folded.state, folded.snapshot_version = state_of(entry, loaded)
    except Exception as error:  # noqa: BLE001  a stream that cannot be folded blocks its own instance only
        folded.error = error
    return folded


async def folded_in_pieces(store: Store, entry: WorkflowEntry, loaded: Loaded, lull: Lull) -> Folded | None:
    """Fold a long stream up to the version of its row, a page at a time, each in a lull of what others do.

    None: it has branches, and what counts of it is known at its end only; or it has been purged meanwhile.
    """
    snapshot = loaded.snapshot if loaded.snapshot and trusts(entry, loaded.snapshot) else None
    ref, last = Ref(loaded.row.workflow, loaded.row.id), loaded.row.version
    version = snapshot.version if snapshot else 0
    folded = Folded(entry.workflow.initial_state, version, snapshot is not None, has_children(loaded))
    try:
        if snapshot is not None:
            folded.state = entry.watch.call(Load(ref, "its snapshot"), entry.recorder.state, snapshot)
    except Exception as error:  # noqa: BLE001  as above
        folded.error = error
    while version < last:
        await lull()
        page = await store.stream(ref, version, min(EVENTS_AT_ONCE, last - version))
        if not page or page[-1].version - version != len(page) or any(branches(row) for row in page):
            return None
        _take(folded, entry, ref, page)
        version = page[-1].version
    return folded


def _take(folded: Folded, entry: WorkflowEntry, ref: Ref, page: list[EventRow]) -> None:
    folded.asked = folded.asked or any(row.event == "Asked" for row in page)
    folded.children = folded.children or any(row.event in STARTS for row in page)
    if folded.error is not None:
        return
    try:
        load = Load(ref, f"{len(page)} recorded events")
        folded.state = entry.watch.call(load, _fold, entry, ref, folded.state, page)
    except Exception as error:  # noqa: BLE001  as above
        folded.error = error


def state_of(entry: WorkflowEntry, loaded: Loaded) -> tuple[Any, int]:
    """Return the state, and the version of the snapshot that it was built on (0 for none)."""
    ref = Ref(loaded.row.workflow, loaded.row.id)
    load = Load(ref, f"{len(loaded.events):,} recorded events at once")
    return entry.watch.call(load, _state_of, entry, loaded)


def state_by(entry: WorkflowEntry, ref: Ref, rows: Sequence[EventRow]) -> Any:
    """Return the state that those of a stream's first events lead to that count."""
    load = Load(ref, f"{len(rows):,} recorded events at once")
    return entry.watch.call(load, _fold, entry, ref, entry.workflow.initial_state, live(rows))


def _state_of(entry: WorkflowEntry, loaded: Loaded) -> tuple[Any, int]:
    snapshot = loaded.snapshot
    state: Any = entry.workflow.initial_state if snapshot is None else entry.recorder.state(snapshot)
    ref = Ref(loaded.row.workflow, loaded.row.id)
    return _fold(entry, ref, state, live(loaded.events)), snapshot.version if snapshot else 0


def _fold(entry: WorkflowEntry, ref: Ref, state: Any, rows: Sequence[EventRow]) -> Any:
    return fold(entry.workflow, state, entry.recorder.folded(ref, rows))
