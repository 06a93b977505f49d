"""What-if: how many recorded events a second are decided and folded once more, and held against what was recorded."""

from __future__ import annotations

import asyncio
import functools

from bench import apps
from bench.measure import Figures, Meter, rss_mb
from bench.settings import Settings
from bench.w1 import EVENTS, start_and_finish
from mainspring.analysis.processes import Sharing
from mainspring.analysis.what_if.check import check
from mainspring.analysis.what_if.report import Report

PROCESSES = 2
EVENTS_PER_CPU_S = 50_000


def run(settings: Settings) -> Figures:
    """Check n finished orders in one process, and once more with two."""
    return asyncio.run(_run(settings))


async def _run(settings: Settings) -> Figures:
    if not settings.durable:
        raise SystemExit("what-if reads what another app has written: not --store memory.")
    app = apps.orders(settings.url)
    async with app:
        await start_and_finish(app, settings)
    # Another app on the same file: it knows nothing but what is written there.
    app = apps.orders(settings.url)
    await app.start(work=False)
    try:
        with Meter(settings.server_pid) as alone:
            _all_the_same(await check(app), settings.n)
        sharing = Sharing(functools.partial(apps.orders, settings.url), PROCESSES)
        with Meter(settings.server_pid) as shared:
            _all_the_same(await check(app, sharing=sharing), settings.n)
    finally:
        await app.stop()
    events = settings.n * EVENTS
    return {
        "events": events,
        "events_per_s": round(events / alone.seconds),
        "events_per_cpu_s": round(events / alone.cpu_seconds),
        "events_per_s_by_two": round(events / shared.seconds),
        **alone.figures(events),
        "rss_mb": rss_mb(),
    }


def _all_the_same(report: Report, n: int) -> None:
    assert report.safe, report.differences
    assert report.instances == n
    assert report.events == n * EVENTS
    assert report.compared.decisions == n * 4
    assert not report.unchecked


def section(figures: Figures) -> str:
    """Return a result as a few lines for a report."""
    table = [
        "| | events a second |",
        "|---|---|",
        f"| one process | {figures['events_per_s']:,.0f} |",
        f"| one process, by its CPU time | {figures['events_per_cpu_s']:,.0f} |",
        f"| {PROCESSES} processes, with their start | {figures['events_per_s_by_two']:,.0f} |",
    ]
    end = (
        f"{figures['n']:,} finished orders, {figures['events']:,.0f} events, decided and folded once more and held "
        f"against what was recorded; at least {EVENTS_PER_CPU_S:,} a second and core wanted. "
        f"Medians of {figures['repeats']} runs."
    )
    return "\n".join([f"## `mainspring what-if` on {figures['store']}", "", *table, "", end])
