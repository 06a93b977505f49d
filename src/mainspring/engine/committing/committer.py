"""Group commit: nothing commits alone.

Units gather while a transaction is under way and go together in the next one. An idle committer sends the first unit at
the end of the current turn of the event loop, so a single unit waits for nothing and many at once wait for each other;
there is no timer and no size to tune.

Units of one instance chain: each is built on the one before it, before that is committed. A version alone does not
protect such a chain, for another process's events may bring the instance to the very version that a later unit expects.
So after a refused unit the rest of its chain is void: the store refuses what is in the same batch, and what waits for
the next one is withdrawn here.

An instance gets a share of a batch and no more, and its units stay in their order. So no unit waits for all that one
busy instance has queued before, and no commit takes long because of it. While others commit too, the share is smaller.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from mainspring.engine.runtime import Runtime
from mainspring.engine.this_worker import ThisWorker
from mainspring.errors import FaultyUnitError
from mainspring.logs import logger
from mainspring.port.records import Committed, Conflict, Outcome, OutputKey, Unit
from mainspring.port.store import Store

UNITS_PER_BATCH: Final = 1_000
# Of one instance. More would save little of what a commit costs by itself, and all others wait for its end.
UNITS_PER_INSTANCE: Final = 100
# The same while others commit too, and until so many batches have gone without any of theirs.
UNITS_BESIDE_OTHERS: Final = 32
BATCHES_TO_BE_ALONE: Final = 100
# After so many, work that can wait continues all the same: a store that is never idle delays it, and never stops it.
BATCHES_PER_LULL: Final = 4
# A commit that takes longer waits itself, for a lock or for a handler's transaction, which may wait for that work.
LULL_SECONDS: Final = 0.5
# What belongs to no instance, and so has no share: what a subscriber remembers, an output that is released.
NOBODYS: Final = ("", "")
PAUSE_AFTER_STORE_ERROR_SECONDS: Final = 1.0

log = logger("mainspring.engine")

Done = Callable[[Outcome | Exception], None]
_Batch = tuple[Awaitable[list[Outcome]], list[Unit], list[Done]]


class Committer:
    """Collects units and commits them in batches, one batch at a time, in the order in which they came."""

    def __init__(
        self, store: Store, runtime: Runtime, worker: ThisWorker, heard: Callable[[], None] | None = None
    ) -> None:
        self._store = store
        self._runtime = runtime
        self._observer = runtime.observer
        self._begun_us: dict[int, int] = {}
        self._worker = worker
        # Called with every batch.
        self._heard = heard
        self._units: list[Unit] = []
        self._done: list[Done] = []
        self._under_way: list[Done] = []
        # Batches that were sent and not reported, by their number; and units that are retried after a while.
        self._sent: dict[int, list[Unit]] = {}
        self._again: dict[int, Unit] = {}
        self._task: asyncio.Task[None] | None = None
        self._awake: asyncio.Event | None = None
        self._idle = asyncio.Event()
        self._idle.set()
        self._reported = asyncio.Event()
        # When it was last idle or had a batch reported, by the loop's time.
        self._moved_at = 0.0
        self.batches = 0
        self.committed = 0
        # The batch up to which there are others.
        self._shared_until = 0
        self.share = UNITS_BESIDE_OTHERS
        """How many units of one instance a batch may have."""
        self._closed = False

    def add(self, unit: Unit, done: Done) -> None:
        """Commit a unit with the next batch, and call `done` with its outcome afterwards."""
        self._units.append(unit)
        self._done.append(done)
        if self._idle.is_set():
            self._idle.clear()
            self._moved_at = asyncio.get_running_loop().time()
            self._start()

    def persist(self, unit: Unit, then: Callable[[Outcome], None] | None = None) -> None:
        """Commit a unit however long the store is in trouble, and call `then` with its outcome."""
        self.add(unit, partial(self._persisted, unit, then))

    def _persisted(self, unit: Unit, then: Callable[[Outcome], None] | None, outcome: Outcome | Exception) -> None:
        if not isinstance(outcome, Exception):
            if then is not None:
                then(outcome)
            return
        log.warning("a commit for %s/%s failed, will be tried again: %s", unit.workflow, unit.instance, outcome)
        self._again[id(unit)] = unit
        self._runtime.spawn(self._persist_again(unit, then), "mainspring-again")

    async def _persist_again(self, unit: Unit, then: Callable[[Outcome], None] | None) -> None:
        await self._runtime.clock.sleep(PAUSE_AFTER_STORE_ERROR_SECONDS)
        self._again.pop(id(unit), None)
        self.persist(unit, then)

    async def commit(self, unit: Unit) -> Outcome:
        """Commit a unit with the next batch and wait for its outcome."""
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

        def done(outcome: Outcome | Exception) -> None:
            if future.done():
                return
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)

        self.add(unit, done)
        return await future

    async def drained(self) -> None:
        """Return when nothing waits and nothing is under way."""
        await self._idle.wait()

    async def lull(self) -> None:
        """Return when nothing is under way, or after a few batches, or when one does not come back.

        For work that can wait, between two pieces of it. Beside a commit it would hold up more than its own time: the
        store's threads give up the interpreter lock at every statement, and would have to wait to get it back.
        """
        for _ in range(BATCHES_PER_LULL):
            if self._idle.is_set():
                return
            try:
                async with asyncio.timeout_at(self._moved_at + LULL_SECONDS):
                    await self._reported.wait()
            except TimeoutError:
                return

    async def reported(self) -> None:
        """Return when the next batch has been reported."""
        await self._reported.wait()

    @property
    def worker(self) -> int:
        """The key of the worker for which is committed."""
        return self._worker.key

    @property
    def idle(self) -> bool:
        """Whether nothing waits and nothing is under way."""
        return self._idle.is_set()

    @property
    def cancelled(self) -> bool:
        """Whether it was cancelled from outside, with the whole event loop as a rule: nothing more is committed."""
        return self._task is not None and self._task.cancelled()

    @property
    def waiting(self) -> int:
        """How many units wait for the next batch."""
        return len(self._units)

    @property
    def oldest_batch(self) -> int:
        """The number of the oldest batch that is not reported yet, or of the next one."""
        return min(self._sent, default=self.batches + 1)

    def outputs_in_hand(self) -> set[OutputKey]:
        """Return the outputs that are about to be settled or retried."""
        settled = {output for unit in self._in_hand() for output in unit.settles}
        return settled | {retry.output for unit in self._in_hand() for retry in unit.retries}

    def inputs_in_hand(self) -> set[int]:
        """Return the positions of the inputs that are about to be taken or released."""
        taken = {unit.consumes for unit in self._in_hand() if unit.consumes is not None}
        return taken | {position for unit in self._in_hand() for position in unit.releases}

    def _in_hand(self) -> Iterator[Unit]:
        yield from self._units
        for sent in self._sent.values():
            yield from sent
        yield from self._again.values()

    def _start(self) -> None:
        if self._task is None or self._task.done():
            self._awake = asyncio.Event()
            self._awake.set()
            self._task = self._runtime.spawn(self._run(self._awake), "mainspring-committer")
            self._task.add_done_callback(self._died)
        elif self._awake is not None:
            self._awake.set()

    def _died(self, task: asyncio.Task[None]) -> None:
        """Fail what waits for a committer that a mistake of ours has ended; the next unit starts another."""
        if task.cancelled():
            self._idle.set()  # else a stop would wait for ever for what is never committed
            self._let_go_on()
            return
        error = task.exception()
        if not isinstance(error, Exception):
            return
        log.critical("the committer died", exc_info=error)
        waiting, self._units, self._done = self._done, [], []
        self._sent.clear()
        self._begun_us.clear()
        self._idle.set()
        self._let_go_on()
        late = (*self._under_way, *waiting)
        self._report(late, [error] * len(late))

    def close(self) -> None:
        """Stop. To be called when drained. A unit that is added later is tried once, and gets its outcome."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self, awake: asyncio.Event) -> None:
        under_way: _Batch | None = None
        while True:
            if under_way is None:
                if self._closed and not self._units:
                    return
                await awake.wait()
                awake.clear()
                under_way = self._send()
                if under_way is None:
                    self._idle.set()
                    continue
            commit, units, done = under_way
            self._under_way, number = done, min(self._sent)
            outcomes = await self._outcomes(commit, len(done))
            if self._observer is not None:
                self._observer.committed(units, outcomes, self._begun_us.pop(number))
            void = _void(units, outcomes)
            withdrawn = self._withdraw(void)
            under_way = self._send(at_once=True)
            if under_way is not None:
                # Let it start: the store works on the next batch while the outcomes of this one are worked up here.
                await asyncio.sleep(0)
            self._under_way = []
            self._report(done, outcomes)
            del self._sent[number]
            if self._heard is not None:
                self._heard()
            # Until it was reported, more could be built on what was refused.
            if void:
                late = (*withdrawn, *self._withdraw(void))
                self._report(late, [Conflict("version")] * len(late))
            if under_way is None:
                under_way = self._send()
            if under_way is None:
                self._idle.set()
            self._let_go_on()

    def _let_go_on(self) -> None:
        """Wake callers that wait for a lull."""
        self._moved_at = asyncio.get_running_loop().time()
        self._reported.set()
        self._reported = asyncio.Event()

    def _withdraw(self, void: set[tuple[str, str]]) -> list[Done]:
        """Take out the waiting units that move one of these instances."""
        if not void:
            return []
        waiting = list(zip(self._units, self._done, strict=True))
        kept = [pair for pair in waiting if not _moves(pair[0], void)]
        self._units, self._done = [unit for unit, _ in kept], [done for _, done in kept]
        return [done for unit, done in waiting if _moves(unit, void)]

    def _send(self, *, at_once: bool = False) -> _Batch | None:
        """Take the next batch and commit it: in a task that starts at once, or when it is awaited."""
        if not self._units:
            return None
        units, done = self._take()
        self.batches += 1
        self.share = UNITS_PER_INSTANCE if self.batches > self._shared_until else UNITS_BESIDE_OTHERS
        self._sent[self.batches] = units
        self.committed += len(units)
        if self._observer is not None:
            self._begun_us[self.batches] = self._observer.now_us()
        commit: Any = self._store.commit(self._worker.key, units)
        if at_once:
            commit = asyncio.get_running_loop().create_task(commit, name="mainspring-commit")
        return commit, units, done

    def _take(self) -> tuple[list[Unit], list[Done]]:
        """Take the units of the next batch out of those that wait."""
        units, done = self._units, self._done
        if len(units) == 1:  # one that is alone, as where one thing is done after another: nothing to share out
            self._units, self._done = [], []
            return units, done
        first = units[:UNITS_PER_BATCH]
        counts = Counter([(unit.workflow, unit.instance) for unit in first])
        if len(counts) > 1:
            self._shared_until, self.share = self.batches + BATCHES_TO_BE_ALONE, UNITS_BESIDE_OTHERS
        share = self.share
        counts.pop(NOBODYS, None)
        if max(counts.values(), default=0) <= share:
            self._units, self._done = units[UNITS_PER_BATCH:], done[UNITS_PER_BATCH:]
            return first, done[:UNITS_PER_BATCH]
        chosen = set(_shares(units, share))
        self._units = [unit for at, unit in enumerate(units) if at not in chosen]
        self._done = [report for at, report in enumerate(done) if at not in chosen]
        return [units[at] for at in sorted(chosen)], [done[at] for at in sorted(chosen)]

    async def _outcomes(self, commit: Awaitable[list[Outcome]], count: int) -> Sequence[Outcome | Exception]:
        try:
            return await commit
        except FaultyUnitError as error:
            return error.outcomes
        except Exception as error:  # noqa: BLE001  whatever it is, every unit of the batch learns of it
            return [error] * count

    def _report(self, done: Sequence[Done], outcomes: Sequence[Outcome | Exception]) -> None:
        for report, outcome in zip(done, outcomes, strict=True):
            try:
                report(outcome)
            except Exception:
                # A mistake in handling one instance's outcome must not stop the commits of all others.
                log.exception("an outcome could not be worked up")


def _shares(units: list[Unit], share: int) -> list[int]:
    """Return which units make up the next batch: a share for each instance, in the order in which they came."""
    counts: dict[tuple[str, str], int] = {}
    shared: list[int] = []
    for at, unit in enumerate(units):
        name = (unit.workflow, unit.instance)
        count = counts[name] = counts.get(name, 0) + 1
        if count <= share or name == NOBODYS:
            shared.append(at)
            if len(shared) == UNITS_PER_BATCH:
                break
    return shared


def _void(units: list[Unit], outcomes: Sequence[Outcome | Exception]) -> set[tuple[str, str]]:
    """Return the instances that a refused unit was to move."""
    return {
        (unit.workflow, unit.instance)
        for unit, outcome in zip(units, outcomes, strict=True)
        if type(outcome) is not Committed and unit.expected_version is not None
    }


def _moves(unit: Unit, instances: set[tuple[str, str]]) -> bool:
    return unit.expected_version is not None and (unit.workflow, unit.instance) in instances
