"""What was recorded: streams, the feed of all of them, results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mainspring.port.records import DeadLetter, EventRow, InputRow, Loaded, Outline, OutlineSpot, Ref, Remembered


class Streams(Protocol):
    """What was recorded: streams, the feed of all of them, results."""

    async def load(self, refs: Sequence[Ref], most: int | None = None) -> list[Loaded | None]:
        """Return what is needed to fold each instance, or None where there is none.

        With `most`, only so many events of each, the first behind its snapshot: the others can be read by `stream`.
        """
        ...

    async def stream(self, ref: Ref, after: int, limit: int) -> list[EventRow]:
        """Return the events of an instance behind the version `after`."""
        ...

    async def feed(self, after: int, limit: int) -> list[tuple[int, Ref, EventRow]]:
        """Return events of all instances behind a position, in an order in which none can still appear before."""
        ...

    async def outlines(self, spots: Sequence[OutlineSpot], limit: int) -> list[Outline]:
        """Return events of instances without their bodies: in the order of the spots, then of their versions.

        Instances are named by their keys, each once. No checksum is looked at, for it covers the bodies.
        """
        ...

    async def messages(self, ref: Ref, message_id: str) -> list[InputRow | EventRow | DeadLetter]:
        """Return what an instance has under a message id: the input that waits or is in its stream, then dead letters.

        Of these, in the order of their arrival, those that were never outputs.
        """
        ...

    async def remembered(self, key: str) -> Remembered | None:
        """Return the result kept under a business key, unless it has expired."""
        ...
