"""Where an instance of a flow waits, now or behind an earlier position."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeAlias

from msgspec.structs import replace

from mainspring.app.states import checked_version
from mainspring.engine.inputs.branches import branches, live
from mainspring.engine.inputs.long_streams import state_by
from mainspring.engine.inputs.stored_streams import pinned, whole_stream
from mainspring.engine.registry import Registry, WorkflowEntry
from mainspring.engine.watching.code_watch import Load
from mainspring.errors import ErasedError, told
from mainspring.flows.flow import Flow
from mainspring.flows.waiting import waiting_at
from mainspring.port.records import EventRow, Loaded, Ref
from mainspring.port.store import Store
from mainspring.views import WaitsAt

_STEPS: Final = frozenset({"InitiatedBy", "Received", "AnswerRefused"})
_ENDS: Final = frozenset({"Completed", "Failed", "Cancelled", "Terminated", "Compensating"})
_DRIFTED: Final = "today's code ends behind this position, and what is recorded does not"

Compute: TypeAlias = Callable[[Callable[[], WaitsAt]], Awaitable[WaitsAt]]
"""Runs authors' code somewhere, for so long as it may."""


async def waits_at(
    store: Store,
    registry: Registry,
    loaded: Loaded,
    at: int | None = None,
    *,
    values: bool = True,
    compute: Compute | None = None,
) -> WaitsAt:
    """Return at which lines an instance waits behind the step to which a position belongs; None: now."""
    position = checked_version(loaded, at)
    rows, entry = await _rows_and_entry(store, registry, loaded, position)

    def run() -> WaitsAt:
        return _read(loaded, rows, entry, position, values=values)

    return run() if compute is None else await compute(run)


def is_kept(loaded: Loaded) -> bool:
    """Return True for an instance whose history is kept, and not its state alone."""
    return loaded.snapshot is None or not loaded.snapshot.is_all


def is_flow(entry: WorkflowEntry) -> bool:
    """Return True for a workflow whose code waits at lines."""
    return isinstance(entry.workflow, Flow)


async def _rows_and_entry(
    store: Store, registry: Registry, loaded: Loaded, end: int
) -> tuple[Sequence[EventRow], WorkflowEntry | None]:
    """Return the events up to the end of the step of a position, and the workflow that reads them."""
    ref = Ref(loaded.row.workflow, loaded.row.id)
    known = registry.workflows.get(ref.workflow)
    entry = None if known is None else pinned(known, loaded)
    if entry is None or not is_flow(entry):
        return (), entry
    return _whole_steps(await whole_stream(store, ref), end), entry


def _read(
    loaded: Loaded, rows: Sequence[EventRow], entry: WorkflowEntry | None, position: int, *, values: bool
) -> WaitsAt:
    """Run the code on the events, as long as other code of authors may run, and return where it waits."""
    ref = Ref(loaded.row.workflow, loaded.row.id)
    if entry is None:
        which = f"{ref.workflow} of version {loaded.row.definition_version} or newer"
        return WaitsAt(position, problem=f"this app has no workflow {which}")
    flow: Any = entry.workflow
    if not is_flow(entry):
        return WaitsAt(position, is_flow=False)
    try:
        state = state_by(entry, ref, rows)
        load = Load(ref, f"where it waits behind {len(rows):,} recorded events")
        found = entry.watch.call(load, lambda: waiting_at(flow, state, position, values=values))
    except ErasedError as error:
        return WaitsAt(position, problem=f"its code cannot be run once more: {error}")
    except Exception as error:  # noqa: BLE001  an author's code may raise anything
        return WaitsAt(position, problem=f"its code cannot be run once more: {told(error)}")
    ended = any(row.event in _ENDS for row in live(rows))
    if found.ended and not ended:
        return replace(found, ended=False, problem=_DRIFTED)
    return replace(found, ended=ended)


def _whole_steps(rows: Sequence[EventRow], end: int) -> Sequence[EventRow]:
    """Return the events up to a position and to the end of its step: in the middle of one, no code waits anywhere."""
    found = [row for row in rows if row.version <= end]
    for row in rows[len(found) :]:
        begins = row.event == "InitiatedBy" and found[-1].event == "Began"
        if (row.event in _STEPS and not begins) or branches(row):
            break
        found.append(row)
    return found
