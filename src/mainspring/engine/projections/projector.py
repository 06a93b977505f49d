"""The projector: folds the feed into read models, each in a task of its own, so that one that fails stops alone.

A projection has generations. The live one is read. A new one is filled beside it, from the beginning of the feed, when
a rebuild is asked for or when the code has a new version; it takes the live one's place when it has caught up. Every
move is a compare-and-set of the checkpoint in the transaction that writes: however many workers run the same
projection, each event is in it once.
"""

from __future__ import annotations

import asyncio
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from mainspring.engine.projections.folding import Folded, Folding
from mainspring.engine.projections.projection import Projection
from mainspring.engine.recording.error_text import error_text
from mainspring.engine.registry import Registry
from mainspring.engine.runtime import Runtime
from mainspring.engine.this_worker import ThisWorker
from mainspring.logs import Quoted, logger
from mainspring.port.projections import Advance, Checkpoint, GenerationStatus
from mainspring.port.store import Store

PAUSE_SECONDS: Final = 0.02
PAUSE_AFTER_STORE_ERROR_SECONDS: Final = 1.0
FIRST_BACKOFF_SECONDS: Final = 1.0
LONGEST_BACKOFF_SECONDS: Final = 60.0
DOCUMENTS_PER_CLEARING: Final = 1_000

# What a round came to: nothing is to be done; something moved; there is more to do at once.
IDLE, MOVED, MORE = 0, 1, 2

log = logger("mainspring.engine")


