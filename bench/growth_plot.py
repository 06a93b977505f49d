"""Growth as a picture: a panel for each axis, sizes and costs as logarithms, in plain SVG."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape

from bench.growth import KINDS, curves
from bench.growth_axes import AXES
from bench.measure import Figures

WIDTH, HEIGHT = 240, 220
LEFT, TOP, RIGHT, BOTTOM = 46, 40, 14, 34
COLOURS = {"cpu": "#1f6feb", "wall": "#b35900"}


def plot(figures: Figures) -> str:
    """Return a result as a picture."""
    panels = list(curves(figures).items())
    costs = [cost for _, by_kind in panels for curve in by_kind.values() for cost in curve.values()]
    low, high = math.floor(math.log10(min(costs))), math.ceil(math.log10(max(costs)))
    width = WIDTH * len(panels)
    size = f'width="{width}" height="{HEIGHT}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width} {HEIGHT}" font-family="sans-serif">',
        f'<rect {size} fill="white"/><g font-size="10">',
    ]
    for place, (axis, by_kind) in enumerate(panels):
        lines.append(f'<g transform="translate({place * WIDTH} 0)">')
        lines += _panel(axis, by_kind, figures, low, max(high, low + 1))
        lines.append("</g>")
    return "\n".join([*lines, "</g></svg>", ""])


def _panel(axis: str, by_kind: dict[str, dict[int, float]], figures: Figures, low: int, high: int) -> Iterator[str]:
    sizes = list(by_kind["cpu"])
    span = max(1.0, math.log10(sizes[-1] / sizes[0]))

    def x(size: int) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log10(size / sizes[0]) / span

    def y(cost: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (math.log10(cost) - low) / (high - low)

    yield f'<text x="{LEFT}" y="14" font-size="11">{escape(AXES[axis].what)}</text>'
    for power in range(low, high + 1):
        yield f'<path d="M{LEFT} {y(10**power):.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>'
        yield f'<text x="{LEFT - 4}" y="{y(10**power) + 3:.1f}" text-anchor="end">{10**power:,g} µs</text>'
    for size in sizes:
        yield f'<text x="{x(size):.1f}" y="{HEIGHT - BOTTOM + 14}" text-anchor="middle">{_short(size)}</text>'
    for number, kind in enumerate(KINDS):
        points = " ".join(f"{x(size):.1f},{y(cost):.1f}" for size, cost in by_kind[kind].items())
        yield f'<polyline points="{points}" fill="none" stroke="{COLOURS[kind]}" stroke-width="2"/>'
        told = f"{kind}: exponent {figures[f'{axis}_{kind}_exponent']:.2f}"
        yield f'<text x="{LEFT + 96 * number}" y="30" fill="{COLOURS[kind]}">{told}</text>'


def _short(size: int) -> str:
    """Return a power of ten as people write it on an axis.

    >>> _short(100), _short(1_000_000)
    ('100', '10⁶')
    """
    digits = len(str(size)) - 1
    return str(size) if digits < 4 else "10" + "⁰¹²³⁴⁵⁶⁷⁸⁹"[digits]
