"""Analytics: how fast the figures of a full store are read, and in how much memory."""

from __future__ import annotations

import asyncio
import functools
import os

from bench import apps
from bench.checks import NotDoneError
from bench.fill import finished
from bench.measure import Figures, Meter, rss_mb
from bench.settings import Settings
from bench.stored import stored_bytes
from mainspring.analysis.figures.figures import Figures as Counted
from mainspring.analysis.figures.figures import figures_of
from mainspring.analysis.processes import Sharing
from mainspring.app.internals import internals_of
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
    store = internals_of(app).engine.store
    try:
        first = await store.instances(InstanceFilter(workflow="Orders"), 1)
        each = len(await store.stream(Ref("Orders", first[0].id), 0, LONGEST_STREAM))
        orders = max(1, settings.n // each)
        await copies.grow(orders)
        before_mb = rss_mb("VmRSS")
        with Meter(settings.server_pid) as alone:
            figures = await figures_of(store, InstanceFilter())
        alone_mb = rss_mb()
        sharing = Sharing(functools.partial(apps.everything, settings.url), os.cpu_count() or 1)
        with Meter(settings.server_pid) as together:
            again = await figures_of(store, InstanceFilter(), sharing=sharing)
    finally:
        await app.stop()
    _check(figures, again, orders * each)
    return {
        "events": figures.events,
        "instances": figures.instances,
        "events_per_s": round(figures.events / together.seconds),
        "events_per_s_target": EVENTS_PER_S,
        "processes": sharing.processes,
        "one_process_events_per_s": round(figures.events / alone.seconds),
        **alone.figures(figures.events),
        "rss_mb": alone_mb,
        "rss_mb_before": before_mb,
        "disk_bytes": await stored_bytes(settings),
    }


def _check(alone: Counted, together: Counted, written: int) -> None:
    if alone.events != written:
        raise NotDoneError(f"{alone.events:,} events were counted, and {written:,} are there")
    if alone.workflows != together.workflows:
        raise NotDoneError("Several processes have other figures than one")


def section(figures: Figures) -> str:
    """Return a result as a few lines for a report."""
    table = [
        "| | events a second |",
        "|---|---|",
        f"| one process | {figures['one_process_events_per_s']:,.0f} |",
        f"| {figures['processes']:.0f} processes, with their start | {figures['events_per_s']:,.0f} |",
    ]
    end = (
        f"The figures of {figures['instances']:,.0f} finished orders, {figures['events']:,.0f} events; at least "
        f"{EVENTS_PER_S:,} a second wanted. {figures['rss_mb']:.0f} MB of memory at most, "
        f"{figures['rss_mb_before']:.0f} MB before. Medians of {figures['repeats']} runs."
    )
    return "\n".join([f"## `mainspring stats` on {figures['store']}", "", *table, "", end])
