"""Who is alive: a row with a lease, and a lock that a living worker's own connection holds."""

from __future__ import annotations

from typing import Final

from mainspring.stores.postgres.presence import Presence
from mainspring.stores.postgres.transaction import Transaction

UNSIGNED: Final = 0xFFFFFFFF
"""The first number of a lock as the server shows it."""


async def register(
    transaction: Transaction, presence: Presence | None, name: str, lease_us: int, now_us: int | None, knows: str = ""
) -> int:
    """Return a new key. Its lock is taken before the row can be seen: neither is visible without the other."""
    key: int = await transaction.value("new_worker")
    if presence is not None:
        await presence.hold(key)
    life = "" if presence is None else await transaction.value("life", transaction.lock_class & UNSIGNED, key) or ""
    await transaction.rows("insert_worker", key, name, lease_us, now_us, presence is not None, knows, life)
    return key


async def release(transaction: Transaction, workers: list[int], *, lost: bool = False) -> list[int]:
    """Release what workers hold and forget them. Return those that were still known.

    The rows go first: that waits for what the workers are about to commit, and keeps them from committing more.
    """
    found = await transaction.rows("delete_workers", workers)
    if not found:
        return []
    transaction.xid = found[0][-1]
    gone = [row[0] for row in found]
    if lost:
        alone = [row[1] for row in found]
        await transaction.rows("lose_outputs", gone, alone)
        await transaction.rows("lose_inputs", gone, alone)
    await transaction.rows("free_outputs", gone)
    await transaction.rows("free_inputs", gone)
    return gone


async def relieve(transaction: Transaction, own: list[int], now_us: int | None) -> list[int]:
    """Release all workers that are gone or have lost their lease, and count what they held as lost. Return them."""
    life: str = await transaction.value("life", None, None)
    rows = await transaction.rows("gone_workers", now_us, life, transaction.lock_class, own)
    return await release(transaction, [key for (key,) in rows], lost=True) if rows else []
