"""What waits, who holds it, and what failed: for people, and for the upkeep of the work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mainspring.port.attempts import Attempt
from mainspring.port.records import DeadLetter, InputRow, OutputClaim, OutputKey, Ref, Stats, Waiting
from mainspring.port.suspects import Suspect
from mainspring.port.workers import WorkerRow


class Backlog(Protocol):
    """What waits, who holds it, and what failed: for people, and for the upkeep of the work."""

    async def inbox(self, ref: Ref, limit: int) -> list[InputRow]:
        """Return the inputs that wait for an instance, in order."""
        ...

    async def outputs(self, ref: Ref | None, timers: bool, limit: int) -> list[OutputClaim]:
        """Return recorded outputs that are not carried out yet: timers, or all but timers; the next due first."""
        ...

    async def timers(self, limit: int) -> list[OutputClaim]:
        """Return the timers of all instances that no worker holds, the next due first. A damaged one is left out."""
        ...

    async def attempts(self, ref: Ref, limit: int) -> list[Attempt]:
        """Return attempts at what an instance sent that failed, by the positions of what was sent, then by time.

        Of one command the latest `ATTEMPTS_KEPT` are kept, of an instance the latest `ATTEMPTS_OF_INSTANCE`.
        """
        ...

    async def waiting(self, before_us: int) -> list[Waiting]:
        """Return how many inputs have waited since before a time, unclaimed; none of suspended instances.

        It looks at all that wait.
        """
        ...

    async def dead_letters(self, limit: int, after: int = 0, ids: Sequence[int] | None = None) -> list[DeadLetter]:
        """Return dead letters in the order of their arrival."""
        ...

    async def suspects(self, limit: int) -> list[Suspect]:
        """Return what was lost `SUSPECT` times or more with its workers, what was lost most first.

        No inputs of suspended instances: these wait for a person.
        """
        ...

    async def workers(self) -> list[WorkerRow]:
        """Return the workers that are registered, by their keys; one whose lease has expired may be gone."""
        ...

    async def holds(self, worker: int) -> list[OutputKey]:
        """Return the outputs that a worker holds."""
        ...

    async def holds_inputs(self, worker: int) -> list[tuple[Ref, int]]:
        """Return the inputs that a worker holds: for which instance, and at which position, in their order."""
        ...

    async def stats(self) -> Stats:
        """Return depths and ages. Of instances, what `tally` counts."""
        ...
