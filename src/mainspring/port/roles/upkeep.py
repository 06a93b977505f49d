"""Opening and closing, the time, and what is removed in the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from mainspring.port.purges import Purgeable, PurgeCursor, Purged, PurgePage


class Upkeep(Protocol):
    """Opening and closing, the time, and what is removed in the end."""

    async def open(self) -> None:
        """Connect, and bring the schema up to date."""
        ...

    async def close(self) -> None:
        """Disconnect. What was committed stays."""
        ...

    def now_us(self) -> int:
        """Return the store's own time, by which leases and due times are judged."""
        ...

    @property
    def era(self) -> Callable[[], int] | None:
        """What tells the era, or None if nothing can be erased: then it need not be asked for.

        Between two eras something was erased, and the data subject got a new key. What was read in an earlier one may
        be erased by now; a unit that moves an instance by it names the era (`Unit.era`).
        """
        ...

    async def purgeable(self, workflow: str, before_us: int, limit: int, after: PurgeCursor | None = None) -> PurgePage:
        """Return instances of a workflow that ended before a time and may be purged, in the order of their ends.

        Looks at `limit` ends at most. Left out are those that inputs, outputs or dead letters are kept for, and those
        that moved since that time: late results may still reach an ended instance.
        """
        ...

    async def purge(self, found: Sequence[Purgeable], events: int) -> Purged:
        """Make tombstones of instances, and remove so many of their events at most, in one transaction.

        A tombstone keeps identity, version, status and times, and shows no events from that moment on, even while some
        are left to be removed by the next call. An instance that may not be purged any more is left alone, and so is
        one that another process is working on. Inputs that come later find an ended instance.
        """
        ...
