"""Projections: checkpoints that move with the documents that changed, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence

from mainspring.port.projections import Advance, Behind, Checkpoint, Document
from mainspring.port.searches import prefix_end
from mainspring.stores.sql.dialect import Dialect
from mainspring.stores.sql.dialogue import Dialogue, Verbs, read


def advance(dialect: Dialect, move: Advance, now_us: int | None) -> Dialogue[bool]:
    """Move a checkpoint, unless another process did. Nothing is written before that is known."""
    concerned = sorted({move.generation, *move.retires})
    found = yield "lock_checkpoints", move.name, dialect.values(concerned)
    if not move.fits({checkpoint.generation: checkpoint for checkpoint in (Checkpoint(*row) for row in found)}):
        return False
    told = (move.status, move.position, now_us, dialect.text(move.error))
    if move.expected is not None:
        yield "move_checkpoint", move.name, move.generation, *told
    elif not (yield "begin_checkpoint", move.name, move.generation, move.version, *told):
        return False
    if move.retires:
        yield "retire_checkpoints", move.name, dialect.values(move.retires)
    kept = [
        (move.name, move.generation, each.key, each.type, each.type_version, each.body)
        for each in move.documents
        if each.body is not None
    ]
    if kept:
        yield "replace_documents", *dialect.inserted(kept)
    if gone := [document.key for document in move.documents if document.body is None]:
        yield "delete_documents", move.name, move.generation, dialect.values(gone)
    return True


class ProjectionVerbs(Verbs):
    """The verbs of projections."""

    async def advance(self, move: Advance) -> bool:
        return await self.in_transaction(lambda now_us: advance(self.dialect, move, now_us))

    @read
    def checkpoints(self, projection: str | None = None) -> Dialogue[list[Checkpoint]]:
        found = (yield ("checkpoints",)) if projection is None else (yield "checkpoints_of", projection)
        return [Checkpoint(*row) for row in found]

    @read
    def documents(
        self, projection: str, keys: Sequence[str], generation: int | None = None
    ) -> Dialogue[list[Document]]:
        rows = yield "documents", projection, generation, self.dialect.values(keys)
        found = {row[0]: Document(*row) for row in rows}
        return [found[key] for key in keys if key in found]

    @read
    def list_documents(self, projection: str, prefix: str, after: str, limit: int) -> Dialogue[list[Document]]:
        rows = yield "list_documents", projection, after, prefix, prefix_end(prefix), limit
        return [Document(*row) for row in rows]

    async def clear_documents(self, projection: str, generation: int, limit: int) -> int:
        return await self.in_transaction(lambda _now_us: self._clear(projection, generation, limit))

    def _clear(self, projection: str, generation: int, limit: int) -> Dialogue[int]:
        found = yield "lock_checkpoints", projection, self.dialect.values([generation])
        if not found or Checkpoint(*found[0]).status != "retired":
            return 0
        ((removed,),) = yield "clear_documents", projection, generation, limit
        if removed < limit:
            yield "delete_checkpoint", projection, generation
        return removed

    @read
    def behind(self, position: int, limit: int) -> Dialogue[Behind]:
        ((events, since_us),) = yield "behind", position, limit
        return Behind(events, since_us)
