"""Alone: what was lost with its workers is tried by itself, so that it takes nothing with it. Nothing else is blamed.

What was lost twice is set aside by the store. One worker at a time claims nothing more, waits until its hands are
empty, and takes one such thing after the other. What goes on taking workers down is given up.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from mainspring.engine import claims
from mainspring.engine.claims import Claimer
from mainspring.engine.committer import Committer
from mainspring.engine.dispatch import Dispatcher
from mainspring.engine.intake import Intake
from mainspring.engine.jobs import Job, fired
from mainspring.engine.pending import Pending
from mainspring.engine.registry import Registry
from mainspring.engine.runtime import Runtime
from mainspring.engine.standing import read
from mainspring.engine.strays import Strays
from mainspring.errors import WorkersLostError
from mainspring.port.records import Claims, OutputClaim, OutputKey
from mainspring.port.store import Store
from mainspring.port.suspects import SUSPECT, Alone, Suspect

MAX_LOST: Final = 3
"""So often something is lost alone before it is given up."""
EMPTY_HANDS_SECONDS: Final = 30.0
"""So long a worker waits for what it has in hand, before it tries something alone."""
ALONE_SECONDS: Final = 10.0
"""So long it waits for that to end, before it takes other work again."""
CHECK_SECONDS: Final = 0.02
LOOKS: Final = 10
"""Of so many looks for dead workers one looks for what was set aside by others."""
REASON: Final = "it was lost with its workers"
SUSPECTS_LOOKED_AT: Final = 100

log = logging.getLogger("mainspring.engine")


class Loner:
    """Tries what was set aside, one thing after the other."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        committer: Committer,
        dispatcher: Dispatcher,
        claimer: Claimer,
        strays: Strays,
        intake: Intake,
        runtime: Runtime,
    ) -> None:
        self._store = store
        self._registry = registry
        self._committer = committer
        self._dispatcher = dispatcher
        self._claimer = claimer
        self._strays = strays
        self._intake = intake
        self._runtime = runtime
        self._trying = False
        self._looks = 0

    async def look(self, *, relieved: bool) -> None:
        """Begin to try what is set aside, if there is something that this worker can do and no other is about to.

        Mostly there is nothing, and who has relieved a worker knows first.
        """
        self._looks += 1
        if self._trying or self._dispatcher.closing or not (relieved or self._looks % LOOKS == 1):
            return
        found = [suspect for suspect in await self._store.suspects(SUSPECTS_LOOKED_AT) if self._can_try(suspect)]
        if not found or await self._another_tries():
            return
        log.warning("%s was lost with %d workers; it is tried alone", found[0].name, found[0].lost)
        self._trying = True
        self._runtime.spawn(self._try_all(), "mainspring-alone")

    def _can_try(self, suspect: Suspect) -> bool:
        if not suspect.aside:
            return False
        if suspect.version is None:
            return suspect.workflow in self._registry.workflows
        return self._registry.knows(suspect.destination) and self._dispatcher.serves(
            self._registry.queue_of(suspect.destination)
        )

    async def _another_tries(self) -> bool:
        """Tell whether another worker rests: of all that are there one at a time does."""
        now_us, own = self._store.now_us(), self._committer.worker
        others = [row for row in await self._store.workers() if row.key != own and row.ends_us > now_us]
        return any(read(row.held).alone for row in others)

    async def _try_all(self) -> None:
        try:
            self._rest(True)
            await self._until(lambda: self._strays.idle, EMPTY_HANDS_SECONDS)
            while (taken := await self._claim()) is not None:
                if not await self._try(taken):
                    # It takes long, and may go on to: the others go on beside it, and are not blamed for it.
                    self._rest(False)
                    await self._until(lambda taken=taken: not self._in_hand(taken), None)
                    self._rest(True)
                    await self._until(lambda: self._strays.idle, EMPTY_HANDS_SECONDS)
        except Exception as error:  # noqa: BLE001  whatever it is, it is looked for again at the next look
            log.warning("what was lost with other workers could not be tried: %s", error)
        finally:
            self._trying = False
            self._rest(False)

    def _rest(self, resting: bool) -> None:
        self._dispatcher.resting = resting
        self._claimer.rest(resting)
        self._dispatcher.held.set()

    async def _claim(self) -> Alone | None:
        workflows = list(self._registry.workflows)
        return await self._store.claim_alone(self._committer.worker, self._claimer.destinations(), workflows)

    async def _try(self, taken: Alone) -> bool:
        """Carry it out, or give it up. Tell whether that was over soon."""
        if taken.lost >= SUSPECT + MAX_LOST:
            self._give_up(taken)
        else:
            outputs = [taken.output] if taken.output is not None else []
            inputs = [taken.input] if taken.input is not None else []
            self._claimer.take(Claims(outputs, inputs, None))
        return await self._until(lambda: not self._in_hand(taken), ALONE_SECONDS)

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
            self._suspend(self._intake.from_inbox(row), error)

    def _give_up_output(self, claim: OutputClaim, lost: int) -> None:
        """Make a dead letter of it; a timer suspends the instance that never takes it."""
        message, own, unreadable = claims.read(self._registry.codec, claim)
        error = WorkersLostError(f"{claim.type} ({claim.workflow}/{claim.instance}/{claim.output.version})", lost)
        log.error("%s", error)
        if unreadable is not None:
            self._dispatcher.bury(claim, "it cannot be read", unreadable)
        elif claim.kind == "timer":
            self._suspend(fired(own, message, self._store.now_us()), error)
        elif claim.kind == "send":
            self._dispatcher.give_up(Job(own, message), error, REASON)
        else:
            self._dispatcher.bury(own, REASON, error)

    def _suspend(self, pending: Pending, error: WorkersLostError) -> None:
        pending.unreadable = error
        self._intake.submit(pending)

    async def _until(self, condition: Callable[[], Any], seconds: float | None) -> bool:
        """Wait for something that nobody tells of; False if it is not so in time."""
        ends_us = None if seconds is None else self._store.now_us() + int(seconds * 1e6)
        while not condition():
            if ends_us is not None and self._store.now_us() >= ends_us:
                return False
            await self._runtime.clock.sleep(CHECK_SECONDS)
        return True
