"""A server that ends and comes back, that crashes while it recovers, and that refuses to write."""

from __future__ import annotations

import asyncio
from collections import Counter

from tests.proof.postgres_faults.stage import END_SESSIONS, Stage
from tests.support.waiting import until

BETWEEN = 15
"""So many inputs are acknowledged between two troubles."""
READ_ONLY_SECONDS = 0.3
DEATHS = 10
IN_RECOVERY = "database system was interrupted while in recovery"


async def restarts(stage: Stage, rounds: int, *, kill: bool) -> Counter[str]:
    """End the server and start it again; sometimes nobody is there for a while."""
    happened: Counter[str] = Counter()
    for _ in range(rounds):
        await stage.client.more(BETWEEN)
        await asyncio.to_thread(stage.server.stop, kill=kill)
        await asyncio.sleep(stage.chance.choice((0.0, 0.3)))  # some who come back come too early
        await asyncio.to_thread(stage.server.start)
        happened["crashes" if kill else "stops"] += 1
        await stage.look()
    return happened


async def dies_in_recovery(stage: Stage, rounds: int) -> Counter[str]:
    """Crash, and crash again before what was left behind is read again."""
    already = stage.log_has(IN_RECOVERY)
    happened: Counter[str] = Counter()
    for _ in range(rounds):
        await stage.client.more(BETWEEN)
        await asyncio.to_thread(stage.server.stop, kill=True)
        seen = stage.log_has(IN_RECOVERY)
        for _ in range(DEATHS):  # a recovery that was quicker than us is no such death; the next start tells
            await asyncio.to_thread(_die_recovering, stage)
            if stage.log_has(IN_RECOVERY) > seen:
                break
        await asyncio.to_thread(stage.server.start)
        happened["crashes"] += 1
        await stage.look()
    happened["crashes in recovery"] = stage.log_has(IN_RECOVERY) - already
    return happened


def _die_recovering(stage: Stage) -> None:
    """Start, and end as soon as the recovery has begun."""
    begun = stage.log_has("redo starts at")
    stage.server.launch()
    for _ in range(2_000):
        if stage.log_has("redo starts at") > begun or stage.server.is_ready():
            break
    stage.server.stop(kill=True)


async def read_only(stage: Stage, rounds: int) -> Counter[str]:
    """Let no transaction write for a while, as a server does that is about to be handed over."""
    refused = "in a read-only transaction"
    happened: Counter[str] = Counter()
    for _ in range(rounds):
        await stage.client.more(BETWEEN)
        already = stage.log_has(refused)
        async with stage.operator() as operator:
            await operator.execute(f"ALTER DATABASE {stage.database} SET default_transaction_read_only = on")
            # A session keeps what it began with; the new ones may not write, and keep that too.
            await operator.execute(END_SESSIONS, stage.database)
            await until(lambda: stage.log_has(refused) > already)  # noqa: B023  it is awaited here
            await asyncio.sleep(READ_ONLY_SECONDS)  # for others to be refused, too
            await operator.execute("SET default_transaction_read_only = off")
            await operator.execute(f"ALTER DATABASE {stage.database} RESET default_transaction_read_only")
        happened["writes refused"] += stage.log_has(refused) - already
    return happened
