"""W1: how many orders a second, from the first start to the last completion."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from bench import apps
from bench.checks import all_completed, batch_figures, stream_lengths, until_completed
from bench.measure import Figures, Meter, rss_mb
from bench.processes import Workers
from bench.progress import Progress
from bench.settings import Settings
from bench.stored import stored_bytes
from bench.workflows import order, order_id
from mainspring import Mainspring
from mainspring.port.records import Ref

STEPS = 4
EVENTS = 9
PATIENCE = timedelta(hours=1)


def run(settings: Settings) -> Figures:
    """Start n orders as fast as one client can, each validated, charged and shipped, until the last has completed."""
    if settings.workers and not settings.durable:
        raise SystemExit("w1 with worker processes needs a store that they can share: not --store memory.")
    return asyncio.run(_by_workers(settings) if settings.workers else _alone(settings))


async def _alone(settings: Settings) -> Figures:
    """One process is client and worker."""
    n = settings.n
    app = apps.orders(settings.url)
    async with app:
        with Meter(settings.server_pid) as meter:
            await start_and_finish(app, settings)
        await _check(app, n)
        figures: Figures = {**_figures(n, meter), **batch_figures(app), "rss_mb": rss_mb()}
    return await _with_size(figures, settings)


async def _by_workers(settings: Settings) -> Figures:
    """This process is the client; others work."""
    n = settings.n
    app = apps.orders(settings.url)
    await app.start(work=False)
    try:
        with Workers(settings, "orders", settings.workers) as workers:
            await workers.ready(app)
            with Meter(settings.server_pid, workers.pids) as meter:
                await start_and_finish(app, settings)
            await _check(app, n)
            memory_mb = rss_mb() + sum(rss_mb(pid=pid) for pid in workers.pids)
    finally:
        await app.stop()
    figures: Figures = {"workers": settings.workers, **_figures(n, meter), "rss_mb": round(memory_mb, 1)}
    return await _with_size(figures, settings)


async def start_and_finish(app: Mainspring, settings: Settings, first: int = 0, after_key: int = 0) -> None:
    """Send all orders in chunks, each durable before the next is sent, and wait until the rows have them all done.

    `first` orders were done before, and keys up to `after_key` are none of theirs.
    """
    n = settings.n
    progress = Progress("w1 started", n)
    receipts = await app.send_many([])
    for begin in range(0, n, settings.chunk):
        numbers = range(begin, min(n, begin + settings.chunk))
        receipts = await app.send_many([order(first + number) for number in numbers])
        progress.at(begin)
    await receipts[-1].result(timeout=PATIENCE)
    # Those sent before the last one are not all done before it: only the rows know.
    await until_completed(app, first + n, after_key)
    progress.end()


async def _check(app: Mainspring, n: int) -> None:
    await all_completed(app, n)
    await stream_lengths(app, [Ref("Orders", order_id(number)) for number in (0, n // 2, n - 1)], EVENTS)


def _figures(n: int, meter: Meter) -> Figures:
    return {
        "instances_per_s": round(n / meter.seconds, 1),
        "steps_per_s": round(STEPS * n / meter.seconds, 1),
        **meter.figures(n),
    }


async def _with_size(figures: Figures, settings: Settings) -> Figures:
    if settings.durable:
        figures["disk_bytes_per_instance"] = round(await stored_bytes(settings) / settings.n)
    return figures
