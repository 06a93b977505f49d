"""Alone: what was lost with its workers is tried by itself, so that it takes nothing with it. Nothing else is blamed.

What was lost twice is set aside by the store. One worker at a time claims nothing more, waits until it holds nothing,
and tries one such item after the other. What keeps taking workers down is given up.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from mainspring.engine.claiming.claimer import Claimer
from mainspring.engine.claiming.claimer import read as read_claim
from mainspring.engine.claiming.strays import Strays
from mainspring.engine.committing.committer import Committer
from mainspring.engine.fleet.standing import read
from mainspring.engine.handlers.job import Job
from mainspring.engine.inputs.delivered_output import fired
from mainspring.engine.inputs.pending import Pending
from mainspring.engine.inputs.stored_input import from_inbox
from mainspring.engine.outputs.dispatcher import Dispatcher
from mainspring.engine.paused_work import PausedWork
from mainspring.engine.registry import Registry
from mainspring.engine.runtime import Runtime
from mainspring.engine.stepping.stepper import Stepper
from mainspring.engine.this_worker import ThisWorker
from mainspring.errors import NewerTypeError, WorkersLostError
from mainspring.logs import logger
from mainspring.port.records import Claims, OutputClaim, OutputKey, Ref
from mainspring.port.store import Store
from mainspring.port.suspects import SUSPECT, Alone, Suspect

MAX_LOST: Final = 3
"""How often something is lost alone before it is given up."""
REST_SECONDS: Final = 10.0
"""How long a worker claims nothing: until it holds nothing, and while it tries one thing after the other."""
PAUSE_SECONDS: Final = 10.0
"""How long it works normally afterwards, before it rests again."""
CHECK_SECONDS: Final = 0.02
LOOKS: Final = 10
"""Of so many looks for dead workers one looks for what was set aside by others."""
SUSPECTS_LOOKED_AT: Final = 1_000
REASON: Final = "it was lost with its workers"

log = logger("mainspring.engine")


class LoneTrials:
    """Tries what was set aside, one thing after the other."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        committer: Committer,
        dispatcher: Dispatcher,
        claimer: Claimer,
        strays: Strays,
        stepper: Stepper,
        runtime: Runtime,
        worker: ThisWorker,
        paused: PausedWork,
        beat: Callable[[], Awaitable[None]],
    ) -> None:
        self._store = store
        self._registry = registry
        self._committer = committer
        self._dispatcher = dispatcher
        self._settlements = dispatcher.settlements
        self._claimer = claimer
        self._strays = strays
        self._stepper = stepper
        self._runtime = runtime
        self._worker = worker
        self._paused = paused
        self._trying = False
        self.looks = 0
        self._more = False
        self._not_before_us = 0
        self._beat = beat

    async def look(self, *, relieved: bool) -> None:
        """Begin to try what is set aside, if there is something that this worker can do and no other is about to.

        Mostly there is nothing, and the worker that relieved another knows first.
        """
        self.looks += 1
        wanted = relieved or self._more or self.looks % LOOKS == 1
        if self._trying or self._worker.closing or not wanted or self._store.now_us() < self._not_before_us:
            return
        found = await self._suspects()
        self._more = False
        if not found or await self._another_tries():
            return
        log.warning("%s was lost with %d workers; it is tried alone", found[0].name, found[0].lost)
        self._trying = True
        self._runtime.spawn(self._try_all(), "mainspring-alone")

    async def _suspects(self) -> list[Suspect]:
        """Return what this worker can try, what was lost least first: the innocent are through soon."""
        found = [suspect for suspect in await self._store.suspects(SUSPECTS_LOOKED_AT) if self._can_try(suspect)]
        return sorted(found, key=lambda suspect: (suspect.lost, suspect.position or 0))

    def _can_try(self, suspect: Suspect) -> bool:
        if not suspect.aside:
            return False
        if suspect.position is None:
            queue = self._registry.queue_of(suspect.destination)
            return queue != "" and queue not in self._paused.queues and self._dispatcher.serves(queue)
        claimer, ref = self._claimer, Ref(suspect.workflow, suspect.instance)
        known = suspect.workflow in self._registry.workflows and not claimer.leaves(suspect.workflow)
        return known and ref not in claimer.strangers.leaves().instances and self._reads(suspect)

    def _reads(self, suspect: Suspect) -> bool:
        return self._registry.codec.reads(suspect.type, suspect.type_version)

    async def _another_tries(self, *, before: int | None = None) -> bool:
        """Return True if another worker rests: one at a time does, and of two the older goes first."""
        now_us, own = self._store.now_us(), self._committer.worker
        others = [row for row in await self._store.workers() if row.key != own and row.ends_us > now_us]
        return any(read(row.standing).alone for row in others if before is None or row.key < before)

    async def _try_all(self) -> None:
        """Claim nothing for a while, and try one thing after the other, once nothing is held."""
        ends_us = self._store.now_us() + int(REST_SECONDS * 1e6)
        tried = set[tuple[str, str, int | None, int | None]]()
        try:
            self._rest(True)
            await self._beat()
            if await self._another_tries(before=self._committer.worker):
                return
            while await self._until(lambda: self._strays.idle, ends_us):
                found = [suspect for suspect in await self._suspects() if _place(suspect) not in tried]
                if not found:
                    return
                # What comes back at once was released: others can do it, and this worker cannot.
                tried.add(_place(found[0]))
                if not await self._try_one(found[0], ends_us):
                    break
            self._more = True
        except Exception as error:  # noqa: BLE001  whatever it is, it is looked for again at the next look
            log.warning("what was lost with other workers could not be tried: %s", error)
        finally:
            self._not_before_us = self._store.now_us() + int(PAUSE_SECONDS * 1e6)
            self._rest(False)
            self._trying = False

    async def _try_one(self, suspect: Suspect, ends_us: int) -> bool:
        """Try something. False: it takes long, and other work continues beside it; it is blamed until it is over."""
        taken = await self._store.claim_alone(self._committer.worker, suspect)
        if taken is None:
            return True
        self._begin(taken)
        if not await self._until(lambda: not self._in_hand(taken), ends_us):
            self._rest(False)
            await self._until(lambda: not self._in_hand(taken), None)
            await self._store.claim_alone(self._committer.worker, None)
            return False
        await self._store.claim_alone(self._committer.worker, None)
        return True

    def _rest(self, resting: bool) -> None:
        self._dispatcher.resting = resting
        self._claimer.rest(resting)
        self._dispatcher.runners.held_back_changed.set()

    def _begin(self, taken: Alone) -> None:
        """Carry it out, or give it up."""
        if taken.lost >= SUSPECT + MAX_LOST:
            self._give_up(taken)
        else:
            outputs = [taken.output] if taken.output is not None else []
            inputs = [taken.input] if taken.input is not None else []
            self._claimer.take(Claims(outputs, inputs, None))

    def _in_hand(self, taken: Alone) -> bool:
        what: OutputKey | int = 0
        if taken.output is not None:
            what = taken.output.output
        elif taken.input is not None:
            what = taken.input.position
        return self._strays.in_hand(what)

    def _give_up(self, taken: Alone) -> None:
        if taken.output is not None:
            self._give_up_output(taken.output, taken.lost)
        elif taken.input is not None:
            row = taken.input
            error = WorkersLostError(f"{row.type}, an input of {row.workflow}/{row.instance},", taken.lost)
            log.error("%s", error)
            self._suspend(from_inbox(self._registry.codec, row), error)

    def _give_up_output(self, claim: OutputClaim, lost: int) -> None:
        """Make a dead letter of it; a timer suspends the instance that never takes it."""
        message, own, unreadable = read_claim(self._registry.codec, claim)
        error = WorkersLostError(f"{claim.type} ({claim.workflow}/{claim.instance}/{claim.output.version})", lost)
        log.error("%s", error)
        if isinstance(unreadable, NewerTypeError):
            self._settlements.leave(claim, unreadable)
        elif unreadable is not None:
            self._settlements.bury(claim, "it cannot be read", unreadable)
        elif claim.kind == "timer":
            self._suspend(fired(own, message, self._store.now_us()), error)
        elif claim.kind == "send":
            self._settlements.give_up(Job(own, message), error, REASON)
        else:
            self._settlements.bury(own, REASON, error)

    def _suspend(self, pending: Pending, error: WorkersLostError) -> None:
        pending.unreadable = error
        self._stepper.submit(pending)

    async def _until(self, condition: Callable[[], Any], ends_us: int | None) -> bool:
        """Poll for something that sends no signal; False if it is not so in time."""
        while not condition():
            if ends_us is not None and self._store.now_us() >= ends_us:
                return False
            await self._runtime.clock.sleep(CHECK_SECONDS)
        return True


def _place(suspect: Suspect) -> tuple[str, str, int | None, int | None]:
    return suspect.workflow, suspect.instance, suspect.version, suspect.position
