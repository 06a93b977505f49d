"""Orders: to pause and to resume. Any process reads them from the fleet's instance, and gives them to it.

Both go past the lanes and the inbox. What is paused must be readable where a record of old is not, and the giver of an
order wants to know that it took effect, also where no worker runs that would take it in.
"""

from __future__ import annotations

import asyncio
from functools import cache
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from mainspring.codec import Codec
from mainspring.core.fold import fold
from mainspring.core.messages import Kind
from mainspring.core.step import step
from mainspring.engine.committing.committer import Committer
from mainspring.engine.inputs.branches import live
from mainspring.engine.inputs.long_streams import EVENTS_AT_ONCE
from mainspring.engine.inputs.pending import Pending
from mainspring.engine.inputs.stored_streams import row_alone, whole_stream
from mainspring.engine.operations.pauses import FLEET, Paused, Pauses, PauseWork, ResumeWork
from mainspring.engine.registry import Registry, WorkflowEntry
from mainspring.engine.runtime import Runtime
from mainspring.engine.stepping.lanes import Lane, Lanes
from mainspring.engine.stepping.step_unit import StepUnits
from mainspring.errors import DamagedRecordError, OperationError, StoreError
from mainspring.port.records import ENDED, Committed, Conflict, Context, EventRow, InstanceRow, Unit
from mainspring.port.store import Store

ORDER_SECONDS: Final = 30.0
"""For so long an order is retried while others give theirs, by the loop's time: a clock may stand still."""

WAY_OUT: Final = (
    "Give this process the keys and the code to read it; "
    "or `mainspring terminate mainspring.Pauses/fleet`, and pause anew."
)


class Orders(Struct, frozen=True):
    """What is recorded: the instance's row, what is paused, and why that cannot be read, if so.

    >>> Orders().state.pauses
    ()
    """

    row: InstanceRow | None = None
    state: Paused = Paused()
    error: Exception | None = None


async def read_orders(store: Store) -> Orders:
    """Return what is recorded. Nothing is paused where that cannot be read, or where the instance has ended."""
    row = await row_of_fleet(store)
    if row is None or not row.version or row.status in ENDED:
        return Orders(row)
    try:
        events = _entry().recorder.folded(FLEET, list(await _counting(store, row.version)))
        return Orders(row, fold(_entry().workflow, Paused(), events))
    except Exception as error:
        if _is_trouble(error):
            raise
        return Orders(row, error=error)


class PauseOrders:
    """Gives orders: each is one commit on the very version that was read, retried when others were first."""

    def __init__(self, store: Store, registry: Registry, committer: Committer, runtime: Runtime, lanes: Lanes) -> None:
        self._store = store
        self._registry = registry
        self._committer = committer
        self._runtime = runtime
        self._lanes = lanes

    async def give(self, order: PauseWork | ResumeWork, actor: str | None) -> bool:
        """Record an order, and return when it is. False: it resumes what is not paused, and nothing is recorded."""
        loop = asyncio.get_running_loop()
        deadline_seconds = loop.time() + ORDER_SECONDS
        while loop.time() < deadline_seconds:
            found = await read_orders(self._store)
            _check(found)
            if isinstance(order, ResumeWork) and found.state.without(order.kind, order.name) == found.state:
                return False
            outcome = await self._committer.commit(self._unit(found, order, actor))
            self._lanes.forget(FLEET)
            if isinstance(outcome, Committed):
                return True
            if not isinstance(outcome, Conflict):
                raise OperationError(str(FLEET), f"did not take the order: {type(outcome).__name__}", "Try again.")
        problem = f"did not take the order within {ORDER_SECONDS:g} s: others gave theirs"
        raise OperationError(str(FLEET), problem, "Nothing was changed; try again.")

    def _unit(self, found: Orders, order: PauseWork | ResumeWork, actor: str | None) -> Unit:
        """Return the step that takes an order, on the very version that was read."""
        entry, now_us = self._registry.workflows[FLEET.workflow], self._store.now_us()
        encoded, id = self._registry.codec.encode(order), self._runtime.new_id()
        name, version, body = encoded.name, encoded.version, encoded.body
        pending = Pending(FLEET, order, name, version, body, id, Kind.COMMAND, Context(id), now_us, actor=actor)
        lane, row = Lane(FLEET, entry, now_us), found.row
        if row is not None:
            lane.key, lane.version, lane.context, lane.status = row.key, row.version, row.context, row.status
        anew = lane.ended
        envelope = pending.envelope(whole=False)
        taken = step(entry.workflow, found.state, lane.version, envelope, begins=anew or not lane.version)
        # It carries nothing out.
        unit, _ = StepUnits(self._registry, lambda _: 0).stepped(lane, pending, taken, now_us, anew=anew)
        return replace(unit, direct=False)  # nothing that waits in the inbox stands before it


def _check(found: Orders) -> None:
    if found.error is not None:
        raise OperationError(str(FLEET), f"cannot be read, and takes no orders: {found.error}", WAY_OUT)
    if found.row is not None and found.row.status == "suspended":
        advice = f"Resume it first: app.instance_at({str(FLEET)!r}).resume()."
        raise OperationError(str(FLEET), "is suspended, and takes no orders", advice)


async def row_of_fleet(store: Store) -> InstanceRow | None:
    """Return the instance's row, also where something beside it cannot be read."""
    try:
        (loaded,) = await store.load([FLEET], 0)
    except Exception as error:
        if _is_trouble(error):
            raise
        return await row_alone(store, FLEET)
    return None if loaded is None else loaded.row


async def _counting(store: Store, version: int) -> list[EventRow]:
    """Return the events up to a version that count, read from the last one back to where the instance began anew."""
    rows: list[EventRow] = []
    while version and not _began(rows):
        after = max(0, version - EVENTS_AT_ONCE)
        rows = await _page(store, after, version) + rows
        version = after
    if any(row.event == "Reset" for row in rows):
        rows = await whole_stream(store, FLEET)  # it may have gone back behind a beginning
    return list(live(rows))


async def _page(store: Store, after: int, version: int) -> list[EventRow]:
    """Return the events between two versions; where one cannot be read, those behind it, if they are all that count."""
    try:
        return await store.stream(FLEET, after, version - after)
    except Exception as error:
        if _is_trouble(error):
            raise
        rows: list[EventRow] = []
        while version > after and not _began(rows):
            rows = await store.stream(FLEET, version - 1, 1) + rows
            version -= 1
        return rows


def _is_trouble(error: Exception) -> bool:
    """Return True if the store is to blame: that passes. Trouble with a record, its key or its code does not."""
    return isinstance(error, StoreError) and not isinstance(error, DamagedRecordError)


def _began(rows: list[EventRow]) -> bool:
    return any(row.event == "Began" for row in rows)


@cache
def _entry() -> WorkflowEntry:
    """Return the workflow, for callers with a store and no app."""
    return WorkflowEntry(Pauses(), Codec())
