"""Work: it is committed, claimed, and handed on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from mainspring.port.loans import Loan
from mainspring.port.records import NO_LEAVES, Claims, Leaves, Outcome, Relayed, Unit
from mainspring.port.suspects import Alone, Suspect

SOON_US: Final = 1_000_000


class Work(Protocol):
    """Work: it is committed, claimed, and handed on."""

    async def commit(self, worker: int, units: Sequence[Unit]) -> list[Outcome]:
        """Apply units in order in one transaction, and return one outcome each. A refused one leaves no trace.

        After a refused unit that moves an instance, those behind it that move the same instance are Conflicts: they
        were built on it.
        """
        ...

    async def claim(
        self, worker: int, destinations: Sequence[str], workflows: Sequence[str], limit: int, leaves: Leaves = NO_LEAVES
    ) -> Claims:
        """Claim due outputs for these destinations, and inputs of these workflows' instances that are not suspended.

        Outputs come by priority, then due time, at most `limit`. Inputs come in the order of their acceptance, `limit`
        at most; of one instance only ever a beginning of its queue. What another live worker holds is left alone, and
        so is what the worker `leaves` to others, and what waits behind it.
        """
        ...

    async def claim_alone(self, worker: int, suspect: Suspect | None) -> Alone | None:
        """Claim something that is set aside, if it still is; an input only where it is the first that waits.

        From then on it is blamed alone if the worker is lost. None ends that: what the worker holds is counted again.
        """
        ...

    async def relay(self, limit: int) -> Relayed:
        """Move the first messages that programs posted into the inboxes, in one transaction and in their order.

        A duplicate of an input is dropped; a message that cannot be an input, as when its id was used for another,
        becomes a dead letter. A store into which programs cannot post has none.
        """
        ...

    async def restore_output(self, dead_letter: int, expected_version: int | None = None) -> bool:
        """Put a dead letter that came from an outbox back there, due now, with no attempts made.

        False: it is gone, or its instance is at another version than the expected one.
        """
        ...

    async def wait_for_work(self, timeout_seconds: float) -> None:
        """Return when there may be new work from outside this process, or after the timeout. A hint, no promise.

        What is due later than `SOON_US` needs none: a waiting worker looks by itself until then.
        """
        ...

    @property
    def lends(self) -> bool:
        """Whether a handler can write in the transaction of its result here."""
        ...

    async def lend(self, worker: int, limit_seconds: float) -> Loan:
        """Open a transaction of its own for a handler, which is rolled back if it is not over within its limit."""
        ...
