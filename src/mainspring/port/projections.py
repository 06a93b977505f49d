"""What crosses the port when the feed is folded into read models: how far each is, and the documents that it keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

GenerationStatus: TypeAlias = Literal["live", "building", "retired"]


class Checkpoint(Struct, frozen=True, gc=False):
    """How far a generation of a projection is in the feed, and what stopped it, if anything did.

    The `live` one is read. One that is `building` takes its place when it has caught up; a `retired` one is cleared
    away. `version` is that of the code that fills it.

    >>> Checkpoint("orders", 1, 1, "live", 0, 0).error is None
    True
    """

    name: str
    generation: int
    version: int
    status: GenerationStatus
    position: int
    updated_us: int
    error: str | None = None


class Document(Struct, frozen=True, gc=False):
    """A document that a projection keeps under a key. Without a body there is none any more.

    >>> Document("o-1").body is None
    True
    """

    key: str
    type: str | None = None
    type_version: int = 1
    body: bytes | None = None


class Advance(Struct, frozen=True, gc=False):
    """A move of a checkpoint with the documents that changed: all or nothing, and only from where it is believed to be.

    `expected` is the position that the generation must have; None means that it must not be there yet. `status` is set
    where it is given, and `retires` are generations that end with this move: they must not have ended before, and one
    that is live must not be ahead of a generation that was filled to take its place. A position of -1 says that nothing
    was done for a generation yet.
    """

    name: str
    generation: int
    expected: int | None
    position: int
    version: int = 1
    status: GenerationStatus | None = None
    error: str | None = None
    retires: tuple[int, ...] = ()
    documents: tuple[Document, ...] = ()

    def fits(self, known: Mapping[int, Checkpoint]) -> bool:
        """Return True if the move may be made, given the checkpoints of its projection by generation."""
        own = known.get(self.generation)
        if self.expected is None:
            if own is not None:
                return False
        elif own is None or own.status == "retired" or own.position != self.expected:
            return False
        return all(self._may_retire(known.get(generation)) for generation in self.retires)

    def _may_retire(self, old: Checkpoint | None) -> bool:
        if old is None or old.status == "retired":
            return False
        # A reader of the live one must never see an earlier moment than before.
        filled = self.expected is not None and self.expected >= 0
        return not filled or old.status != "live" or old.position <= self.position


class Behind(Struct, frozen=True, gc=False):
    """How many events stand behind a position, as far as they were counted, and when the first of them happened."""

    events: int
    since_us: int | None
