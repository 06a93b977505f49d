"""Strays: what the store says this worker holds, and nothing here knows of. The safety net under our own mistakes.

What a commit has made or a claim has taken is this worker's in the store before any part of it is notified: one look
proves nothing. A stray is missing at two looks in a row: what was in flight at the first is over at the second, and it
did not arrive in between. If it did, it may have been released, and be on its way here once more.
"""

from __future__ import annotations

import asyncio

from mainspring.engine.claimable.arrivals import Arrivals, InHand
from mainspring.engine.claimable.wakeups import Wakeups
from mainspring.engine.claiming.claimer import Claimer
from mainspring.engine.committing.committer import Committer
from mainspring.engine.outputs.dispatcher import Dispatcher
from mainspring.engine.stepping.stepper import Stepper
from mainspring.logs import logger
from mainspring.port.records import OutputKey, Ref, Retry, Unit
from mainspring.port.store import Store

log = logger("mainspring.engine")


class Strays:
    """Compares what the store says with what this worker holds, at every heartbeat, and releases what is lost."""

    def __init__(
        self,
        store: Store,
        committer: Committer,
        claimer: Claimer,
        dispatcher: Dispatcher,
        stepper: Stepper,
        arrivals: Arrivals,
        wakeups: Wakeups,
    ) -> None:
        self._store = store
        self._committer = committer
        self._claimer = claimer
        self._dispatcher = dispatcher
        self._stepper = stepper
        self._arrivals = arrivals
        self._wakeups = wakeups
        self._looking = asyncio.Lock()
        self._looked_during = (0, 0)
        self._held_nothing_at: tuple[int, int] | None = None

    def in_hand(self, what: InHand) -> bool:
        """Return True if an output, or an input by its position, is in hand here."""
        if isinstance(what, OutputKey):
            return what in self._outputs_in_hand()
        return what in self._stepper.inputs_in_hand() | self._committer.inputs_in_hand()

    @property
    def idle(self) -> bool:
        """Whether nothing is in hand here, and nothing on its way."""
        under_way = self._dispatcher.in_hand or self._stepper.lanes.busy()
        return not under_way and self._committer.idle and self._claimer.idle

    def forget(self) -> None:
        """Forget what was missing: this worker continues under a new key, and others may have had all of it."""
        self._arrivals.miss(set())

    async def look(self) -> None:
        """Look once, and release what is lost; two looks at once would each see only a part of the arrivals."""
        async with self._looking:
            await self._look()

    async def _look(self) -> None:
        """Look, and release what is lost.

        A worker that held nothing, and has taken nothing since, does not ask: the store looks through all that waits.
        """
        taken = (self._committer.committed, self._claimer.taken)
        if taken == self._held_nothing_at:
            return
        quiet = self._committer.idle and self._claimer.idle
        # What was under way at the last look may still be: a lost answer is looked up for as long as that takes.
        commits, claims = self._looked_during
        over = self._committer.oldest_batch > commits and self._claimer.oldest_round > claims
        outputs_in_hand = self._outputs_in_hand()
        inputs_in_hand = self._stepper.inputs_in_hand() | self._committer.inputs_in_hand()
        worker = self._committer.worker
        self._arrivals.begin_look()
        try:
            outputs = set(await self._store.holds(worker))
            inputs = dict[int, Ref]()
            for ref, position in await self._store.holds_inputs(worker):
                inputs[position] = ref
        finally:
            came = self._arrivals.end_look()
        if worker != self._committer.worker:
            self._arrivals.miss(set())
            return  # it was relieved meanwhile, and all that was missing is forgotten
        self._held_nothing_at = taken if quiet and not outputs and not inputs else None
        self._looked_during = (self._committer.batches, self._claimer.rounds)
        missing = set[InHand]()
        if over:
            missing = (outputs - outputs_in_hand | inputs.keys() - inputs_in_hand) - came
        lost = missing & self._arrivals.missing
        # What is released now is claimed anew, and no longer missing.
        self._arrivals.miss(missing - lost)
        self._give_back(outputs & lost)
        self._give_back_inputs({position: inputs[position] for position in sorted(inputs.keys() & lost)})

    def _outputs_in_hand(self) -> set[OutputKey]:
        stations = (self._dispatcher, self._stepper, self._committer)
        return {output for station in stations for output in station.outputs_in_hand()}

    def _give_back(self, lost: set[OutputKey]) -> None:
        for output in lost:
            log.error("output %s was lost by this worker; it will be carried out again", output)
            unit = Unit("", "", retries=(Retry(output, 0, 0, "lost by its worker"),))
            self._committer.add(unit, lambda _: self._wakeups.due_at(0))

    def _give_back_inputs(self, lost: dict[int, Ref]) -> None:
        by_instance: dict[Ref, list[int]] = {}
        for position, ref in lost.items():
            log.error("input %d of %s was lost by this worker; it will be taken again", position, ref)
            by_instance.setdefault(ref, []).append(position)
        for ref, positions in by_instance.items():
            unit = Unit(ref.workflow, ref.id, releases=tuple(positions))
            self._committer.add(unit, lambda _: self._wakeups.due_at(0))
