"""The engine, wired: its stations, its life from start to drained."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from typing import Any, Final

from mainspring.engine.claimable.arrivals import Arrivals
from mainspring.engine.claimable.strangers import Strangers
from mainspring.engine.claimable.wakeups import Wakeups
from mainspring.engine.claiming.claimer import Claimer
from mainspring.engine.claiming.lone_trials import LoneTrials
from mainspring.engine.claiming.relay import Relay
from mainspring.engine.claiming.strays import Strays
from mainspring.engine.committing.committer import Committer
from mainspring.engine.fleet import knowledge
from mainspring.engine.fleet.standing import standing_of, written
from mainspring.engine.handlers.runners import Runners
from mainspring.engine.inputs.intake import Intake
from mainspring.engine.inputs.pending import Inputs
from mainspring.engine.operations.known_pauses import LOOK_SECONDS, KnownPauses
from mainspring.engine.operations.operations import Operations
from mainspring.engine.operations.pause_orders import PauseOrders
from mainspring.engine.outputs.awaited_ends import ELSEWHERE_SECONDS, AwaitedEnds
from mainspring.engine.outputs.dispatcher import Dispatcher
from mainspring.engine.outputs.settlements import Settlements
from mainspring.engine.paused_work import PausedWork
from mainspring.engine.projections.projector import Projector
from mainspring.engine.recording.saga_rows import Doomed
from mainspring.engine.registry import Registry
from mainspring.engine.runtime import Runtime, SystemClock
from mainspring.engine.stepping.lanes import Lanes
from mainspring.engine.stepping.stepper import Stepper
from mainspring.engine.this_worker import ThisWorker
from mainspring.engine.watching.loop_watch import LoopWatch
from mainspring.errors import NewerSchemaError, StoreClosedError, StoreMovedError, UnknownOutcomeError
from mainspring.logs import Quoted, logger
from mainspring.port.store import Store

LEASE_SECONDS: Final = 30.0
HEARTBEAT_SECONDS: Final = 10.0
RELIEVE_SECONDS: Final = 3.0
OVERDUE_CHECK_SECONDS: Final = 0.1
LONG_ATTEMPTS: Final = 500
DRAIN_SECONDS: Final = 30.0
DRAIN_CHECK_SECONDS: Final = 0.005
HELD_BACK_SECONDS: Final = 1.0
"""What begins or ceases to be held back is reported after so long, together with what follows at once."""

log = logger("mainspring.engine")


class Engine:
    """Everything between an app and its store. One event loop, one worker."""

    def __init__(self, store: Store, registry: Registry, runtime: Runtime, resources: Mapping[str, Any]) -> None:
        self.store = store
        self.registry = registry
        self.runtime = runtime
        self.wakeups = Wakeups(runtime, store.now_us)
        self.ends = AwaitedEnds(store, registry)
        # Nothing is written into these but here: what all the stations go by.
        self.worker, self.paused = ThisWorker(), PausedWork()
        self.projector = Projector(store, registry, runtime, self.worker)
        heard = self.projector.wake if registry.projections else None
        self.committer = Committer(store, runtime, self.worker, heard)
        lanes, arrivals, strangers = Lanes(), Arrivals(), Strangers(store.now_us)
        self.stepper = Stepper(
            store,
            registry,
            self.committer,
            runtime,
            lanes,
            self.wakeups,
            arrivals,
            strangers,
            self.ends,
            self.paused,
            lambda inputs: self._outputs(inputs, lanes, arrivals, resources),
        )
        self.dispatcher = self.stepper.dispatcher
        self.intake = Intake(store, registry, runtime, self.committer, self.stepper)
        self.relay = Relay(store, runtime)
        self.claimer = Claimer(
            store,
            registry,
            self.committer,
            self.dispatcher,
            self.stepper,
            runtime,
            self.wakeups,
            arrivals,
            strangers,
            self.paused,
            posted=self.relay.wake,
            heard=heard,
        )
        self.strays = Strays(store, self.committer, self.claimer, self.dispatcher, self.stepper, arrivals, self.wakeups)
        self.lone_trials = LoneTrials(
            store,
            registry,
            self.committer,
            self.dispatcher,
            self.claimer,
            self.strays,
            self.stepper,
            runtime,
            self.worker,
            self.paused,
            self._renew,
        )
        self.pauses = KnownPauses(store, self.paused, registry.queue_of)
        self.orders = PauseOrders(store, registry, self.committer, runtime, lanes)
        self.works = False
        self._renewing = asyncio.Lock()
        self._renewed_us = 0
        # Why the engine ended by itself, and whether it has ended at all.
        self.fault: NewerSchemaError | StoreMovedError | None = None
        self.over = asyncio.Event()
        self._ending: asyncio.Task[None] | None = None

    def _outputs(self, inputs: Inputs, lanes: Lanes, arrivals: Arrivals, resources: Mapping[str, Any]) -> Dispatcher:
        """Make what carries outputs out, and brings their results to `inputs`."""
        store, registry, committer, runtime = self.store, self.registry, self.committer, self.runtime
        settlements = Settlements(store, registry, committer, runtime, self.wakeups, inputs, self.worker)
        runners = Runners(store, runtime, self.wakeups, settlements, self.paused, resources)
        self.operations = Operations(store, registry, committer, lanes, self.wakeups, self.ends, runners)
        return Dispatcher(
            store,
            registry,
            committer,
            runtime,
            self.wakeups,
            arrivals,
            inputs,
            settlements,
            runners,
            self.worker,
            self.paused,
            self.operations.cancel_child,
        )

    # ---- life

    async def start(self, *, work: bool, name: str, pools: frozenset[str] | None = None) -> None:
        """Register as a worker and begin. Without `work` nothing is claimed and nothing is carried out here."""
        self.works = work
        self.runtime.hung.quiet = False
        self.worker.name, self.worker.pools, self.worker.closing = name, pools, not work
        self.runtime.every(ELSEWHERE_SECONDS, self.ends.ask, "mainspring-ends", self.ends.anybody)
        if isinstance(self.runtime.clock, SystemClock):  # a simulation has no time but its own
            self.registry.watch.start(LoopWatch(self.attempts))
        try:
            await self.look_at_pauses()  # before anything is claimed or stepped
            if work:
                self._took_over(await self.store.relieve())
                await self._register()
        except BaseException:  # a failed start leaves no task or watch behind
            self.registry.watch.stop()
            await self.runtime.cancel_tasks()
            raise
        self.runtime.every(LOOK_SECONDS, self._look_at_pauses, "mainspring-pauses")
        if not work:
            return
        self.claimer.start()
        if self.registry.projections:
            self.projector.start()
        self.runtime.every(HEARTBEAT_SECONDS, self._beat, "mainspring-heartbeat")
        self.runtime.every(HELD_BACK_SECONDS, self._beat, "mainspring-held", self.dispatcher.runners.held_back_changed)
        self.runtime.every(RELIEVE_SECONDS, self._relieve, "mainspring-relieve")
        self.runtime.every(OVERDUE_CHECK_SECONDS, self.stop_overdue, "mainspring-overdue", self.dispatcher.runners.busy)

    async def stop(self, drain_seconds: float = DRAIN_SECONDS) -> None:
        """Take no more, let what runs finish, and release the rest. Nothing of the engine runs afterwards."""
        if self._ending is None:
            await self._stop(drain_seconds)
        else:
            await self._ending

    async def _stop(self, drain_seconds: float) -> None:
        self.worker.closing = self.runtime.hung.quiet = True
        try:
            if self.works:
                await self.claimer.stop()
                await self.relay.stop()
                await self.projector.stop()
            await self._drain(drain_seconds)
            await self.committer.drained()
        finally:
            self.registry.watch.stop()
            # Also when the caller of stop has lost patience: no task may outlive the store.
            for name in await self.runtime.cancel_tasks():
                log.warning("%s goes on though it was cancelled: what it does counts no more, and runs again", name)
            self.committer.close()
            self._fail_waiting()
            try:
                if self.works:
                    await self.store.release_worker(self.worker.key)
            finally:
                self.over.set()

    def _end_by(self, error: NewerSchemaError | StoreMovedError) -> None:
        """Stop for good, in order: callers of the engine get the reason from now on."""
        if self.fault is None:
            log.critical("this worker stops, and gives back what it holds: %s", error)
            self.fault = error
            self._ending = self.runtime.spawn(self._end(), "mainspring-ending")

    async def _end(self) -> None:
        try:
            await self._stop(DRAIN_SECONDS)
        except Exception as error:  # noqa: BLE001  others relieve this worker, as one that is gone
            log.warning("what this worker holds could not be given back: %s", error)

    def _fail_waiting(self) -> None:
        """Fail callers that wait for a step, or an end, that will not come here any more."""
        self.ends.fail(self.fault or StoreClosedError("mainspring"))
        for lane in self.stepper.lanes.busy():
            for pending in lane.queue:
                if pending.answer is not None:
                    pending.answer.fail(self.fault or StoreClosedError("mainspring"))
        # What is left was on its way into the store when the caller of stop lost patience.
        self.intake.give_up(UnknownOutcomeError("mainspring"))

    async def _drain(self, seconds: float) -> None:
        """Let attempts and steps that are under way come to their end; cancel what is left when time is up."""
        for runner in self.dispatcher.runners:
            runner.closing = True
            runner.take_back()
        self.dispatcher.subscriptions.close()
        # By the loop's time: work under way ends whether or not a test moves its clock, and a clock may leap.
        loop = asyncio.get_running_loop()
        deadline_seconds = loop.time() + seconds
        while self._can_go_on() and loop.time() < deadline_seconds:  # noqa: ASYNC110  a stop is rare, an event per step is not
            await asyncio.sleep(DRAIN_CHECK_SECONDS)
        for runner in self.dispatcher.runners:
            if runner.active:
                log.warning("%s is cancelled after %.0f s; it will run again", runner.handler.name, seconds)
            runner.cancel_all()
        self.dispatcher.subscriptions.cancel_all()

    def _can_go_on(self) -> bool:
        """Return True if something is under way, and its end could still be recorded."""
        return (self.dispatcher.in_hand > 0 or bool(self.stepper.lanes.busy())) and not self.committer.cancelled

    async def _beat(self) -> None:
        try:
            await self._renew()
            await self.strays.look()
        except (NewerSchemaError, StoreMovedError) as error:
            self._end_by(error)
        except Exception as error:  # noqa: BLE001  a heart that stops for an error costs all that the worker holds
            log.warning("heartbeat failed: %s", error)

    async def _register(self) -> None:
        asked_us = self.store.now_us()
        knows = knowledge.written(knowledge.knowledge_of(self.registry, self.dispatcher.serves))
        self.worker.key = await self.store.register_worker(self.worker.name, int(LEASE_SECONDS * 1e6), knows)
        self._renewed_us = asked_us

    async def _renew(self) -> None:
        """Extend the lease, or register anew where this worker was relieved."""
        async with self._renewing:
            # The lease runs from when it was asked for: the answer may arrive when it is over.
            asked_us = self.store.now_us()
            self.dispatcher.runners.held_back_changed.clear()
            left, alone = self.claimer.strangers.instances_left(), self.dispatcher.resting
            standing = standing_of(self.dispatcher.runners, self.runtime.hung, left, self.projector.left(), alone=alone)
            if await self.store.heartbeat(self.worker.key, written(standing)):
                self._renewed_us = asked_us
                return
            log.warning("this worker was relieved; it goes on under a new key")
            await self._register()
            self.strays.forget()
            self.wakeups.due_at(0)

    async def _relieve(self) -> None:
        try:
            # A process that stood still for longer than its lease is alive: where no other worker has relieved it, it
            # must not relieve itself, and redo all that it holds.
            if self.store.now_us() - self._renewed_us >= LEASE_SECONDS * 1e6:
                await self._renew()
            if dead := await self.store.relieve():
                log.warning("relieved a dead worker")
                self._took_over(dead)
                self.wakeups.due_at(0)
            await self.lone_trials.look(relieved=dead > 0)
            await self._tell_cancelled()
        except Exception as error:  # noqa: BLE001  whatever it is, it must be tried again
            log.warning("looking for dead workers failed: %s", error)

    def _took_over(self, dead: int) -> None:
        if self.runtime.observer is not None:
            self.runtime.observer.relieved(dead)

    async def _tell_cancelled(self) -> None:
        """Cancel long attempts whose instance was cancelled by another process."""
        before_us = self.store.now_us() - int(RELIEVE_SECONDS * 1e6)
        running = {ref for runner in self.dispatcher.runners for ref in runner.running_since(before_us)}
        refs = sorted(running, key=str)[:LONG_ATTEMPTS]
        for ref, loaded in zip(refs, await self.store.load(refs, 0) if refs else [], strict=True):
            if loaded is not None and loaded.row.status in ("cancelled", "terminated", "compensating"):
                # While the answer was on its way, the instance may have begun anew: what is newer is not cancelled.
                which: Doomed = "armed" if loaded.row.status == "compensating" else "all"
                self.dispatcher.runners.cancel(ref, which, loaded.row.version)

    async def stop_overdue(self) -> None:
        """End attempts that have timed out."""
        now_us, runners = self.store.now_us(), self.dispatcher.runners
        runners.stop_overdue(now_us)
        self.dispatcher.subscriptions.stop_overdue(now_us)
        runners.look_at_threads(now_us)
        if not self.dispatcher.subscriptions.running and not any(runner.active for runner in runners):
            runners.busy.clear()

    async def look_at_pauses(self) -> None:
        """Learn what is paused, and let it wait; what is no longer paused resumes at once."""
        began, ended = await self.pauses.look()
        if not began and not ended:
            return
        # A process that only sends or reads has nothing to hold back but its own messages.
        level = logging.WARNING if self.works else logging.INFO
        for pause in began:
            log.log(level, "%s: %s", pause.fact, Quoted(pause.reason))
        for pause in ended:
            log.log(level, "the %s %s is not paused any more, and goes on", pause.kind, pause.name)
        self.dispatcher.runners.heed()
        self.wakeups.due_at(0)

    async def _look_at_pauses(self) -> None:
        try:
            await self.look_at_pauses()
        except Exception as error:  # noqa: BLE001  what was known last holds until the next look
            log.warning("what is paused could not be looked at: %s", error)

    def attempts(self) -> Iterator[tuple[asyncio.Task[Any], str, int]]:
        """Return the attempts that run now: each one's task, its handler's name, and when its time is up."""
        yield from self.dispatcher.runners.attempts()
        yield from self.dispatcher.subscriptions.attempts()
