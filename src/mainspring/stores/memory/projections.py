"""Projections in dicts: how far each generation is, and the documents that it keeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from mainspring.port.clock import Clock
from mainspring.port.projections import Advance, Behind, Checkpoint, Document
from mainspring.stores.memory.streams import StreamVerbs


class ProjectionVerbs(StreamVerbs):
    """The verbs of projections, which read the feed."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self._checkpoints: dict[tuple[str, int], Checkpoint] = {}
        self._documents: dict[tuple[str, int], dict[str, Document]] = {}

    async def checkpoints(self, projection: str | None = None) -> list[Checkpoint]:
        return [c for (name, _), c in sorted(self._checkpoints.items()) if projection in (None, name)]

    async def advance(self, move: Advance) -> bool:
        known = {c.generation: c for c in await self.checkpoints(move.name)}
        if not move.fits(known):
            return False
        for generation in move.retires:
            self._checkpoints[move.name, generation] = replace(known[generation], status="retired")
        place = (move.name, move.generation)
        old = known.get(move.generation)
        begun = Checkpoint(*place, move.version, move.status or "live", move.position, 0) if old is None else old
        changes: dict[str, Any] = {} if move.status is None else {"status": move.status}
        self._checkpoints[place] = replace(
            begun, position=move.position, updated_us=self.now_us(), error=move.error, **changes
        )
        kept = self._documents.setdefault(place, {})
        for document in move.documents:
            if document.body is None:
                kept.pop(document.key, None)
            else:
                kept[document.key] = document
        return True

    async def documents(self, projection: str, keys: Sequence[str], generation: int | None = None) -> list[Document]:
        kept = self._of(projection, generation)
        return [kept[key] for key in keys if key in kept]

    async def list_documents(self, projection: str, prefix: str, after: str, limit: int) -> list[Document]:
        kept = self._of(projection, None)
        keys = sorted(key for key in kept if key.startswith(prefix) and key > after)
        return [kept[key] for key in keys[:limit]]

    async def clear_documents(self, projection: str, generation: int, limit: int) -> int:
        place = (projection, generation)
        checkpoint = self._checkpoints.get(place)
        if checkpoint is None or checkpoint.status != "retired":
            return 0
        kept = self._documents.get(place, {})
        gone = list(kept)[:limit]
        for key in gone:
            del kept[key]
        if len(gone) < limit:
            self._documents.pop(place, None)
            del self._checkpoints[place]
        return len(gone)

    async def behind(self, position: int, limit: int) -> Behind:
        unseen = await self.feed(position, limit)
        return Behind(len(unseen), unseen[0][2].time_us if unseen else None)

    def _of(self, projection: str, generation: int | None) -> dict[str, Document]:
        if generation is None:
            live = (c for (name, _), c in self._checkpoints.items() if name == projection and c.status == "live")
            generation = next((c.generation for c in live), 0)
        return self._documents.get((projection, generation), {})
