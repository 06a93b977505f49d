"""Connections that are ended, cut at the worst moment, stalled, or not to be had."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import patch

from mainspring.engine import engine
from mainspring.stores.postgres import session
from tests.proof.postgres_faults.stage import END_SESSIONS, WORKERS, Stage, at_database
from tests.support.postgres.proxy import Cable, Cut, serving
from tests.support.waiting import until

BETWEEN = 10
EVERY = 4
"""Each so manieth commit is cut."""
LEASE_SECONDS = 1.5
HEARTBEAT_SECONDS = 0.3
ANSWER_SECONDS = 1.0
ENOUGH, TOO_FEW = 10, 5

# Who holds the locks that say that a worker lives also listens.
LISTENERS = """
SELECT l.pid FROM pg_locks AS l JOIN pg_database AS d ON d.oid = l.database
WHERE l.locktype = 'advisory' AND l.granted AND d.datname = $1
"""


@asynccontextmanager
async def through_a_cable(stage: Stage) -> AsyncGenerator[list[str]]:
    """Let all go through a line that can be cut."""
    stage.cable = Cable(stage.url)
    async with serving(stage.cable, stage.url) as url:
        yield [url]


@asynccontextmanager
async def one_through_a_cable(stage: Stage) -> AsyncGenerator[list[str]]:
    """Let one worker go through a line of its own, with a short lease, and little patience for an answer."""
    stage.cable = Cable(stage.url)
    with (
        patch.object(engine, "LEASE_SECONDS", LEASE_SECONDS),
        patch.object(engine, "HEARTBEAT_SECONDS", HEARTBEAT_SECONDS),
        patch.object(session, "ANSWER_SECONDS", ANSWER_SECONDS),
    ):
        async with serving(stage.cable, stage.url) as url:
            yield [stage.url, url, stage.url]


@asynccontextmanager
async def as_a_poor_user(stage: Stage) -> AsyncGenerator[list[str]]:
    """Let all be a user with less connections than they want: four processes with up to six each."""
    user = f"poor_{stage.database}"
    async with stage.operator() as operator:
        await operator.execute(f"CREATE ROLE {user} LOGIN CONNECTION LIMIT {ENOUGH}")
        await operator.execute(f"CREATE SCHEMA mainspring AUTHORIZATION {user}")
        await operator.execute(f"GRANT ALL ON payments TO {user}")
    yield [at_database(stage.url, stage.database, user)]


async def ended(stage: Stage, rounds: int) -> Counter[str]:
    """End all sessions again and again, wherever they are in what they do."""
    happened: Counter[str] = Counter()
    for _ in range(rounds):
        await stage.client.more(BETWEEN)
        async with stage.operator() as operator:
            happened["sessions ended"] += len(await operator.fetch(END_SESSIONS, stage.database))
        await stage.look()
    return happened


async def listeners_ended(stage: Stage, rounds: int) -> Counter[str]:
    """End those sessions alone by which workers hear of work, and by which others see that they live."""
    happened: Counter[str] = Counter()
    async with stage.operator() as operator:
        for _ in range(rounds):
            await stage.client.more(BETWEEN)
            listeners = await _listeners(stage, operator)
            await operator.fetch("SELECT pg_terminate_backend(pid) FROM unnest($1::integer[]) AS n (pid)", listeners)
            happened["listeners ended"] += len(listeners)
    return happened


async def commits_cut(stage: Stage, rounds: int) -> Counter[str]:
    """Cut the line between a COMMIT and its answer: the server has done it, and nobody is told."""
    happened: Counter[str] = Counter()
    commits = 0

    def cut(statement: str) -> Cut | None:
        nonlocal commits
        commits += statement == "COMMIT"
        if statement != "COMMIT" or commits % EVERY or happened["answers lost"] == rounds:
            return None
        happened["answers lost"] += 1
        return "after"

    stage.cable.cut_at = cut
    while happened["answers lost"] < rounds:
        await stage.client.more(1)
    await stage.look()
    return happened


async def stalled(stage: Stage, rounds: int) -> Counter[str]:
    """Let nothing pass between one worker and the server for longer than its lease, and then everything."""
    happened: Counter[str] = Counter()
    for _ in range(rounds):
        await stage.client.more(BETWEEN)
        relieved = _relieved(stage)
        stage.cable.flows.clear()
        await until(lambda: _relieved(stage) > relieved)  # noqa: B023  it is awaited here
        await stage.client.more(BETWEEN)
        stage.cable.flows.set()
        happened["workers relieved"] += _relieved(stage) - relieved
        await stage.look()
    return happened


async def half_open(stage: Stage, rounds: int) -> Counter[str]:
    """End one worker's connections at the server's end alone: it hears nothing, not even that they have ended."""
    happened: Counter[str] = Counter()
    async with stage.operator() as operator:
        for _ in range(rounds):
            await stage.client.more(BETWEEN)
            before = await _listeners(stage, operator)
            stage.cable.half_open()
            await until(lambda: _others_listen(stage, operator, before))  # noqa: B023  it is awaited here
            happened["workers that came back"] += 1
    return happened


async def _others_listen(stage: Stage, operator: Any, before: set[int]) -> bool:
    now = await _listeners(stage, operator)
    return len(now) == WORKERS and now != before


async def _listeners(stage: Stage, operator: Any) -> set[int]:
    return {pid for (pid,) in await operator.fetch(LISTENERS, stage.database)}


def _relieved(stage: Stage) -> int:
    return stage.place.log.read_text().count("relieved a dead worker")


async def starved(stage: Stage, rounds: int) -> Counter[str]:
    """Take connections away from all, and let only some of them come back at first."""
    user, none_left = f"poor_{stage.database}", "too many connections for role"
    happened: Counter[str] = Counter()
    async with stage.operator() as operator:
        for _ in range(rounds):
            await stage.client.more(BETWEEN)
            refused = stage.log_has(none_left)
            await operator.execute(f"ALTER ROLE {user} CONNECTION LIMIT {TOO_FEW}")
            await operator.fetch(END_SESSIONS, stage.database)
            await until(lambda: stage.log_has(none_left) > refused)  # noqa: B023  it is awaited here
            await operator.execute(f"ALTER ROLE {user} CONNECTION LIMIT {ENOUGH}")
            happened["connections refused"] += stage.log_has(none_left) - refused
    return happened
