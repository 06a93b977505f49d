"""The loader: states from the store, many instances in one read; long streams apart, one after the other."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from mainspring.core.saga import Ledger
from mainspring.engine.claimable.strangers import told_why
from mainspring.engine.inputs.long_streams import (
    EVENTS_AT_ONCE,
    Folded,
    Lull,
    folded_at_once,
    folded_in_pieces,
    is_long,
)
from mainspring.engine.inputs.pending import PASSING, TROUBLE, Pending
from mainspring.engine.inputs.skipped_input import note_skipped
from mainspring.engine.inputs.stored_streams import pinned, read_ledger, row_alone, trusted
from mainspring.engine.runtime import Runtime
from mainspring.engine.stepping.lanes import Elsewhere, Lane, Phase, Unfolded
from mainspring.errors import NewerTypeError, StoreError, WorkersLostError
from mainspring.logs import logger
from mainspring.port.records import InstanceRow, Loaded
from mainspring.port.store import Store

INSTANCES_PER_LOAD: Final = 500
PAUSE_AFTER_STORE_ERROR_SECONDS: Final = 1.0

log = logger("mainspring.engine")


class Loader:
    """Loads lanes in batches, and calls `ready` with each."""

    def __init__(self, store: Store, runtime: Runtime, ready: Callable[[Lane], None], lull: Lull) -> None:
        self._store = store
        self.era = store.era
        self._runtime = runtime
        self._ready = ready
        self._lull = lull
        self._wanted: list[Lane] = []
        self._long: deque[Lane] = deque()
        self._running = self._running_long = False
        # Those whose answer is on its way: a second one would undo what was built on the first.
        self._loading: set[Lane] = set()

    def request(self, lane: Lane) -> None:
        """Load a lane soon."""
        lane.phase = Phase.LOADING
        if lane not in self._loading:
            self._loading.add(lane)
            self._want(lane)

    def loads(self, lane: Lane) -> bool:
        """Return True if an answer for a lane is on its way."""
        return lane in self._loading

    def recall(self, lane: Lane, pending: Pending, read: Callable[[Store], Awaitable[None]]) -> None:
        """Read what an input needs of the stream. It is taken again when that is known, and nothing is under way."""
        lane.queue.appendleft(pending)
        if lane.under_way:
            lane.phase = Phase.DRAINING
            return
        lane.phase = Phase.LOADING
        self._loading.add(lane)
        self._runtime.spawn(self._recall(lane, pending, read), "mainspring-recall")

    def _want(self, lane: Lane) -> None:
        self._wanted.append(lane)
        if not self._running:
            self._running = True
            self._runtime.spawn(self._run(), "mainspring-loader")

    async def _recall(self, lane: Lane, pending: Pending, read: Callable[[Store], Awaitable[None]]) -> None:
        try:
            await read(self._store)
        except Exception as error:  # noqa: BLE001  whatever it is, it concerns one instance
            if isinstance(error, TROUBLE) or type(error) is StoreError:
                await self._try_again([lane], error)
                return
            pending.unreadable = error
        self._finish(lane)

    async def _run(self) -> None:
        try:
            while self._wanted:
                lanes = self._wanted[:INSTANCES_PER_LOAD]
                del self._wanted[:INSTANCES_PER_LOAD]
                await self._load(lanes)
        finally:
            self._running = False

    def _load_apart(self, lane: Lane) -> None:
        self._long.append(lane)
        if not self._running_long:
            self._running_long = True
            self._runtime.spawn(self._run_long(), "mainspring-long-streams")

    async def _run_long(self) -> None:
        try:
            while self._long:
                await self._load_long(self._long.popleft())
        finally:
            self._running_long = False

    async def _load(self, lanes: list[Lane]) -> None:
        """Load lanes together; where that fails because of one of them, one by one."""
        try:
            lanes = [lane for lane in lanes if not await self._was_lost(lane)]
            era = self.era() if self.era else None
            read = await self._store.load([lane.ref for lane in lanes], EVENTS_AT_ONCE)
            for lane, loaded in zip(lanes, read, strict=True):
                if loaded is not None and not loaded.row.version:
                    await note_skipped(self._store, lane.queue)
            long = {lane.ref for lane, loaded in zip(lanes, read, strict=True) if _is_long(lane, loaded)}
            found = [
                (lane, await trusted(self._store, pinned(lane.entry, loaded), loaded), await self._ledger(lane, loaded))
                for lane, loaded in zip(lanes, read, strict=True)
                if lane.ref not in long
            ]
        except Exception as error:  # noqa: BLE001  whatever it is, it concerns one instance, or all that wait get it
            # A lane that was given up meanwhile works already, and must not be overwritten by what was read.
            lanes = [lane for lane in lanes if lane in self._loading]
            # A plain StoreError is a statement that took too long, or was refused.
            if isinstance(error, TROUBLE) or type(error) is StoreError:
                await self._try_again(lanes, error)
            elif len(lanes) == 1:
                await self._give_up(lanes[0], error)
            else:
                for lane in lanes:
                    await self._load([lane])
        else:
            for lane in lanes:
                if lane.ref in long:
                    self._load_apart(lane)
            for lane, loaded, ledger in found:
                self._fill(lane, loaded, ledger, era)

    async def _was_lost(self, lane: Lane) -> bool:
        """Suspend an instance whose input was given up, without its history: that may be what took the workers down."""
        errors = (pending.unreadable for pending in lane.queue)
        lost = next((error for error in errors if isinstance(error, WorkersLostError)), None)
        if lost is None or await row_alone(self._store, lane.ref) is None:
            return False
        await self._give_up(lane, lost)
        return True

    async def _load_long(self, lane: Lane) -> None:
        try:
            era = self.era() if self.era else None
            # Once more: it may have moved while it waited for its turn.
            loaded, folded = (await self._store.load([lane.ref], EVENTS_AT_ONCE))[0], None
            entry = pinned(lane.entry, loaded)
            if entry is not None and loaded is not None and _is_long(lane, loaded):
                folded = await folded_in_pieces(self._store, entry, loaded, self._lull)
            if folded is None:
                loaded = await trusted(self._store, entry, (await self._store.load([lane.ref]))[0])
            ledger = await self._ledger(lane, loaded)
        except Exception as error:  # noqa: BLE001  as above
            if isinstance(error, TROUBLE) or type(error) is StoreError:
                await self._try_again([lane], error)
            else:
                await self._give_up(lane, error)
        else:
            self._fill(lane, loaded, ledger, era, folded)

    async def _ledger(self, lane: Lane, loaded: Loaded | None) -> Ledger | None:
        if loaded is None or not (lane.wants_ledger or loaded.row.status == "compensating"):
            return None
        return await read_ledger(self._store, lane.entry, lane.ref, self._lull)

    async def _try_again(self, lanes: list[Lane], error: StoreError) -> None:
        """Keep what came from the store: this worker holds it, so no other would take it. Callers may retry."""
        log.warning("loading failed, will be tried again: %s", error)
        if not isinstance(error, PASSING):
            for lane in lanes:
                self._tell_callers(lane, error)
        await self._runtime.clock.sleep(PAUSE_AFTER_STORE_ERROR_SECONDS)
        for lane in lanes:
            self._want(lane)

    async def _give_up(self, lane: Lane, error: Exception) -> None:
        """An instance that cannot be loaded is suspended with the reason, if at least its row can be read."""
        lane.forget()
        try:
            row = await row_alone(self._store, lane.ref)
        except Exception:
            row = None
            log.exception("the row of %s cannot be read", lane.ref)
        if row is None:
            log.error("%s cannot be loaded: %s", lane.ref, error)
            self._fail(lane, error)
            return
        lane.key, lane.version, lane.context = row.key, row.version, row.context
        lane.status, lane.error, lane.unfolded = row.status, row.error, Unfolded(error, row.state)
        lane.asked = True
        _leave_newer(lane, row)
        self._finish(lane)

    def _fail(self, lane: Lane, error: Exception) -> None:
        """Fail the callers that wait; what came from the store stays there and is claimed again later."""
        self._answered(lane)
        for pending in lane.queue:
            if pending.answer is not None:
                pending.answer.fail(error)
        lane.queue.clear()

    def _tell_callers(self, lane: Lane, error: Exception) -> None:
        """Fail the callers that would rather retry than wait."""
        for pending in lane.queue:
            if pending.answer is not None and not pending.answer.patient:
                pending.answer.fail(error)
        lane.queue = deque(pending for pending in lane.queue if pending.answer is None or pending.answer.patient)

    def _fill(
        self, lane: Lane, loaded: Loaded | None, ledger: Ledger | None, era: int | None, folded: Folded | None = None
    ) -> None:
        lane.forget()
        lane.ledger, lane.era = ledger, era
        if loaded is not None:
            row = loaded.row
            lane.key, lane.version, lane.context = row.key, row.version, row.context
            lane.status, lane.error, lane.purged_us = row.status, row.error, row.purged_us
            entry = pinned(lane.entry, loaded)
            if entry is None:
                lane.elsewhere = Elsewhere(
                    f"it runs under version {row.definition_version} of its definition", row.state
                )
                self._finish(lane)
                return
            lane.entry = entry
            lane.trims = loaded.snapshot is not None and loaded.snapshot.is_all
            folded = folded or folded_at_once(entry, loaded)
            lane.state, lane.snapshot_version = folded.state, folded.snapshot_version
            lane.unfolded = None if folded.error is None else Unfolded(folded.error, row.state)
            lane.asked, lane.children, lane.abandoned = folded.asked, folded.children, folded.abandoned
            _leave_newer(lane, row)
        self._finish(lane)

    def _answered(self, lane: Lane) -> None:
        self._loading.discard(lane)
        if lane.phase is Phase.LOADING:  # else a commit was refused meanwhile, and it is loaded once more
            lane.phase = Phase.OPEN

    def _finish(self, lane: Lane) -> None:
        lane.loaded = True
        self._answered(lane)
        try:
            self._ready(lane)
        except Exception:
            # A mistake in one instance must not keep the others from being loaded.
            log.exception("%s could not go on", lane.ref)


def _leave_newer(lane: Lane, row: InstanceRow) -> None:
    """Leave an instance to others whose events only newer code knows: nothing is wrong with it."""
    if lane.unfolded is not None and isinstance(lane.unfolded.error, NewerTypeError):
        lane.elsewhere = Elsewhere(told_why(lane.unfolded.error), row.state)
        lane.unfolded = None


def _is_long(lane: Lane, loaded: Loaded | None) -> bool:
    entry = pinned(lane.entry, loaded)
    if entry is None or loaded is None:
        return False
    return is_long(entry, loaded, whole=lane.wants_ledger or loaded.row.status == "compensating")
