"""W3: one instance with a long history."""

from __future__ import annotations

import asyncio

from bench import apps
from bench.checks import all_completed, batch_figures
from bench.measure import Figures, Meter, rss_mb
from bench.progress import Progress
from bench.settings import Settings
from bench.stored import stored_bytes
from bench.w1 import PATIENCE
from bench.workflows import BeginChain, ChainEnded
from mainspring.port.records import Ref

# Began, InitiatedBy and the first Sent; then Received and Sent for each call, the last Completed instead of Sent.
EVENTS_PER_CALL = 2
EVENTS_BEFORE = 3


def run(settings: Settings) -> Figures:
    """Let one instance make n handler calls, one after the other."""
    return asyncio.run(_run(settings))


async def _run(settings: Settings) -> Figures:
    n = settings.n
    app, made = apps.chain(settings.url)
    async with app:
        before_mb = rss_mb("VmRSS")
        with Meter(settings.server_pid) as meter:
            receipt = await app.send(BeginChain(apps.CHAIN_ID, n))
            watching = asyncio.create_task(_show(made, n))
            result = await receipt.result(timeout=PATIENCE)
            watching.cancel()
        await all_completed(app, 1)
        row = await app.instance_at(str(Ref("Chain", apps.CHAIN_ID))).row()
        assert (result, row.position) == (ChainEnded(n), EVENTS_BEFORE + EVENTS_PER_CALL * n)
        figures: Figures = {
            **meter.figures(n),
            "steps_per_s": round((n + 1) / meter.seconds, 1),
            **batch_figures(app),
            "rss_mb": rss_mb(),
            "rss_growth_bytes_per_call": round((rss_mb("VmRSS") - before_mb) * 2**20 / n),
        }
    if settings.durable:
        figures["disk_bytes_per_call"] = round(await stored_bytes(settings) / n)
    return figures


async def _show(made: list[int], n: int) -> None:
    progress = Progress("w3 calls", n)
    try:
        while True:
            await asyncio.sleep(0.2)  # between two looks of whoever watches
            progress.at(made[0])
    finally:
        progress.end()
