"""W5: the worker is killed in the middle and started again."""

from __future__ import annotations

import asyncio
import time

from bench import apps, w5_postgres
from bench.checks import all_completed, times_of_events
from bench.measure import Figures, rss_mb
from bench.settings import Settings
from bench.w5_parts import KilledWorker, effects_of, runs_of, until_done


def run(settings: Settings) -> Figures:
    """Kill -9 a worker when a third of n orders has completed, start it again, and wait for the rest."""
    if settings.store == "postgres":
        return asyncio.run(w5_postgres.run(settings))
    return restart(settings)


def restart(settings: Settings) -> Figures:
    """Do what w5 does on SQLite, on either store: one worker killed and started again, nothing else."""
    if not settings.durable:
        raise SystemExit("w5 kills its worker: it needs a store that outlives a process, so --store sqlite.")
    return asyncio.run(_run(settings))


async def _run(settings: Settings) -> Figures:
    n, effects = settings.n, settings.path / "effects"
    app = apps.orders(settings.url)
    with KilledWorker(settings, effects, "send") as worker:
        sent = int(await worker.line())
        await app.start(work=False)  # this process only watches
        try:
            await until_done(app, n // 3)
            worker.kill()
            at_kill = (await app.stats()).instances.get("completed", 0)
            in_flight = len(runs_of(effects)) - len(await times_of_events(app, "Received"))
            begun = time.perf_counter()
            with KilledWorker(settings, effects, "resume"):
                await until_done(app, n)
                seconds = time.perf_counter() - begun
                await all_completed(app, n)
        finally:
            await app.stop()
    return {
        "seconds": round(seconds, 3),
        "sent": sent,
        "completed_at_kill": at_kill,
        "in_flight_at_kill": in_flight,
        **effects_of(effects, n, in_flight),
        "rss_mb": rss_mb(),
    }
