"""The inbox: where inputs wait for their turn. They are put there, and released where they were claimed too early."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from msgspec.structs import replace

from mainspring.engine.claimable.wakeups import Wakeups
from mainspring.engine.committing.committer import Committer
from mainspring.engine.inputs.pending import Inputs, Pending
from mainspring.engine.inputs.refusals import not_answered, not_met
from mainspring.engine.runtime import Runtime
from mainspring.engine.stepping.duplicates import Duplicates
from mainspring.engine.stepping.units import Units
from mainspring.logs import logger
from mainspring.port.preconditions import Unmet
from mainspring.port.records import Committed, Conflict, Duplicate, Outcome, Unit
from mainspring.port.tasks import Refused

PAUSE_AFTER_STORE_ERROR_SECONDS: Final = 1.0

log = logger("mainspring.engine")


class Inbox:
    """Puts inputs into the inbox of their instance and releases them, however long the store is in trouble."""

    def __init__(
        self,
        units: Units,
        duplicates: Duplicates,
        committer: Committer,
        runtime: Runtime,
        wakeups: Wakeups,
        inputs: Inputs,
    ) -> None:
        self._units = units
        self._duplicates = duplicates
        self._committer = committer
        self._runtime = runtime
        self._wakeups = wakeups
        self._inputs = inputs
        self._later: dict[int, Pending] = {}

    @property
    def waiting(self) -> Iterable[Pending]:
        """The inputs that are retried after a while."""
        return self._later.values()

    def put(self, pending: Pending, *, claimed: bool = False) -> None:
        """Put an input behind those that wait in its instance's inbox; if `claimed`, to be stepped here next."""

        def came_back(outcome: Outcome | Exception) -> None:
            match outcome:
                case Committed(positions=positions, unclaimed=unclaimed):
                    if pending.answer is not None:
                        pending.answer.resolve("accepted")
                    if claimed and positions[0] and not unclaimed:
                        self._inputs.accepted(pending.input_row(), positions[0])
                    else:
                        self._wakeups.due_at(0)
                case Duplicate(same):
                    self._duplicates.take(pending, same)
                case Conflict():
                    log.debug("%s: %s was taken by another worker", pending.ref, pending.id)
                case Refused(reason):
                    not_answered(pending, reason)
                case Unmet():
                    not_met(pending, outcome)
                case _:
                    if pending.answer is not None and not pending.awaits_end_of(outcome):
                        pending.answer.fail(outcome)
                    else:
                        self.later(lambda: self.put(pending, claimed=claimed), pending)

        unit = self._units.accepted(pending, claimed=claimed)
        requires = pending.requires
        self._committer.add(unit if requires is None else replace(unit, requires=requires), came_back)

    def give_back(self, pending: Pending) -> None:
        """Release an input that another worker took, or that came before its turn: it comes again behind the others.

        After a while: what waits before it may be claimed by this very worker, whose claim lost its answer.
        """
        unit = Unit(pending.ref.workflow, pending.ref.id, releases=(pending.position or 0,))
        self.later(lambda: self._committer.persist(unit, lambda _: self._wakeups.due_at(0)), pending)

    def later(self, call: Callable[[], None], pending: Pending | None = None) -> None:
        """Do something after a while, and keep the input listed meanwhile."""

        async def wait() -> None:
            await self._runtime.clock.sleep(PAUSE_AFTER_STORE_ERROR_SECONDS)
            self._later.pop(id(pending), None)
            call()

        if pending is not None:
            self._later[id(pending)] = pending
        self._runtime.spawn(wait(), "mainspring-later")
