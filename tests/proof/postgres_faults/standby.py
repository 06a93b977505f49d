"""A primary and its synchronous standby, which takes over."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from unittest.mock import patch

import pytest

from mainspring.stores.postgres import session
from tests.proof.postgres_faults.stage import END_SESSIONS, Stage, at_database, connected
from tests.support.postgres.server import Server, Unavailable
from tests.support.waiting import until

BETWEEN = 15
IMPATIENT_SECONDS = 0.3
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND datname = $1"
STREAMING = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state IN ('sync', 'quorum')"
CAUGHT_UP = "SELECT flush_lsn >= pg_current_wal_flush_lsn() FROM pg_stat_replication"


class Pair:
    """Two servers, each at its own port, that take turns."""

    def __init__(self, primary: Server) -> None:
        self.primary = primary
        self.standby = Server(settings={"fsync": "off"})

    def url(self, database: str) -> str:
        """Return the URL that leads to whichever of them may write."""
        hosts = f"127.0.0.1:{self.primary.port},127.0.0.1:{self.standby.port}"
        return f"postgresql://postgres@{hosts}/{database}?target_session_attrs=primary"

    async def pair(self) -> None:
        """Make the standby anew, and let every commit wait for it from now on."""
        await asyncio.to_thread(self.standby.follow, self.primary)
        async with connected(self.primary.url) as operator:
            await operator.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            await operator.execute("SELECT pg_reload_conf()")
            await until(lambda: operator.fetchval(STREAMING))
            # Until the checkpointer too has read the setting, no commit waits; it reads before it begins a checkpoint.
            await operator.execute("CHECKPOINT")

    async def caught_up(self) -> None:
        """Return when the standby has all that the primary has, whoever waited for that."""
        async with connected(self.primary.url) as operator:
            await until(lambda: operator.fetchval(CAUGHT_UP))

    async def take_over(self) -> None:
        """Let the standby be the primary, without one of its own."""
        async with connected(self.standby.url) as operator:
            # Who waits inside a statement keeps the row versions that it may see, and what is yet to be replayed may
            # remove them: each would wait for the other, until the server ends the statement after 30 s.
            await operator.fetchval("SELECT pg_promote(wait => false)")
            await until(lambda: operator.fetchval("SELECT NOT pg_is_in_recovery()"))
            await operator.execute("ALTER SYSTEM RESET synchronous_standby_names")
            await operator.execute("SELECT pg_reload_conf()")
        self.primary, self.standby = self.standby, self.primary


@asynccontextmanager
async def paired() -> AsyncGenerator[Pair]:
    """Give a server with a synchronous standby, and a user who may do nothing but work."""
    async with AsyncExitStack() as stack:
        try:
            pair = Pair(Server(settings={"fsync": "off"}))
            for server in (pair.primary, pair.standby):
                stack.push_async_callback(asyncio.to_thread, server.remove)
            await asyncio.to_thread(pair.primary.start)
            async with connected(pair.primary.url) as operator:
                await operator.execute("CREATE ROLE ann LOGIN; GRANT CREATE ON DATABASE postgres TO ann")
            await pair.pair()
        except Unavailable as reason:
            pytest.skip(f"no PostgreSQL: {reason}")
        yield pair


@asynccontextmanager
async def with_a_standby(stage: Stage) -> AsyncGenerator[list[str]]:
    """Let all know both servers."""
    stage.pair = pair = Pair(stage.server)
    own = pair.standby
    try:
        await pair.pair()
        yield [pair.url(stage.database)]
    finally:
        await asyncio.to_thread(own.remove)


async def takes_over(stage: Stage, rounds: int, *, standby_away: bool = False) -> Counter[str]:
    """Crash the primary, and let the standby take over; maybe after a while in which it was not there."""
    happened: Counter[str] = Counter()
    for round in range(rounds):
        if round:
            await stage.pair.pair()
        await stage.client.more(BETWEEN)
        await stage.look()
        if standby_away:
            happened["commits that waited"] += await _lose_both(stage)
        else:
            await asyncio.to_thread(stage.pair.primary.stop, kill=True)
        await stage.pair.take_over()
        stage.server = stage.pair.primary
        stage.url = at_database(stage.server.url, stage.database)
        happened["failovers"] += 1
    return happened


async def _lose_both(stage: Stage) -> int:
    """Let commits wait for the standby longer than for anything else, crash the primary, and bring the standby back."""
    waiting = 0

    async def waits(operator: Any) -> bool:
        nonlocal waiting
        waiting = await operator.fetchval(WAITING, stage.database)
        return waiting > 0

    settings = {"statement_timeout": f"{int(IMPATIENT_SECONDS * 1_000)}ms"}
    with patch.dict(session.SETTINGS, settings), patch.object(session, "ANSWER_SECONDS", 2 * IMPATIENT_SECONDS):
        async with stage.operator() as operator:
            await operator.fetch(END_SESSIONS, stage.database)  # the new ones have little patience
            await stage.client.more(1)
            await asyncio.to_thread(stage.pair.standby.stop)
            await until(lambda: waits(operator))
            # The wait is what is tried: nobody who gives up in it may take a commit for done.
            await asyncio.sleep(4 * IMPATIENT_SECONDS)
        await asyncio.to_thread(stage.pair.primary.stop, kill=True)
    await asyncio.to_thread(stage.pair.standby.start)
    return waiting
