"""Streams as they are stored: read whole, in part, or folded into the present state."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from mainspring.core.saga import Ledger
from mainspring.engine.inputs.branches import branches
from mainspring.engine.inputs.long_streams import (
    EVENTS_AT_ONCE,
    Lull,
    folded_at_once,
    folded_in_pieces,
    is_long,
    trusts,
)
from mainspring.engine.recording.saga_rows import take_row
from mainspring.engine.registry import WorkflowEntry
from mainspring.engine.watching.code_watch import Load
from mainspring.errors import OperationError
from mainspring.port.records import EventRow, InstanceFilter, InstanceRow, Loaded, Ref
from mainspring.port.store import Store

EVENTS_PER_PAGE: Final = 1_000
EVENTS_NEAR: Final = 100


async def row_alone(store: Store, ref: Ref) -> InstanceRow | None:
    """Return an instance's row without its stream, which may be damaged; None if the row is, or if there is none."""
    after = 0
    while rows := await store.instances(InstanceFilter(ref.workflow, id_prefix=ref.id), 100, after):
        for row in rows:
            if row.id == ref.id:
                return row
        after = rows[-1].key
    return None


def pinned(entry: WorkflowEntry, loaded: Loaded | None) -> WorkflowEntry | None:
    """Return the version of a workflow that an instance runs under; None if this process knows only older ones."""
    return entry.newest if loaded is None else entry.at(loaded.row.definition_version)


def readable(entry: WorkflowEntry, loaded: Loaded) -> WorkflowEntry:
    """Return the version of a workflow that an instance runs under, or raise if this process knows only older ones."""
    found = pinned(entry, loaded)
    if found is None:
        row = loaded.row
        raise OperationError(
            f"{row.workflow}/{row.id}",
            f"runs under version {row.definition_version} of its definition, and this process knows {entry.known()}",
            "Upgrade this process to the code that has that version.",
        )
    return found


def refuse_unkept(loaded: Loaded, problem: str) -> None:
    """Raise an OperationError for what needs the history of an instance of which only the state is kept."""
    if loaded.snapshot is not None and loaded.snapshot.is_all:
        row = loaded.row
        raise OperationError(
            f"{row.workflow}/{row.id}",
            f"{problem}: its history is not kept",
            f"Its state at position {row.version} is all there is.",
        )


async def present_state(store: Store, entry: WorkflowEntry, loaded: Loaded, lull: Lull) -> Any:
    """Return the state of an instance of which the first events were loaded; the rest is read here."""
    ref = Ref(loaded.row.workflow, loaded.row.id)
    folded = await folded_in_pieces(store, entry, loaded, lull) if is_long(entry, loaded) else None
    if folded is None:
        whole = (await store.load([ref]))[0] if is_long(entry, loaded) else loaded
        folded = folded_at_once(entry, await trusted(store, entry, whole) or loaded)
    if folded.error is not None:
        raise folded.error
    return folded.state


async def trusted(store: Store, entry: WorkflowEntry | None, loaded: Loaded | None) -> Loaded | None:
    """Return what was loaded, with the whole stream instead of a snapshot that other code made or that is abandoned.

    Where the history is not kept, the snapshot is the truth, whichever code made it.
    """
    if entry is None or loaded is None or loaded.snapshot is None or loaded.snapshot.is_all:
        return loaded
    if trusts(entry, loaded.snapshot) and not any(branches(row) for row in loaded.events):
        return loaded
    rows = await whole_stream(store, Ref(loaded.row.workflow, loaded.row.id))
    # It may have moved since its row was read: what is folded is that row's version, and no later one.
    return Loaded(loaded.row, None, [row for row in rows if row.version <= loaded.row.version])


async def read_ledger(store: Store, entry: WorkflowEntry, ref: Ref, lull: Lull, known: Ledger | None = None) -> Ledger:
    """Return an instance's ledger, from its whole stream, a long one in lulls of what others do.

    What is `known` of it is not read again.
    """
    ledger = Ledger() if known is None else known.copy()
    while page := await store.stream(ref, ledger.version, EVENTS_AT_ONCE):
        entry.watch.call(Load(ref, f"{len(page)} recorded events"), _take_rows, ledger, entry, page)
        ledger.version = page[-1].version
        if len(page) < EVENTS_AT_ONCE:
            break
        await lull()
    return ledger


def _take_rows(ledger: Ledger, entry: WorkflowEntry, rows: Iterable[EventRow]) -> None:
    for row in rows:
        take_row(ledger, entry.recorder, row)


async def rows_at(store: Store, ref: Ref, versions: Iterable[int]) -> dict[int, EventRow]:
    """Return the events of an instance at some versions, by these; those that are near each other in one read."""
    sought, found = sorted(versions), dict[int, EventRow]()
    while sought and (page := await store.stream(ref, sought[0] - 1, EVENTS_NEAR)):
        found |= {row.version: row for row in page if row.version in sought}
        sought = [version for version in sought if version > page[-1].version]
    return found


async def whole_stream(store: Store, ref: Ref, after: int = 0) -> list[EventRow]:
    """Return all events of an instance behind a version, read page by page; none of a purged one."""
    rows: list[EventRow] = []
    while True:
        page = await store.stream(ref, rows[-1].version if rows else after, EVENTS_PER_PAGE)
        begun = bool(rows)
        rows.extend(page)
        if len(page) < EVENTS_PER_PAGE:
            # Purged between two pages, it has no stream at all, and not the first pages of one.
            return rows if not begun or await store.stream(ref, after, 1) else []
