"""Workers as a store knows them."""

from __future__ import annotations

from msgspec import Struct


class WorkerRow(Struct, frozen=True, gc=False):
    """A worker that is registered: its last heartbeat was `lease_us` before its lease ends.

    `knows` is what it can read, `standing` what it holds back, as it said itself.

    >>> WorkerRow(7, "host:4711", 30_000_000, 90_000_000).heard_us
    60000000
    """

    key: int
    name: str
    lease_us: int
    ends_us: int
    knows: str = ""
    standing: str = ""

    @property
    def heard_us(self) -> int:
        """When its last heartbeat came."""
        return self.ends_us - self.lease_us
