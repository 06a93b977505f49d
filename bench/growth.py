"""Growth: what a step costs beside more and more finished instances, events, concurrent instances and timers.

Each repeat measures the same work in a small store, or on a short stream, directly before: what counts is the ratio, so
that a machine whose speed changes meanwhile does not bend the curve.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence

from bench.growth_axes import AXES, Axis, Cost
from bench.measure import Figures, median, rss_mb
from bench.progress import Progress
from bench.settings import Settings

REPEATS = 7
EXPONENT_TARGET = 0.1
TAIL = 3
KINDS = ("cpu", "wall")


def run(settings: Settings) -> Figures:
    """Measure a step beside n finished instances, n timers, n/10 events in its stream, n/100 instances at once."""
    names = AXES if settings.axis == "all" else (settings.axis,)
    figures: Figures = {}
    for name in names:
        figures |= asyncio.run(_along(name, settings))
    exponents = [figures[f"{name}_cpu_{which}"] for name in names for which in ("exponent", "tail_exponent")]
    grown = [list(curve["cpu"].values()) for curve in curves(figures).values()]
    figures["worst_growth"] = round(max(costs[-1] / costs[0] for costs in grown), 2)
    return {**figures, "worst_exponent": max(exponents), "exponent_target": EXPONENT_TARGET, "rss_mb": rss_mb()}


def sizes_of(axis: type[Axis], n: int) -> list[int]:
    """Return the sizes that are measured along an axis: powers of ten."""
    largest = max(axis.least, n // axis.share)
    sizes = [axis.least]
    while sizes[-1] * 10 <= largest:
        sizes.append(sizes[-1] * 10)
    return sizes


async def _along(name: str, settings: Settings) -> Figures:
    """Return the cost of a step at each size of an axis, and how it grows."""
    sizes = sizes_of(AXES[name], settings.n)
    progress = Progress(f"growth, {name}", sizes[-1])
    beside: list[Cost] = []
    ratios: dict[int, list[Cost]] = {size: [] for size in sizes}
    async with AXES[name](settings) as axis:
        for size in sizes:
            progress.at(size)
            await axis.grow(size)
            await axis.reference()  # once for the caches
            await axis.measured()
            for _ in range(REPEATS):
                small = await axis.reference()
                cost = await axis.measured()
                beside.append(small)
                ratios[size].append(Cost(*(each / other for each, other in zip(cost, small, strict=True))))
        await axis.check()
    progress.end()
    return _figures(name, ratios, beside)


def _figures(name: str, ratios: dict[int, list[Cost]], beside: Sequence[Cost]) -> Figures:
    figures: Figures = {}
    for place, kind in enumerate(KINDS):
        # Floored: a clock that ticks 100 times a second may see no time at all in the smallest runs.
        curve = {size: max(1e-3, median([each[place] for each in found])) for size, found in ratios.items()}
        usual_us = 1e6 * median([each[place] for each in beside])
        figures |= {f"{name}_{size}_{kind}_us": round(ratio * usual_us, 1) for size, ratio in curve.items()}
        figures[f"{name}_{kind}_exponent"] = round(exponent(curve), 3)
        # Where a cost falls first, as commits are shared by more, it must not hide how it grows then.
        figures[f"{name}_{kind}_tail_exponent"] = round(exponent(dict(list(curve.items())[-TAIL:])), 3)
    return figures


def exponent(curve: dict[int, float]) -> float:
    """Return the slope of a cost over a size where both are drawn as logarithms; 0 is flat, 1 is in proportion.

    >>> round(exponent({1: 3.0, 10: 30.0, 100: 300.0}), 6)
    1.0
    >>> exponent({1: 5.0, 10: 5.0})
    0.0
    """
    if len(curve) < 2:
        return 0.0
    points = [(math.log(size), math.log(cost)) for size, cost in curve.items()]
    middle_x = sum(x for x, _ in points) / len(points)
    middle_y = sum(y for _, y in points) / len(points)
    above = sum((x - middle_x) * (y - middle_y) for x, y in points)
    return above / sum((x - middle_x) ** 2 for x, _ in points)


def curves(figures: Figures) -> dict[str, dict[str, dict[int, float]]]:
    """Return the costs by axis, kind and size, as they stand in a result."""
    found: dict[str, dict[str, dict[int, float]]] = {}
    for key, value in figures.items():
        for kind in KINDS:
            axis, _, size = key.removesuffix(f"_{kind}_us").rpartition("_")
            if key.endswith(f"_{kind}_us") and axis in AXES and size.isdecimal():
                found.setdefault(axis, {}).setdefault(kind, {})[int(size)] = value
    return found


def section(figures: Figures) -> str:
    """Return a result as a few lines for a report."""
    lines = ["| beside | µs of CPU for a step (wall), by size | exponent of CPU | of wall |", "|---|---|---|---|"]
    for axis, by_kind in curves(figures).items():
        wall = by_kind["wall"]
        costs = " · ".join(f"{size:,}: {cost:,.0f} ({wall[size]:,.0f})" for size, cost in by_kind["cpu"].items())
        exponents = " | ".join(
            f"{figures[f'{axis}_{kind}_exponent']:.2f} ({figures[f'{axis}_{kind}_tail_exponent']:.2f})"
            for kind in KINDS
        )
        lines.append(f"| {AXES[axis].what} | {costs} | {exponents} |")
    end = (
        f"Medians of {REPEATS} repeats, each beside the same work in a small store; the server's CPU is in it. "
        f"In brackets the exponent of the last {TAIL} sizes alone. "
        f"Worst exponent of CPU {figures['worst_exponent']:.2f}, at most {EXPONENT_TARGET:g} wanted."
    )
    return "\n".join([f"## Growth on {figures['store']}", "", *lines, "", end])
