"""Projections: how far each is in the feed, and the documents that it keeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mainspring.port.projections import Advance, Behind, Checkpoint, Document


class Projections(Protocol):
    """Projections: how far each is in the feed, and the documents that it keeps."""

    async def checkpoints(self, projection: str | None = None) -> list[Checkpoint]:
        """Return how far projections are, all or one: every generation that is not cleared away, by name and number."""
        ...

    async def advance(self, move: Advance) -> bool:
        """Move a checkpoint and write its documents in one transaction. False: another process moved it first."""
        ...

    async def documents(self, projection: str, keys: Sequence[str], generation: int | None = None) -> list[Document]:
        """Return those documents of a generation, or of the live one, that there are."""
        ...

    async def list_documents(self, projection: str, prefix: str, after: str, limit: int) -> list[Document]:
        """Return documents of the live generation whose keys begin so, in the order of their keys behind `after`."""
        ...

    async def clear_documents(self, projection: str, generation: int, limit: int) -> int:
        """Remove so many documents of a retired generation; if there are fewer, its checkpoint too. Return how many."""
        ...

    async def behind(self, position: int, limit: int) -> Behind:
        """Return how many events the feed has behind a position, `limit` at most, and when the first happened."""
        ...
