"""Handlers that compute: what a second core brings them, by a pool of processes and by a second worker."""

from __future__ import annotations

import asyncio

from msgspec import structs

from bench.checks import all_completed, until_completed
from bench.computations import CORES, Begin, computing
from bench.measure import Figures, Meter
from bench.processes import Workers
from bench.servers import drop_schema
from bench.settings import Settings
from mainspring import Mainspring

PASSES = 3
# Which served app, by how many worker processes.
WAYS = {
    "threads": ("computing", 1),
    "process_pool": ("computing_in_processes", 1),
    "two_workers": ("computing", CORES),
}


def run(settings: Settings) -> Figures:
    """Let handlers compute n times: in one worker's threads, in its pool of processes, and in two workers, in turns."""
    rates: dict[str, list[float]] = {way: [] for way in WAYS}
    figures: Figures = {}
    for number in range(PASSES):
        for way in WAYS:
            rate, cpu = asyncio.run(_one(settings, way, number))
            rates[way].append(rate)
            figures.setdefault(f"{way}_cpu_ms_each", cpu)
    return {**_compared(rates), **figures}


def _compared(rates: dict[str, list[float]]) -> Figures:
    middle = {way: sorted(found)[len(found) // 2] for way, found in rates.items()}
    figures: Figures = {f"{way}_per_s": round(rate, 1) for way, rate in middle.items()}
    for way in ("process_pool", "two_workers"):
        ratios = sorted(more / alone for more, alone in zip(rates[way], rates["threads"], strict=True))
        figures[f"{way}_times_threads"] = round(ratios[len(ratios) // 2], 2)
    return figures


async def _one(settings: Settings, way: str, number: int) -> tuple[float, float]:
    """Return how many a second, and the CPU of each in ms, in a store of its own."""
    folder = settings.path / f"{way}-{number}"
    folder.mkdir()
    own = structs.replace(settings, folder=str(folder), schema=f"{settings.schema}_{way}_{number}")
    served, count = WAYS[way]
    app = computing(own.url)
    await app.start(work=False)
    try:
        with Workers(own, served, count) as workers:
            await workers.ready(app)
            # The pool's processes are started on first use; that is not what is compared.
            await _computed(app, "first", 2 * CORES, 2 * CORES)
            with Meter(own.server_pid, workers.pids) as meter:
                await _computed(app, "measured", settings.n, settings.n + 2 * CORES)
        await all_completed(app, settings.n + 2 * CORES)
    finally:
        await app.stop()
        if own.store == "postgres":
            await drop_schema(own)
    return settings.n / meter.seconds, meter.figures(settings.n)["workers_cpu_us_each"] / 1e3


async def _computed(app: Mainspring, name: str, count: int, all_together: int) -> None:
    await app.send_many([Begin(f"{name}-{number}") for number in range(count)])
    await until_completed(app, all_together)


def section(figures: Figures) -> str:
    """Return a result as a few lines for a report."""
    rows = {
        "threads": "one worker, in threads",
        "process_pool": f'one worker, `executor="process"`, {CORES} processes',
        "two_workers": f"{CORES} workers, in threads",
    }
    table = ["| handlers that compute for 10 ms | a second | times | CPU ms each |", "|---|---|---|---|"]
    for way, what in rows.items():
        times = figures.get(f"{way}_times_threads", 1)
        table.append(f"| {what} | {figures[f'{way}_per_s']:.0f} | {times:g} | {figures[f'{way}_cpu_ms_each']:.1f} |")
    end = f"Medians of {PASSES} passes in turns, {figures['n']:,} commands each."
    return "\n".join([f"## Processes for handlers on {figures['store']}", "", *table, "", end])
