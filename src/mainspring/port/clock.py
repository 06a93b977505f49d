"""Time, injected everywhere: a store's clock judges leases and due times, never a worker's."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Gives the time in microseconds since 1970 (UTC), and waits.

    >>> class Fixed:
    ...     def now_us(self) -> int:
    ...         return 0
    ...     async def sleep(self, seconds: float) -> None: ...
    >>> clock: Clock = Fixed()
    """

    def now_us(self) -> int:
        """Return the present moment."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after so many seconds of this clock."""
        ...
