"""Claims: what is due and unclaimed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Final

from msgspec.structs import replace

from mainspring.codec import Codec
from mainspring.engine.claimable.arrivals import Arrivals
from mainspring.engine.claimable.strangers import Strangers, told_why
from mainspring.engine.claimable.wakeups import Wakeups
from mainspring.engine.committing.committer import Committer
from mainspring.engine.inputs.intake import INPUTS_IN_FLIGHT
from mainspring.engine.inputs.stored_input import from_inbox
from mainspring.engine.outputs.dispatcher import Dispatcher
from mainspring.engine.paused_work import PausedWork
from mainspring.engine.recording.event_rows import answer_id
from mainspring.engine.recording.stored_values import encode_context, read_context
from mainspring.engine.registry import Registry
from mainspring.engine.runtime import Runtime
from mainspring.engine.stepping.stepper import Stepper
from mainspring.errors import CodecError, DamagedRecordError, NewerTypeError, StoreError
from mainspring.logs import logger
from mainspring.port.ids import plain
from mainspring.port.records import Claims, Context, InputRow, OutputClaim, Ref, Unit
from mainspring.port.store import Store

CLAIM_LIMIT: Final = 500
# More than these, from an inbox or as timers, replies and messages of other instances, wait better in the store: memory
# is bounded, and others can take them.
INPUTS_IN_HAND: Final = 2_000
# But senders here may continue for hours: so many of what waits there are claimed with every batch all the same,
SHARE: Final = 200
# as long as fewer are in hand than this, which senders cannot bring about alone.
MOST_IN_HAND: Final = 2 * INPUTS_IN_FLIGHT
POLL_SECONDS: Final = 1.0
PAUSE_AFTER_STORE_ERROR_SECONDS: Final = 1.0

log = logger("mainspring.engine")


class Claimer:
    """Claims due work in batches while there is capacity for it, and sleeps until the next is due or a hint comes."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        committer: Committer,
        dispatcher: Dispatcher,
        stepper: Stepper,
        runtime: Runtime,
        wakeups: Wakeups,
        arrivals: Arrivals,
        strangers: Strangers,
        paused: PausedWork,
        posted: Callable[[], None],
        heard: Callable[[], None] | None,
    ) -> None:
        self._store = store
        self._committer = committer
        self._registry = registry
        self._dispatcher = dispatcher
        self._settlements = dispatcher.settlements
        self._stepper = stepper
        self._runtime = runtime
        self._observer = runtime.observer
        self._wakeups = wakeups
        self._arrivals = arrivals
        self._posted = posted
        self._heard = heard
        self._tasks: list[asyncio.Task[None]] = []
        self._claiming = False
        # How much came from the store, and how many answers of it were lost: they may have brought some.
        self.taken = 0
        self.rounds = 0
        self.strangers = strangers
        self._resting = False
        self._paused = paused
        # Done when a batch was reported since the last share of it was claimed; and whether anything was left to claim.
        self._batch: asyncio.Task[None] | None = None
        self._left = False

    def start(self) -> None:
        """Begin to claim."""
        self._tasks = [
            self._runtime.spawn(self._run(), "mainspring-claims"),
            self._runtime.spawn(self._listen(), "mainspring-hints"),
        ]
        self._wakeups.start()

    async def stop(self) -> None:
        """Claim no more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, self._wakeups.stop(), return_exceptions=True)

    def rest(self, resting: bool) -> None:
        """Stop claiming for now, or resume."""
        self._resting = resting
        self._wakeups.hint.set()

    async def _listen(self) -> None:
        """Turn the store's hints, and its silence, into wake-ups."""
        while True:
            try:
                await self._store.wait_for_work(POLL_SECONDS)
            except Exception as error:  # noqa: BLE001  hints may fail; the loop must not
                log.warning("no hints from the store: %s", error)
                await self._runtime.clock.sleep(PAUSE_AFTER_STORE_ERROR_SECONDS)
            self._wakeups.hint.set()
            if self._heard is not None:
                self._heard()

    async def _run(self) -> None:
        while True:
            await self._wakeups.hint.wait()
            self._wakeups.hint.clear()
            self._claiming = True
            try:
                more = not self._resting
                while more and not self._resting:
                    self.rounds += 1
                    more = await self._claim(self._committer.worker)
            except Exception as error:
                # A store in trouble says so in its own words; anything else is a mistake of ours, found by its trace.
                trace = None if isinstance(error, StoreError) else error
                log.warning("claiming failed, will be tried again: %s", error, exc_info=trace)
                self.taken += 1
                await self._runtime.clock.sleep(PAUSE_AFTER_STORE_ERROR_SECONDS)
                self._wakeups.hint.set()
            finally:
                self._claiming = False

    @property
    def idle(self) -> bool:
        """Whether nothing is being claimed, and no hint waits."""
        return not self._claiming and not self._wakeups.hint.is_set()

    @property
    def oldest_round(self) -> int:
        """The number of the round that is under way, or of the next one."""
        return self.rounds if self._claiming else self.rounds + 1

    async def _claim(self, worker: int) -> bool:
        """Claim once, and return True if there may be more at once."""
        # What has no capacity is left out: a handler, or all that steps.
        share = self._share()
        limit, handlers = share or CLAIM_LIMIT, self._registry.handlers
        capacities = {
            name: self._dispatcher.capacity(name) for name in self._registry.queues() if share or name in handlers
        }
        wide = self._places(name for name, capacity in capacities.items() if capacity >= limit)
        workflows = [name for name in self._registry.workflows if not self.leaves(name)] if share else []
        claims = await self._store.claim(worker, wide, workflows, limit, self.strangers.leaves())
        self.take(claims)
        self._next_is_due(claims)
        if narrow := {name: capacity for name, capacity in capacities.items() if 0 < capacity < limit}:
            await self._claim_narrow(worker, narrow)
        more = len(claims.outputs) >= limit or len(claims.inputs) >= limit
        self._left = more or not share
        if self._left and self._batch is not None and self._batch.done():
            # That batch was reported while the store answered, before it was known that anything was left.
            self._wakeups.hint.set()
        return more and limit == CLAIM_LIMIT

    def leaves(self, workflow: str) -> bool:
        """Return True if nothing of a workflow is to be stepped here now: it is paused, or left to others."""
        return workflow in self._paused.workflows or self.strangers.leaves_workflow(workflow)

    def _share(self) -> int:
        """Return how much may be claimed of what is stepped: while many are in hand, a little with every batch."""
        in_hand = self._stepper.in_hand
        if in_hand < INPUTS_IN_HAND:
            return CLAIM_LIMIT
        if self._batch is not None and not self._batch.done():
            return 0
        self._batch = self._runtime.spawn(self._hint_after_a_batch(), "mainspring-share")
        return SHARE if in_hand < MOST_IN_HAND else 0

    async def _hint_after_a_batch(self) -> None:
        await self._committer.reported()
        if self._left:
            self._wakeups.hint.set()

    async def _claim_narrow(self, worker: int, capacities: dict[str, int]) -> None:
        """Claim for queues with little capacity. Mostly nothing is due, and one look for all of them shows that."""
        least = min(capacities.values())
        claims = await self._store.claim(worker, self._places(capacities), [], least)
        self.take(claims)
        if len(claims.outputs) < least:
            self._next_is_due(claims)
            return
        for name in capacities:
            capacity = min(self._dispatcher.capacity(name), CLAIM_LIMIT)
            if capacity > 0:
                await self._claim_some(worker, name, capacity)

    def _places(self, queues: Iterable[str]) -> list[str]:
        places = self._registry.queues()
        return [place for queue in queues for place in places[queue]]

    async def _claim_some(self, worker: int, queue: str, capacity: int) -> None:
        """Claim no more of a queue than there is capacity for; freed capacity hints that more can be claimed."""
        claims = await self._store.claim(worker, self._places([queue]), [], capacity)
        self.take(claims)
        if len(claims.outputs) < capacity:
            self._next_is_due(claims)
        else:
            self._dispatcher.leave_rest(queue)

    def _next_is_due(self, claims: Claims) -> None:
        if claims.next_due_us is not None:
            # Time may have passed while the store answered: what has become due since is looked for at once.
            self._wakeups.due_at(claims.next_due_us)

    def take(self, claims: Claims) -> None:
        """Begin to work on what was claimed for this worker."""
        if claims.posted:
            self._posted()
        self.taken += len(claims.outputs) + len(claims.inputs)
        for claim in claims.outputs:
            message, own, error = read(self._registry.codec, claim)
            if error is None:
                self._dispatcher.begin(own, message)
            elif isinstance(error, NewerTypeError):
                self._leave_output(claim, error)
            else:
                self._settlements.bury(claim, "it cannot be read", error)
        strange: set[Ref] = set()
        for row in claims.inputs:
            ref = Ref(row.workflow, row.instance)
            self._arrivals.came(row.position)
            if ref in strange or not self._registry.codec.reads(row.type, row.type_version):
                strange.add(ref)  # what stands behind it has to wait as well
                self._give_back(row)
                continue
            try:
                self._stepper.submit(from_inbox(self._registry.codec, row))
            except Exception:
                log.exception("input %s of %s could not go on", plain(row.message_id), ref)

    def _give_back(self, row: InputRow) -> None:
        """Let a worker that knows its type take an input; from now on it is not even claimed."""
        self._committer.persist(Unit(row.workflow, row.instance, releases=(row.position,)))
        if self._observer is not None:
            self._observer.left(row.type)
        if not self._registry.codec.reads(row.type, row.type_version):
            self.strangers.meet_type(row.workflow, row.type, row.type_version)

    def _leave_output(self, claim: OutputClaim, error: NewerTypeError) -> None:
        """Let a worker that knows its type carry an output out: its destination did not show that it is unknown here.

        After a while, in which all that stands behind it has its turn. That is no attempt.
        """
        if self._observer is not None:
            self._observer.left(claim.type)
        self.strangers.tell(
            claim.type, f"this worker cannot read {claim.type}, which waits for one that can: {told_why(error)}"
        )
        self._settlements.leave(claim, error)


def read(codec: Codec, claim: OutputClaim) -> tuple[Any, OutputClaim, Exception | None]:
    """Return an output's message and its claim with its own context, or why they cannot be read."""
    try:
        own = _with_own_context(claim)
        # The end of an instance may have no result.
        return (codec.decode(claim.type, claim.type_version, claim.body) if claim.type else None), own, None
    except (CodecError, DamagedRecordError) as error:
        return None, claim, error


def _with_own_context(claim: OutputClaim) -> OutputClaim:
    """Return a claim with the context that its output had when it was decided, as if it had been born claimed."""
    if claim.cause is None:
        return claim
    ref, cause, context = Ref(claim.workflow, claim.instance), claim.cause, read_context(claim.context)
    id = cause.message_id
    id = answer_id(ref, cause.cause or 0, cause.kind) if id is None else plain(id)
    own = Context(context.correlation_id, id, str(ref), None, context.trace, outside=context.outside)
    return replace(claim, context=encode_context(own))
