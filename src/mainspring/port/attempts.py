"""Attempts at commands and publications that failed: kept beside the stream, to show what was tried."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

ATTEMPTS_KEPT: Final = 20
"""Of one command, the latest."""
ATTEMPTS_OF_INSTANCE: Final = 1_000
"""Of all commands of an instance, the latest."""


class Attempt(Struct, frozen=True, gc=False):
    """A failed attempt at what an instance sent, whose key is `instance`, at the position `version`.

    `number` counts its attempts from 1, anew after its dead letter was retried. `worker` is the name of who made it.
    `began_us` is None where the call did not even begin.

    >>> Attempt(7, 3, 1, "host:4711", 1_000_000, 3_500_000, "refused").duration_us
    2500000
    """

    instance: int
    version: int
    number: int
    worker: str
    began_us: int | None
    ended_us: int
    error: str | None

    @property
    def position(self) -> int:
        """Where in the stream of its instance it was sent what was tried."""
        return self.version

    @property
    def duration_us(self) -> int | None:
        """How long it took."""
        return None if self.began_us is None else self.ended_us - self.began_us
