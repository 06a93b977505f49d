"""Others who hold what is needed: locks in the other order, for too long, and transactions that are left open."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import patch

from mainspring.stores.postgres import PostgresStore, session, symptoms
from tests.proof.postgres_faults.stage import END_SESSIONS, Stage, connected
from tests.support.waiting import until

BETWEEN = 10
# Longer than a statement takes on a busy machine: between two locks the client must get on.
IMPATIENT = "200ms"
HOT = "SELECT key FROM mainspring.instances WHERE workflow IN ('Account', 'Gate', 'Tally') ORDER BY name DESC"
WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted AND pid <> pg_backend_pid()"


@asynccontextmanager
async def _impatient(stage: Stage, **settings: str) -> AsyncGenerator[None]:
    """Give all sessions of the store other settings for a while: they are ended, and the new ones have them."""
    async with stage.operator() as operator:
        with patch.dict(session.SETTINGS, settings):
            await operator.fetch(END_SESSIONS, stage.database)
            yield
        await operator.fetch(END_SESSIONS, stage.database)


async def deadlocks(stage: Stage, rounds: int) -> Counter[str]:
    """Lock the rows of hot instances in the order in which no commit does, while commits wait for the first."""
    happened: Counter[str] = Counter()
    already = stage.log_has("deadlock detected")
    # Whoever waits longer than its timeout and finds a circle is ended: not this one.
    async with (
        _impatient(stage, deadlock_timeout="20ms"),
        connected(stage.url, server_settings={"deadlock_timeout": "10s"}) as other,
    ):
        while stage.log_has("deadlock detected") - already < rounds:
            await stage.client.more(BETWEEN)
            keys = [key for (key,) in await other.fetch(HOT)]
            async with other.transaction():
                for key in keys:
                    await other.execute("SELECT 1 FROM mainspring.instances WHERE key = $1 FOR UPDATE", key)
                    if key == keys[0]:
                        await until(lambda: _waits(other))
            happened["rows locked in the other order"] += len(keys)
    happened["deadlocks"] = stage.log_has("deadlock detected") - already
    return happened


async def _waits(other: Any) -> bool:
    return await other.fetchval(WAITING) > 0


async def held(stage: Stage, rounds: int, *, setting: str) -> Counter[str]:
    """Lock the tables for longer than a statement may take, or may wait for a lock."""
    complaint = f"canceling statement due to {setting.replace('_', ' ')}"
    already = stage.log_has(complaint)
    async with _impatient(stage, **{setting: IMPATIENT}), stage.operator() as other:
        for _ in range(rounds):
            await stage.client.more(BETWEEN)
            seen = stage.log_has(complaint)
            async with other.transaction():
                table = stage.chance.choice(("instances", "events", "outbox", "inbox", "workers"))
                await other.execute(f"LOCK TABLE mainspring.{table}")
                await until(lambda: stage.log_has(complaint) > seen)  # noqa: B023  it is awaited here
            await stage.look()
    return Counter({"statements ended": stage.log_has(complaint) - already})


async def left_open(stage: Stage, rounds: int) -> Counter[str]:
    """Leave a transaction open that has written: the feed waits for it, nothing else does, and the doctor tells."""
    happened: Counter[str] = Counter()
    store = PostgresStore(stage.url)
    await store.open()
    try:
        for _ in range(rounds):
            async with stage.operator() as other, other.transaction():
                await other.execute("SELECT pg_current_xact_id()")
                await stage.client.more(BETWEEN)
                seen = await _told(store)
                await stage.client.more(BETWEEN)
                happened["inputs taken meanwhile"] += BETWEEN
                happened["feeds that stood still"] += await _told(store) == seen
                happened["warnings of the doctor"] += await _warned(store)
            await stage.client.more(BETWEEN)
            happened["feeds that went on"] += await _told(store) > seen
    finally:
        await store.close()
    return happened


async def _told(store: PostgresStore) -> int:
    """Return how far the feed goes now."""
    position = 0
    while told := await store.feed(position, 1_000):
        position = told[-1][0]
    return position


async def _warned(store: PostgresStore) -> bool:
    with patch.object(symptoms, "IDLE_SECONDS", 0):
        found = (await store.examine()).findings
    return any("idle in a transaction" in finding.what for finding in found)
