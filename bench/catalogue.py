"""Every measurement by its name."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from bench import (
    analytics,
    brokers,
    cold_start,
    computing,
    fan_out,
    growth,
    growth_plot,
    http,
    idle,
    isolation,
    limit,
    profile,
    replay,
    studio,
    w1,
    w2,
    w3,
    w4,
    w5,
    w6,
    what_if,
)
from bench.measure import REPEATS, Figures
from bench.settings import Settings


class Bench(Struct, frozen=True):
    """`run` makes one run in this process. `sizes` are the n's that are measured unless others are asked for.

    `section` makes Markdown of a result, for a report, and `plot` an SVG.
    """

    run: Callable[[Settings], Figures]
    sizes: tuple[int, ...]
    figure: str
    repeats: int = REPEATS
    section: Callable[[Figures], str] | None = None
    plot: Callable[[Figures], str] | None = None


BENCHES: dict[str, Bench] = {
    "w1": Bench(w1.run, (10_000,), "instances_per_s"),
    "w2": Bench(w2.run, (300,), "p50_ms"),
    "w3": Bench(w3.run, (1_000, 5_000), "seconds"),
    "w4": Bench(w4.run, (1_000,), "seconds"),
    "w5": Bench(w5.run, (1_000,), "seconds"),
    "w5-restart": Bench(w5.restart, (1_000,), "seconds"),
    "w6": Bench(w6.run, (10_000,), "late_s"),
    "fan-out": Bench(fan_out.run, (1_000, 10_000), "seconds"),
    "replay": Bench(replay.run, (10_000,), "replay_ms"),
    "analytics": Bench(analytics.run, (1_000_000,), "events_per_s", repeats=3, section=analytics.section),
    "idle": Bench(idle.run, (1_000_000,), "w1_times_longer", repeats=1),
    "isolation": Bench(isolation.run, (10_000,), "worst_p99_ratio", repeats=1, section=isolation.section),
    "growth": Bench(growth.run, (1_000_000,), "worst_growth", repeats=1, section=growth.section, plot=growth_plot.plot),
    "http": Bench(http.run, (1_000_000,), "worst_p99_ms", repeats=1, section=http.section),
    "studio": Bench(studio.run, (1_000_000,), "usable_s", repeats=1, section=studio.section),
    "processes": Bench(computing.run, (300,), "process_pool_times_threads", repeats=1, section=computing.section),
    "profile": Bench(profile.run, (10_000,), "wall_us", repeats=3, section=profile.section),
    "cold-start": Bench(cold_start.run, (15,), "app_ms", repeats=1, section=cold_start.section),
    "what-if": Bench(what_if.run, (20_000,), "events_per_s", repeats=3, section=what_if.section),
    "brokers": Bench(brokers.run, (10_000,), "slowest_per_s", repeats=3, section=brokers.section),
    "limit": Bench(limit.throughput, (10_000,), "instances_per_s"),
    "limit-bulk": Bench(limit.bulk, (10_000,), "instances_per_s"),
    "limit-loop": Bench(limit.latency, (300,), "p50_ms"),
}