class Projector:
    """Runs the projections of this process."""

    def __init__(self, store: Store, registry: Registry, runtime: Runtime, worker: ThisWorker) -> None:
        self._store = store
        self._registry = registry
        self._runtime = runtime
        self._worker = worker
        self._followers: list[Follower] = []
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to follow the feed."""
        for projection in self._registry.projections.values():
            follower = Follower(projection, self._store, self._registry, self._runtime, self._worker)
            self._followers.append(follower)
            self._tasks.append(self._runtime.spawn(follower.run(), f"mainspring-projection-{projection.name}"))

    async def stop(self) -> None:
        """Follow it no longer. What is under way is rolled back."""
        tasks, self._tasks, self._followers = self._tasks, [], []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def left(self) -> dict[str, str]:
        """Return what only newer code can read, by the projections that wait for a worker of that."""
        return {follower.name: follower.left.error for follower in self._followers if follower.left is not None}

    def wake(self) -> None:
        """Note that there may be something new."""
        for follower in self._followers:
            follower.hint.set()


class Left(Struct, frozen=True):
    """Where a generation stands before what only newer code can read."""

    generation: int
    position: int
    error: str


class Follower:
    """One projection in this process."""

    def __init__(
        self, projection: Projection, store: Store, registry: Registry, runtime: Runtime, worker: ThisWorker
    ) -> None:
        self.hint = asyncio.Event()
        self._projection = projection
        self._store = store
        self._runtime = runtime
        self._worker = worker
        self._folding = Folding(projection, store, registry, worker)
        # Generations that failed: how often, and when to retry.
        self._failures: dict[int, tuple[int, int]] = {}
        self._told = False
        self.left: Left | None = None

    async def run(self) -> None:
        """Follow the feed, for ever."""
        while True:
            self.hint.clear()
            try:
                progress = await self._round()
            except Exception as error:  # noqa: BLE001  whatever it is, the feed is followed again
                log.warning("projection %s: the store is in trouble, will be tried again: %s", self.name, error)
                await self._runtime.clock.sleep(PAUSE_AFTER_STORE_ERROR_SECONDS)
                continue
            if progress == IDLE:
                await self.hint.wait()
            elif progress == MOVED:
                # What comes together is folded together.
                await self._runtime.clock.sleep(PAUSE_SECONDS)
            else:
                await asyncio.sleep(0)

    @property
    def name(self) -> str:
        """The projection's name."""
        return self._projection.name

    async def _round(self) -> int:
        """Do one piece of each thing that is to be done."""
        known = await self._store.checkpoints(self.name)
        if self.left is not None and not any(_stands_at(checkpoint, self.left) for checkpoint in known):
            self.left = None  # others have folded it
        version = self._projection.version
        live = next((c for c in known if c.status == "live"), None)
        building = next((c for c in reversed(known) if c.status == "building"), None)
        if live is None:
            return await self._begin(known, live, building)
        progress = IDLE
        if live.version == version:
            folded = await self._fold(live, live)
            progress = _progress(folded)
            live = replace(live, position=folded.position)
        elif live.version > version:
            self._tell_old(live)
        if building is not None and building.version == version:
            progress = max(progress, await self._build(building, live))
        elif live.version < version and (building is None or building.version < version):
            progress = max(progress, await self._begin(known, live, building))
        for checkpoint in known:
            if checkpoint.status == "retired":
                progress = max(progress, await self._clear(checkpoint))
        return progress

    def _tell_old(self, live: Checkpoint) -> None:
        if not self._told:
            self._told = True
            log.warning(
                "projection %s: version %d is live, so it is left to workers that know it; this one has version %d",
                self.name,
                live.version,
                self._projection.version,
            )

    async def _begin(self, known: list[Checkpoint], live: Checkpoint | None, building: Checkpoint | None) -> int:
        """Begin a generation: the first one, or one of newer code beside the live one."""
        status: GenerationStatus = "live" if live is None else "building"
        retires = () if building is None else (building.generation,)
        generation = 1 + max((c.generation for c in known), default=0)
        begun = Advance(self.name, generation, None, -1, self._projection.version, status, retires=retires)
        await self._store.advance(begun)
        return MORE  # if another process was first, its own is there now

    async def _fold(self, checkpoint: Checkpoint, live: Checkpoint) -> Folded:
        """Fold a piece of the feed into a generation, unless it rests after a failure."""
        if self._rests(checkpoint.generation):
            return Folded(False, checkpoint.position, checkpoint.error or "it rests")
        folded = await self._folding.fold(checkpoint, live)
        if folded.error is None:
            self._failures.pop(checkpoint.generation, None)
        elif folded.newer:
            self._leave(Left(checkpoint.generation, folded.position, folded.error))
        else:
            await self._fail(checkpoint.generation, folded.position, folded.error)
        return folded

    async def _build(self, building: Checkpoint, live: Checkpoint) -> int:
        """Fill a generation, and let it take the live one's place when it has seen all that there is."""
        if self._projection.options.reset is not None:
            return await self._reset(building, live)
        folded = await self._fold(building, live)
        if folded.error is not None or folded.more or folded.position < 0:
            return _progress(folded)
        swap = Advance(
            self.name,
            building.generation,
            expected=folded.position,
            position=folded.position,
            status="live",
            retires=(live.generation,),
        )
        if not await self._folding.swap(swap):
            return _progress(folded)
        log.info("projection %s: generation %d is live", self.name, building.generation)
        return MORE

    async def _reset(self, building: Checkpoint, live: Checkpoint) -> int:
        """Fill the author's own tables anew, from their beginning, in the place of what is there."""
        if self._rests(building.generation):
            return IDLE
        try:
            await self._folding.reset(building, live)
        except Exception as error:  # noqa: BLE001  it is the author's, and shown
            await self._fail(building.generation, building.position, f"reset failed: {error_text(error)}")
            return IDLE
        return MORE

    async def _clear(self, retired: Checkpoint) -> int:
        """Clear away a piece of a generation that is no longer read."""
        if self._rests(retired.generation):
            return IDLE
        try:
            if self._projection.options.create is not None:
                await self._folding.drop(retired.generation)
            removed = await self._store.clear_documents(self.name, retired.generation, DOCUMENTS_PER_CLEARING)
        except Exception as error:  # noqa: BLE001  it is not read: what is live continues
            self._rest(retired.generation)
            log.warning("projection %s: generation %d is not cleared: %s", self.name, retired.generation, error)
            return IDLE
        return MORE if removed else IDLE

    # ---- failures

    async def _fail(self, generation: int, position: int, error: str) -> None:
        """Show what stopped a generation, and let it rest: longer each time."""
        self._rest(generation)
        log.error("projection %s is stopped: %s", self.name, Quoted(error))
        await self._store.advance(Advance(self.name, generation, position, position, error=error))

    def _leave(self, left: Left) -> None:
        """Let workers go on that can read what is next. Nothing is wrong, and nothing is written."""
        self._rest(left.generation)
        if left != self.left:
            self.left = left
            log.warning("projection %s is left to workers of a newer release: %s", self.name, Quoted(left.error))

    def _rest(self, generation: int) -> None:
        failures, _ = self._failures.get(generation, (0, 0))
        seconds = min(LONGEST_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * 2**failures)
        self._failures[generation] = (failures + 1, self._store.now_us() + int(seconds * 1e6))

    def _rests(self, generation: int) -> bool:
        return self._store.now_us() < self._failures.get(generation, (0, 0))[1]


def _stands_at(checkpoint: Checkpoint, left: Left) -> bool:
    return (checkpoint.generation, checkpoint.position) == (left.generation, left.position)


def _progress(folded: Folded) -> int:
    return MORE if folded.more else MOVED if folded.moved else IDLE
