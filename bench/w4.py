"""W4: many commands at once, and their results joined."""

from __future__ import annotations

import asyncio

from bench import apps
from bench.checks import all_completed, batch_figures
from bench.measure import Figures, Meter, rss_mb
from bench.settings import Settings
from bench.w1 import PATIENCE
from bench.workflows import BeginFanOut, Joined


def run(settings: Settings) -> Figures:
    """Let one instance send n commands in one step, and complete when it has all results."""
    return asyncio.run(_run(settings))


async def _run(settings: Settings) -> Figures:
    n = settings.n
    app = apps.fan_out(settings.url)
    async with app:
        with Meter(settings.server_pid) as meter:
            receipt = await app.send(BeginFanOut(apps.FAN_OUT_ID, n))
            joined = await receipt.result(timeout=PATIENCE)
        await all_completed(app, 1)
        assert isinstance(joined, Joined)
        assert sorted(joined.results) == list(range(n))
        return {**meter.figures(n), **batch_figures(app), "rss_mb": rss_mb()}
