"""W2: how long one order takes, from its start to its result."""

from __future__ import annotations

import asyncio
import time

from bench import apps
from bench.checks import all_completed
from bench.measure import Figures, Meter, percentiles, rss_mb
from bench.settings import Settings
from bench.workflows import order


def run(settings: Settings) -> Figures:
    """Start one order and await its result, n times one after the other; the first counts like the others."""
    return asyncio.run(_run(settings))


async def _run(settings: Settings) -> Figures:
    app = apps.orders(settings.url)
    took: list[float] = []
    async with app:
        with Meter(settings.server_pid) as meter:
            for number in range(settings.n):
                begun = time.perf_counter()
                receipt = await app.send(order(number))
                await receipt.result()
                took.append(time.perf_counter() - begun)
        await all_completed(app, settings.n)
    return {**percentiles(took), **meter.figures(settings.n), "rss_mb": rss_mb()}
