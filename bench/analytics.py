"""Analytics: how fast the figures of a full store are read, and in how much memory."""

from __future__ import annotations

import asyncio

from bench import apps
from bench.checks import NotDoneError
from bench.fill import finished
from bench.measure import Figures, Meter, rss_mb
from bench.settings import Settings
from bench.stored import stored_bytes
from mainspring.analysis.figures import figures_of
from mainspring.port.records import InstanceFilter, Ref

EVENTS_PER_S = 300_000
LONGEST_STREAM = 1_000


def run(settings: Settings) -> Figures:
    """Read the figures of about n events, of orders that were carried out: events per second, CPU and memory."""
    return asyncio.run(_run(settings))


async def _run(settings: Settings) -> Figures:
    copies = await finished(settings)
    app = apps.everything(settings.url)
    await app.start(work=False)
    store = app.engine.store
    try:
        first = await store.instances(InstanceFilter(workflow="Orders"), 1)
        each = len(await store.stream(Ref("Orders", first[0].id), 0, LONGEST_STREAM))
        orders = max(1, settings.n // each)
        await copies.grow(orders)
        before_mb = rss_mb("VmRSS")
        with Meter(settings.server_pid) as meter:
            figures = await figures_of(store, InstanceFilter())
    finally:
        await app.stop()
    _check(figures.events, orders * each)
    return {
        "events": figures.events,
        "instances": figures.instances,
        "events_per_s": round(figures.events / meter.seconds),
        "events_per_s_target": EVENTS_PER_S,
        **meter.figures(figures.events),
        "rss_mb": rss_mb(),
        "rss_mb_before": before_mb,
        "disk_bytes": await stored_bytes(settings),
    }


def _check(found: int, written: int) -> None:
    if found != written:
        raise NotDoneError(f"{found:,} events were counted, and {written:,} are there")
