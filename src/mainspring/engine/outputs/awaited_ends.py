"""Callers that wait for an instance's end: notified where it ends here, else by one look at the rows for all of them.

One look for all: if each of ten thousand asked twice a second for itself, nothing else would get a turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import islice
from typing import Any, Final

from msgspec import Struct

from mainspring.core.events import Completed, Failed
from mainspring.engine.recording.stored_values import moment
from mainspring.engine.registry import Registry
from mainspring.errors import DamagedRecordError, InstancePurgedError
from mainspring.port.records import ENDED, EventRow, Loaded, Ref, Status
from mainspring.port.store import Store

ELSEWHERE_SECONDS: Final = 0.5
# So many are asked for in one look; the others in the next ones.
ASKED_AT_ONCE: Final = 1_000
# An end stands at the end of its stream, or has a few records behind it.
EVENTS_FROM_END: Final = 100
# A caller that waits for its end waits in vain, until it is resumed.
STANDING: Final = (*ENDED, "suspended")


class End(Struct, frozen=True):
    """How an instance ended, or why it does not continue: its status, and its result or the reason.

    >>> End("failed", "out of stock").status
    'failed'
    """

    status: Status
    result: Any


class AwaitedEnds:
    """The futures of waiting callers."""

    def __init__(self, store: Store, registry: Registry) -> None:
        self._store = store
        self._registry = registry
        self._futures: dict[Ref, list[asyncio.Future[End]]] = {}
        # Set while any caller waits.
        self.anybody = asyncio.Event()

    def end_of(self, ref: Ref) -> asyncio.Future[End]:
        """Return a future that is done when an instance has ended."""
        future: asyncio.Future[End] = asyncio.get_running_loop().create_future()
        self._futures.setdefault(ref, []).append(future)
        self.anybody.set()
        return future

    def forget(self, ref: Ref, future: asyncio.Future[End]) -> None:
        """Wait no longer."""
        if future.done() and not future.cancelled():
            future.exception()  # a caller that stopped waiting has its own reason: this one is not lost, but of no use
        waiting = self._futures.get(ref, [])
        if future in waiting:
            waiting.remove(future)
            if not waiting:
                self._pop(ref)

    def tell(self, ref: Ref, end: End) -> None:
        """Wake the callers that wait for an instance's end with how it ended."""
        for future in self._pop(ref):
            if not future.done():
                future.set_result(end)

    def fail(self, error: Exception, refs: Sequence[Ref] | None = None) -> None:
        """Fail the callers that wait for these instances, or for any."""
        for ref in list(self._futures) if refs is None else refs:
            for future in self._pop(ref):
                if not future.done():
                    future.set_exception(error)

    def _pop(self, ref: Ref) -> list[asyncio.Future[End]]:
        waiting = self._futures.pop(ref, [])
        if not self._futures:
            self.anybody.clear()
        return waiting

    async def ask(self) -> None:
        """Look once whether instances have ended, for waiting callers: in another process, or behind our back."""
        refs = list(islice(self._futures, ASKED_AT_ONCE))
        for ref in refs:  # to the back: the next look begins with others
            self._futures[ref] = self._futures.pop(ref)
        try:
            found = await self._store.load(refs, 0) if refs else []
        except DamagedRecordError:
            for ref in refs:
                await self._ask_one(ref)
        except Exception as error:  # noqa: BLE001  waiting callers get it, as by a look of their own
            self.fail(error, refs)
        else:
            for ref, loaded in zip(refs, found, strict=True):
                await self._hear(ref, loaded)

    async def _ask_one(self, ref: Ref) -> None:
        try:
            [loaded] = await self._store.load([ref], 0)
        except Exception as error:  # noqa: BLE001  as above
            self.fail(error, [ref])
        else:
            await self._hear(ref, loaded)

    async def _hear(self, ref: Ref, loaded: Loaded | None) -> None:
        if loaded is None or loaded.row.status not in STANDING or ref not in self._futures:
            return
        try:
            self.tell(ref, await self.recorded(ref, loaded))
        except Exception as error:  # noqa: BLE001  as above
            self.fail(error, [ref])

    async def recorded_end(self, ref: Ref) -> End | None:
        """Return how an instance ended, or that it is suspended, if the rows say so."""
        [loaded] = await self._store.load([ref], 0)
        if loaded is None or loaded.row.status not in STANDING:
            return None
        return await self.recorded(ref, loaded)

    async def recorded(self, ref: Ref, loaded: Loaded) -> End:
        """Return how an instance stands that does not continue."""
        row = loaded.row
        if row.purged_us is not None:
            raise InstancePurgedError(str(ref), row.status, moment(row.purged_us))
        if row.status in ("completed", "failed"):
            event = await self._end_event(ref, row.version)
            match None if event is None else self._registry.workflows[ref.workflow].recorder.event(event):
                case Completed(result):
                    return End("completed", result)
                case Failed(reason):
                    return End("failed", reason)
                case _:
                    pass
        # One that began anew, or was reset, may have had another end before.
        return End(row.status, row.error)

    async def _end_event(self, ref: Ref, version: int) -> EventRow | None:
        """Return the last end of a stream, which is read from behind."""
        at_once = EVENTS_FROM_END
        while version > 0:
            after = max(0, version - at_once)
            for row in reversed(await self._store.stream(ref, after, version - after)):
                if row.event in ("Completed", "Failed"):
                    return row
            # Twice as many: where history is trimmed, there may be long stretches of nothing.
            version, at_once = after, 2 * at_once
        return None
