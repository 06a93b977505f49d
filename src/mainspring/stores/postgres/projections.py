"""Projections: checkpoints that move with the documents that changed, in one transaction."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from mainspring.port.projections import Advance, Behind, Checkpoint, Document
from mainspring.port.searching import prefix_end
from mainspring.stores.postgres.changes import clean
from mainspring.stores.postgres.session import Row
from mainspring.stores.postgres.transaction import Transaction

Ask: TypeAlias = Callable[..., Awaitable[list[Row]]]


async def checkpoints(ask: Ask, projection: str | None) -> list[Checkpoint]:
    """Return how far projections are."""
    found = await ask("checkpoints") if projection is None else await ask("checkpoints_of", projection)
    return [Checkpoint(*row) for row in found]


async def advance(transaction: Transaction, move: Advance, now_us: int | None) -> bool:
    """Move a checkpoint, unless somebody else did. Nothing is written before that is known."""
    concerned = sorted({move.generation, *move.retires})
    found = [Checkpoint(*row) for row in await transaction.rows("lock_checkpoints", move.name, concerned)]
    if not move.fits({checkpoint.generation: checkpoint for checkpoint in found}):
        return False
    told = (move.status, move.position, now_us, clean(move.error))
    if move.expected is None:
        begun = await transaction.rows("begin_checkpoint", move.name, move.generation, move.version, *told)
        if not begun:
            return False
    else:
        await transaction.rows("move_checkpoint", move.name, move.generation, *told)
    if move.retires:
        await transaction.rows("retire_checkpoints", move.name, list(move.retires))
    await _write(transaction, move)
    return True


async def _write(transaction: Transaction, move: Advance) -> None:
    kept = [document for document in move.documents if document.body is not None]
    if kept:
        await transaction.rows(
            "replace_documents",
            move.name,
            move.generation,
            [document.key for document in kept],
            [document.type for document in kept],
            [document.type_version for document in kept],
            [document.body for document in kept],
        )
    if gone := [document.key for document in move.documents if document.body is None]:
        await transaction.rows("delete_documents", move.name, move.generation, gone)


async def clear(transaction: Transaction, projection: str, generation: int, limit: int) -> int:
    """Remove so many documents of a retired generation, and its checkpoint with the last."""
    found = [Checkpoint(*row) for row in await transaction.rows("lock_checkpoints", projection, [generation])]
    if not found or found[0].status != "retired":
        return 0
    removed: int = await transaction.value("clear_documents", projection, generation, limit)
    if removed < limit:
        await transaction.rows("delete_checkpoint", projection, generation)
    return removed


async def documents(ask: Ask, projection: str, keys: Sequence[str], generation: int | None) -> list[Document]:
    """Return the documents under these keys."""
    found = {row[0]: Document(*row) for row in await ask("documents", projection, generation, list(keys))}
    return [found[key] for key in keys if key in found]


async def list_documents(ask: Ask, projection: str, prefix: str, after: str, limit: int) -> list[Document]:
    """Return documents in the order of their keys."""
    asked = (projection, after, prefix, prefix_end(prefix), limit)
    return [Document(*row) for row in await ask("list_documents", *asked)]


async def behind(ask: Ask, position: int, limit: int) -> Behind:
    """Return how far a position is behind."""
    (row,) = await ask("behind", position, limit)
    return Behind(*row)
