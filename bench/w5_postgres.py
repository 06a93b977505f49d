"""W5 on PostgreSQL: of four workers two are killed, and the server crashes and comes back."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from contextlib import ExitStack
from typing import Any

from msgspec import structs

from bench import apps
from bench.checks import NotDoneError, all_completed
from bench.measure import Figures, rss_mb
from bench.servers import connection, own_server
from bench.settings import Settings
from bench.w1 import EVENTS
from bench.w5_parts import PATIENCE_SECONDS, KilledWorker, completed_in, effects_of, runs_of, until_done
from bench.workflows import order
from mainspring import Mainspring
from mainspring.stores.postgres.statements import within
from tests.support.postgres.server import Server

WORKERS = 4
KILLED = 2
POLL_SECONDS = 0.02
# Until work flows again, also that which the dead had in their hands.
FLOWING_TARGET_SECONDS = 15

HOLDERS = """
SELECT w.name, count(o.owner) FROM mainspring.workers AS w LEFT JOIN mainspring.outbox AS o ON o.owner = w.key
GROUP BY w.name ORDER BY count(o.owner) DESC LIMIT $1
"""
HELD = """
SELECT
    (SELECT count(*) FROM mainspring.workers WHERE name = ANY ($1)),
    (
        SELECT count(*) FROM mainspring.outbox AS o JOIN mainspring.workers AS w ON w.key = o.owner
        WHERE w.name = ANY ($1)
    )
"""
COUNTS = """
SELECT (SELECT count(*) FROM mainspring.events), (SELECT count(*) FROM mainspring.events WHERE event = 'Received')
"""


async def run(settings: Settings) -> Figures:
    """Make one run on a server of its own."""
    server = own_server()
    # That the server is away is no news here.
    log = logging.getLogger("mainspring")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        return await _run(structs.replace(settings, server=server.url), server)
    finally:
        log.setLevel(level)
        server.remove()


async def _run(settings: Settings, server: Server) -> Figures:
    n, ledger = settings.n, settings.path / "effects"
    app = apps.orders(settings.url)
    await app.start(work=False)  # this process only sends and watches
    try:
        with ExitStack() as processes:
            workers = [processes.enter_context(KilledWorker(settings, ledger, "resume")) for _ in range(WORKERS)]
            for worker in workers:
                await worker.line()
            sent = await _send(app, settings)
            at_kill = await until_done(app, n // 3)
            if at_kill == n:
                raise NotDoneError(f"all {n} had completed before the kill: ask for more with --n")
            named = {f"{socket.gethostname()}:{worker.pid}": worker for worker in workers}
            dead = await _busiest(settings)
            begun = time.perf_counter()
            for name in dead:
                named[name].kill()
            await asyncio.to_thread(_crash, server)
            figures = await _recovery(app, settings, dead, begun)
            await until_done(app, n)
            seconds = time.perf_counter() - begun
        await _check(app, settings)
    finally:
        await app.stop()
    return {
        "seconds": round(seconds, 3),
        "flowing_target_s": FLOWING_TARGET_SECONDS,
        "sent": sent,
        "completed_at_kill": at_kill,
        **figures,
        **effects_of(ledger, n, figures["in_flight_at_kill"]),
        "rss_mb": rss_mb(),
    }


async def _send(app: Mainspring, settings: Settings) -> int:
    sent = 0
    for begin in range(0, settings.n, settings.chunk):
        numbers = range(begin, min(settings.n, begin + settings.chunk))
        sent += len(await app.send_many([order(number) for number in numbers]))
    return sent


async def _busiest(settings: Settings) -> list[str]:
    """Return the workers that hold the most: nobody would miss the others."""
    async with connection(settings) as opened:
        return [name for name, _ in await opened.fetch(within(settings.schema, HOLDERS), KILLED)]


def _crash(server: Server) -> None:
    """End the server as a crash does, and start it again."""
    server.stop(kill=True)
    server.start()


async def _recovery(app: Mainspring, settings: Settings, dead: list[str], begun: float) -> Figures:
    """Wait until the dead are relieved and something completes after that. Return how long each took since the kill."""
    back = time.perf_counter() - begun
    async with connection(settings) as opened:
        _, recorded = await opened.fetchrow(within(settings.schema, COUNTS))
        # Read after the rows: those that ran meanwhile count as in flight, too.
        in_flight = len(runs_of(settings.path / "effects")) - recorded
        _, held = await _held(opened, settings, dead)
        while (await _held(opened, settings, dead))[0]:
            if time.perf_counter() - begun > PATIENCE_SECONDS:
                raise NotDoneError(f"nobody relieved the dead within {PATIENCE_SECONDS:.0f} s")
            await asyncio.sleep(POLL_SECONDS)  # other processes: rows are asked
    relieved = time.perf_counter() - begun
    await until_done(app, min(settings.n, await completed_in(app) + 1))
    return {
        "flowing_again_s": round(time.perf_counter() - begun, 3),
        "server_back_s": round(back, 3),
        "dead_relieved_s": round(relieved, 3),
        "held_by_the_dead": held,
        "in_flight_at_kill": in_flight,
    }


async def _held(opened: Any, settings: Settings, dead: list[str]) -> tuple[int, int]:
    """Return how many of the dead are still known as workers, and how many outputs they hold."""
    known, held = await opened.fetchrow(within(settings.schema, HELD), dead)
    return known, held


async def _check(app: Mainspring, settings: Settings) -> None:
    """Check that every stream is whole, and that no event is there twice."""
    await all_completed(app, settings.n)
    async with connection(settings) as opened:
        events, _ = await opened.fetchrow(within(settings.schema, COUNTS))
    if events != EVENTS * settings.n:
        raise NotDoneError(f"{settings.n} streams have {events} events, not {EVENTS} each")
