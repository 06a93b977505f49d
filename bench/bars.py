"""A picture of the comparison: a panel for each workload, a bar for each contender, on a logarithmic scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from msgspec import Struct

from bench.comparison import Found

BAR, GAP, LEFT, WIDTH, RIGHT, HEAD = 14, 4, 190, 420, 90, 34
COLOURS = {"bare limit": "#9ca3af", "mainspring": "#2563eb", "DBOS": "#f59e0b", "Restate": "#10b981"}
OTHER = "#6b7280"


class Bar(Struct, frozen=True):
    """A contender's figure; `engine` gives the colour."""

    name: str
    engine: str
    found: Found


class Panel(Struct, frozen=True):
    """The bars of one workload; `title` says what the figure is, and which end is good."""

    title: str
    bars: Sequence[Bar]


def picture(panels: Sequence[Panel]) -> str:
    """Return the picture as SVG. Panels without a bar are left out."""
    parts: list[str] = []
    top = 0
    for panel in panels:
        if panel.bars:
            parts.append(_panel(panel, top))
            top += HEAD + len(panel.bars) * (BAR + GAP) + GAP
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + RIGHT}" height="{top + GAP}" '
        f'font-family="sans-serif" font-size="11">\n<rect width="100%" height="100%" fill="white"/>\n'
        f"{''.join(parts)}</svg>\n"
    )


def _panel(panel: Panel, top: int) -> str:
    # Whole powers of ten at both ends: a bar that is twice as long is not twice as much, so the lines must be seen.
    low = math.floor(math.log10(min(bar.found.least for bar in panel.bars)))
    high = max(low + 1, math.ceil(math.log10(max(bar.found.most for bar in panel.bars))))

    def x(value: float) -> float:
        return LEFT + WIDTH * (math.log10(value) - low) / (high - low)

    first, height = top + HEAD, len(panel.bars) * (BAR + GAP)
    lines = [f'<text x="{LEFT}" y="{top + 16}" font-weight="bold">{escape(panel.title)}</text>\n']
    for power in range(low, high + 1):
        at = x(10.0**power)
        lines.append(f'<line x1="{at:.1f}" y1="{first}" x2="{at:.1f}" y2="{first + height}" stroke="#e5e7eb"/>\n')
        lines.append(
            f'<text x="{at:.1f}" y="{first - 4}" text-anchor="middle" fill="#6b7280">{10.0**power:,g}</text>\n'
        )
    for number, bar in enumerate(panel.bars):
        lines.append(
            _bar(bar, first + number * (BAR + GAP), x(bar.found.middle), x(bar.found.least), x(bar.found.most))
        )
    return "".join(lines)


def _bar(bar: Bar, y: int, end: float, least: float, most: float) -> str:
    """The bar ends at the median; the thin line goes from the least to the most."""
    middle = y + BAR / 2
    return (
        f'<text x="{LEFT - 6}" y="{y + BAR - 3}" text-anchor="end">{escape(bar.name)}</text>\n'
        f'<rect x="{LEFT}" y="{y}" width="{max(end - LEFT, 0.5):.1f}" height="{BAR}" '
        f'fill="{COLOURS.get(bar.engine, OTHER)}"/>\n'
        f'<line x1="{least:.1f}" y1="{middle}" x2="{most:.1f}" y2="{middle}" stroke="black"/>\n'
        f'<text x="{max(most, end) + 5:.1f}" y="{y + BAR - 3}">{bar.found.middle:,.4g}</text>\n'
    )
