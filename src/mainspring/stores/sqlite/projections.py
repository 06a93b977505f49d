"""Projections: checkpoints that move with the documents that changed, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

import apsw

from mainspring.port.projections import Advance, Behind, Checkpoint, Document
from mainspring.port.searching import prefix_end
from mainspring.stores.sqlite.sql import QUERIES, Ladder, change, packed, rows

_DOCUMENTS: Final = Ladder(QUERIES["replace_documents"])


class Open(Protocol):
    """What is needed of the writer's transaction."""

    connection: apsw.Connection
    now_us: int


def checkpoints(connection: apsw.Connection, projection: str | None) -> list[Checkpoint]:
    """Return how far projections are."""
    found = rows(connection, "checkpoints") if projection is None else rows(connection, "checkpoints_of", projection)
    return [Checkpoint(*row) for row in found]


def advance(transaction: Open, move: Advance) -> bool:
    """Move a checkpoint, unless somebody else did. Nothing is written before that is known."""
    connection = transaction.connection
    known = {checkpoint.generation: checkpoint for checkpoint in checkpoints(connection, move.name)}
    if not move.fits(known):
        return False
    if move.retires:
        change(connection, "retire_checkpoints", move.name, packed(move.retires))
    told = (move.status, move.position, transaction.now_us, move.error)
    if move.expected is None:
        change(connection, "begin_checkpoint", move.name, move.generation, move.version, *told)
    else:
        change(connection, "move_checkpoint", move.name, move.generation, *told)
    kept: list[Any] = []
    for document in move.documents:
        if document.body is not None:
            kept += (move.name, move.generation, document.key, document.type, document.type_version, document.body)
    _DOCUMENTS.insert(connection, kept)
    if gone := [document.key for document in move.documents if document.body is None]:
        change(connection, "delete_documents", move.name, move.generation, packed(gone))
    return True


def clear(transaction: Open, projection: str, generation: int, limit: int) -> int:
    """Remove so many documents of a retired generation, and its checkpoint with the last."""
    connection = transaction.connection
    if not any(c.generation == generation and c.status == "retired" for c in checkpoints(connection, projection)):
        return 0
    change(connection, "clear_documents", projection, generation, limit)
    removed = connection.changes()
    if removed < limit:
        change(connection, "delete_checkpoint", projection, generation)
    return removed


def documents(
    connection: apsw.Connection, projection: str, keys: Sequence[str], generation: int | None
) -> list[Document]:
    """Return the documents under these keys."""
    found = {row[0]: Document(*row) for row in rows(connection, "documents", projection, generation, packed(keys))}
    return [found[key] for key in keys if key in found]


def list_documents(connection: apsw.Connection, projection: str, prefix: str, after: str, limit: int) -> list[Document]:
    """Return documents in the order of their keys."""
    asked = (projection, after, prefix, prefix_end(prefix), limit)
    return [Document(*row) for row in rows(connection, "list_documents", *asked)]


def behind(connection: apsw.Connection, position: int, limit: int) -> Behind:
    """Return how far a position is behind."""
    return Behind(*rows(connection, "behind", position, limit)[0])
