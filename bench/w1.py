"""W1: how many orders a second, from the first start to the last completion."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from bench import apps
from bench.checks import all_completed, batch_figures, stream_lengths, until_completed
from bench.measure import Figures, Meter, disk_bytes, rss_mb
from bench.progress import Progress
from bench.settings import Settings
from bench.workflows import order, order_id
from mainspring import Mainspring
from mainspring.port.records import Ref

STEPS = 4
EVENTS = 9
PATIENCE = timedelta(hours=1)


def run(settings: Settings) -> Figures:
    """Start n orders as fast as one client can, each validated, charged and shipped, until the last has completed."""
    return asyncio.run(_run(settings))


async def _run(settings: Settings) -> Figures:
    n = settings.n
    app = apps.orders(settings.url)
    async with app:
        with Meter() as meter:
            await start_and_finish(app, settings)
        await all_completed(app, n)
        await stream_lengths(app, [Ref("Orders", order_id(number)) for number in (0, n // 2, n - 1)], EVENTS)
        figures: Figures = {
            "instances_per_s": round(n / meter.seconds, 1),
            "steps_per_s": round(STEPS * n / meter.seconds, 1),
            **meter.figures(n),
            **batch_figures(app),
            "rss_mb": rss_mb(),
        }
    if settings.durable:
        figures["disk_bytes_per_instance"] = round(disk_bytes(settings.path) / n)
    return figures


async def start_and_finish(app: Mainspring, settings: Settings) -> None:
    """Send all orders in chunks, each durable before the next is sent, and wait until the rows have them all done."""
    n = settings.n
    progress = Progress("w1 started", n)
    receipts = await app.send_many([])
    for begin in range(0, n, settings.chunk):
        numbers = range(begin, min(n, begin + settings.chunk))
        receipts = await app.send_many([order(number) for number in numbers])
        progress.at(begin)
    await receipts[-1].result(timeout=PATIENCE)
    # Those sent before the last one are not all done before it: only the rows know.
    await until_completed(app, n)
    progress.end()
