"""Charts as SVG: columns over time, bars, ranges and a histogram. Readable on white and on dark backgrounds.

Figures as pictures, and a page that shows them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from mainspring.analysis.figures.figures import Figures, WorkflowFigures
from mainspring.analysis.figures.samples import Bin, Spread
from mainspring.analysis.texts import escape, lasting, percent

WIDTH: Final = 760
LEFT, RIGHT, TOP, BOTTOM = 210, 130, 64, 40
BAR, GAP = 18, 8
PLOT_HEIGHT: Final = 200
LABEL_CHARACTERS: Final = 28
TICKS: Final = 5
TIME_LABELS: Final = 7

# Where a logarithmic axis of durations may have its marks, in seconds.
_MARKS: Final = (*(10.0**n for n in range(-6, 2)), 60, 600, 3_600, 6 * 3_600, *(86_400 * 10**n for n in range(5)))
_SHORTEST_SECONDS: Final = 1e-6

_STYLE: Final = """\
text{font-family:system-ui,-apple-system,"Segoe UI",sans-serif;font-size:12px;fill:#24292f}
.title{font-size:15px;font-weight:600}.soft{fill:#57606a}.paper{fill:#ffffff}.grid{stroke:#d8dee4}.axis{stroke:#6e7781}
.a{fill:#1f6feb}.b{fill:#2da44e}.c{fill:#cf222e}.d{fill:#bf8700}.e{fill:#8250df}.faint{fill-opacity:.35}
@media (prefers-color-scheme: dark){text{fill:#e6edf3}.soft{fill:#9da7b1}.paper{fill:#0d1117}.grid{stroke:#30363d}
.axis{stroke:#8b949e}.a{fill:#4493f8}.b{fill:#3fb950}.c{fill:#f85149}.d{fill:#d29922}.e{fill:#ab7df8}}"""

Colour = str
Scale = Callable[[float], float]


class Bar(Struct, frozen=True):
    """A bar: its name, how long it is, and what is written behind it."""

    label: str
    value: float
    text: str


class Range(Struct, frozen=True):
    """The median, the 90th and the 99th percentile of something, in seconds."""

    label: str
    p50: float
    p90: float
    p99: float
    text: str


class Series(Struct, frozen=True):
    """A count for each moment of a chart, and its colour."""

    name: str
    colour: Colour
    counts: Sequence[int]


def bar_chart(title: str, note: str, bars: Sequence[Bar], colour: Colour = "a") -> str:
    """Return bars under each other, from zero to the longest.

    >>> "<title>Time in states</title>" in bar_chart("Time in states", "share", [Bar("Waiting", 0.5, "50 %")])
    True
    """
    most = max((bar.value for bar in bars), default=0) or 1.0
    body: list[str] = []
    for place, bar in enumerate(bars):
        y = TOP + place * (BAR + GAP)
        width = max((WIDTH - LEFT - RIGHT) * bar.value / most, 1)
        body += _label(bar.label, y)
        body.append(_rect(LEFT, y, width, BAR, colour, f"{bar.label}: {bar.text}"))
        body.append(_text(LEFT + width + 6, y + BAR - 5, bar.text))
    return _svg(title, note, TOP + len(bars) * (BAR + GAP) + GAP, body)


def range_chart(title: str, note: str, ranges: Sequence[Range], colour: Colour = "a") -> str:
    """Return the medians as bars on a logarithmic scale, with lighter ones up to the 90th and 99th percentiles."""
    lowest = min((range.p50 for range in ranges), default=1.0)
    x, marks = _log_scale(lowest, max((range.p99 for range in ranges), default=1.0), LEFT, WIDTH - RIGHT)
    height = TOP + len(ranges) * (BAR + GAP)
    body = list(_upright_marks(x, marks, TOP - 6, height))
    for place, range in enumerate(ranges):
        y = TOP + place * (BAR + GAP)
        told = f"{range.label}: p50 {lasting(range.p50)}, p90 {lasting(range.p90)}, p99 {lasting(range.p99)}"
        body += _label(range.label, y)
        body.append(_rect(LEFT, y + 6, max(x(range.p99) - LEFT, 1), BAR - 12, f"{colour} faint", told))
        body.append(_rect(LEFT, y + 3, max(x(range.p90) - LEFT, 1), BAR - 6, f"{colour} faint", told))
        body.append(_rect(LEFT, y, max(x(range.p50) - LEFT, 1), BAR, colour, told))
        body.append(_text(max(x(range.p99), LEFT) + 6, y + BAR - 5, range.text))
    return _svg(title, note, height + BOTTOM, body)


def histogram(title: str, note: str, bins: Sequence[Bin], colour: Colour = "b") -> str:
    """Return a histogram of durations on a logarithmic scale."""
    low, high = (bins[0].low, bins[-1].high) if bins else (1.0, 10.0)
    left = 60
    x, marks = _log_scale(low, high, left, WIDTH - 30)
    y, body = _count_axis(max((bin.count for bin in bins), default=1), left)
    body += _upright_marks(x, marks, TOP, TOP + PLOT_HEIGHT)
    for bin in bins:
        begin, end = x(bin.low), x(bin.high)
        told = f"{lasting(bin.low)} to {lasting(bin.high)}: {bin.count:,}"
        body.append(_rect(begin, y(bin.count), max(end - begin - 1, 1), TOP + PLOT_HEIGHT - y(bin.count), colour, told))
    return _svg(title, note, TOP + PLOT_HEIGHT + BOTTOM, body)


def column_chart(
    title: str, note: str, begins: Sequence[datetime], width: timedelta, single: Series, stacked: Sequence[Series]
) -> str:
    """Return for each interval a column of one series, and beside it the others, stacked."""
    left, right = 60, WIDTH - 30
    spots = [(begin - begins[0]) // width for begin in begins]
    slot = (right - left) / (spots[-1] + 1)
    highest = max(*single.counts, *(sum(column) for column in zip(*(s.counts for s in stacked), strict=True)), 1)
    y, body = _count_axis(highest, left)
    for place, spot in enumerate(spots):
        x, each = left + spot * slot + slot * 0.08, slot * 0.42
        top = y(single.counts[place])
        when = f"{begins[place]:%Y-%m-%d %H:%M}"
        told = f"{when}: {single.counts[place]:,} {single.name}"
        body.append(_rect(x, top, each, TOP + PLOT_HEIGHT - top, single.colour, told))
        height = 0
        for series in stacked:
            count = series.counts[place]
            if count:
                low, top = y(height), y(height + count)
                body.append(_rect(x + each, top, each, low - top, series.colour, f"{when}: {count:,} {series.name}"))
                height += count
    body += _time_labels(begins[0], width, spots[-1] + 1, left, slot)
    body += _legend([single, *stacked], left)
    return _svg(title, note, TOP + PLOT_HEIGHT + BOTTOM, body)


# ---- axes


def _log_scale(low: float, high: float, left: float, right: float) -> tuple[Scale, list[float]]:
    """Return where a duration stands, and the marks of the axis; it begins and ends at marks."""
    low, high = max(low, _SHORTEST_SECONDS), max(high, _SHORTEST_SECONDS)
    below = [mark for mark in _MARKS if mark <= low]
    above = [mark for mark in _MARKS if mark >= high]
    begin, end = below[-1] if below else _MARKS[0], above[0] if above else _MARKS[-1]
    if begin == end:
        end = _MARKS[min(_MARKS.index(begin) + 1, len(_MARKS) - 1)]
    span = math.log(end / begin) or 1.0

    def x(seconds: float) -> float:
        return left + (right - left) * math.log(max(seconds, begin) / begin) / span

    return x, [mark for mark in _MARKS if begin <= mark <= end]


def _count_axis(highest: int, left: float) -> tuple[Scale, list[str]]:
    """Return where a count stands, and the axis with lines across."""
    step = _nice(highest / TICKS)
    top = step * math.ceil(highest / step)

    def y(count: float) -> float:
        return TOP + PLOT_HEIGHT * (1 - count / top)

    lines: list[str] = []
    for count in range(0, top + 1, step):
        lines.append(f'<path class="grid" d="M{left} {y(count):.1f}H{WIDTH - 30}"/>')
        lines.append(_text(left - 6, y(count) + 4, f"{count:,}", "soft", "end"))
    return y, lines


def _nice(step: float) -> int:
    """Return a round step of an axis: 1, 2 or 5 times a power of ten.

    >>> [_nice(step) for step in (0.2, 3, 7, 180)]
    [1, 5, 10, 200]
    """
    if step <= 1:
        return 1
    power = 10 ** math.floor(math.log10(step))
    return int(next(power * factor for factor in (1, 2, 5, 10) if power * factor >= step))


def _upright_marks(x: Scale, marks: Sequence[float], top: float, bottom: float) -> Iterator[str]:
    last = -math.inf
    for mark in marks:
        at = x(mark)
        yield f'<path class="grid" d="M{at:.1f} {top}V{bottom:.1f}"/>'
        if at - last > 48:
            yield _text(at, bottom + 16, lasting(mark), "soft", "middle")
            last = at


def _time_labels(begin: datetime, width: timedelta, count: int, left: float, slot: float) -> Iterator[str]:
    step = max(1, math.ceil(count / TIME_LABELS))
    form = "%m-%d %H:%M" if width < timedelta(days=1) else "%Y-%m-%d"
    for spot in range(0, count, step):
        at = left + (spot + 0.5) * slot
        yield _text(at, TOP + PLOT_HEIGHT + 16, f"{begin + spot * width:{form}}", "soft", "middle")


def _legend(series: Sequence[Series], left: float) -> Iterator[str]:
    x = left
    for one in series:
        yield f'<rect class="{one.colour}" x="{x}" y="{TOP - 22}" width="10" height="10" rx="2"/>'
        yield _text(x + 15, TOP - 13, one.name, "soft")
        x += 32 + 7 * len(one.name)


# ---- pieces


def _svg(title: str, note: str, height: float, body: Sequence[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:.0f}" '
        f'viewBox="0 0 {WIDTH} {height:.0f}" role="img">'
    )
    top = [
        f"<title>{escape(title)}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{height:.0f}"/>',
        _text(16, 24, title, "title"),
        _text(16, 42, note, "soft"),
    ]
    return "\n".join([head, *top, *body, "</svg>", ""])


def _label(label: str, y: float) -> list[str]:
    # Paths begin alike, and so do types of one module: the end of a long label tells them apart.
    shown = label if len(label) <= LABEL_CHARACTERS else f"…{label[1 - LABEL_CHARACTERS :]}"
    return [f"<g><title>{escape(label)}</title>{_text(LEFT - 8, y + BAR - 5, shown, '', 'end')}</g>"]


def _text(x: float, y: float, text: str, css: str = "", anchor: str = "") -> str:
    extra = (f' class="{css}"' if css else "") + (f' text-anchor="{anchor}"' if anchor else "")
    return f'<text x="{x:.1f}" y="{y:.1f}"{extra}>{escape(text)}</text>'


def _rect(x: float, y: float, width: float, height: float, css: str, told: str) -> str:
    size = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="2"'
    return f'<rect class="{css}" {size}><title>{escape(told)}</title></rect>'


STATES_SHOWN: Final = 20
COMMANDS_SHOWN: Final = 20
_COLOURS: Final = {"completed": "b", "failed": "c", "cancelled": "d", "terminated": "e"}


class Plot(Struct, frozen=True):
    """A picture: the name of its file without an ending, and the SVG."""

    name: str
    svg: str


def plots_of(figures: Figures) -> list[Plot]:
    """Return the pictures of all workflows: throughput, durations, states, commands and paths, where there are any.

    >>> from mainspring.engine.recording.stored_values import moment
    >>> plots_of(Figures(moment(0), None, None, 0, 0, ()))
    []
    """
    return [plot for workflow in figures.workflows for plot in _plots(workflow)]


def page_of(figures: Figures, plots: Mapping[str, str]) -> str:
    """Return an HTML page that shows pictures; `plots` goes from the file's name to what it shows."""
    images = "\n".join(f'<p><img src="{escape(name)}" alt="{escape(alt)}"></p>' for name, alt in plots.items())
    when = f"{figures.at:%Y-%m-%d %H:%M} UTC"
    return f"""\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Workflows, {when}</title>
<style>
:root {{ color-scheme: light dark; font-family: system-ui, sans-serif; }}
body {{ max-width: 780px; margin: 2rem auto; padding: 0 1rem; }}
img {{ max-width: 100%; height: auto; }}
</style>
<h1>Workflows</h1>
<p>{figures.instances:,} instances and {figures.events:,} events, read {when}.</p>
{images}
</html>
"""


def _plots(workflow: WorkflowFigures) -> list[Plot]:
    drawn = {
        "throughput": _throughput(workflow),
        "durations": _durations(workflow),
        "states": _states(workflow),
        "bottlenecks": _bottlenecks(workflow),
        "commands": _commands(workflow),
        "paths": _paths(workflow),
    }
    # A name may hold what no file's name may.
    stem = re.sub(r"[^\w.-]", "_", workflow.workflow)
    return [Plot(f"{stem}-{what}", svg) for what, svg in drawn.items() if svg is not None]


def _throughput(workflow: WorkflowFigures) -> str | None:
    told = workflow.throughput
    if not told.intervals:
        return None
    begun = Series("begun", "a", [interval.begun for interval in told.intervals])
    ends = [
        Series(status, colour, [interval.ended.get(status, 0) for interval in told.intervals])
        for status, colour in _COLOURS.items()
        if any(status in interval.ended for interval in told.intervals)
    ]
    begins = [interval.begin for interval in told.intervals]
    title = f"{workflow.workflow}: begun and ended per {told.width}"
    return column_chart(title, "", begins, timedelta(seconds=told.seconds), begun, ends)


def _durations(workflow: WorkflowFigures) -> str | None:
    spread = workflow.durations.get("completed")
    if spread is None:
        return None
    note = (
        f"{spread.count:,} completed; p50 {lasting(spread.p50)}, p90 {lasting(spread.p90)}, p99 {lasting(spread.p99)}"
    )
    return histogram(f"{workflow.workflow}: from beginning to completion", note, workflow.completion_times)


def _states(workflow: WorkflowFigures) -> str | None:
    ranges = [_range(state.state, state.dwell) for state in workflow.states[:STATES_SHOWN] if state.dwell]
    note = "median; lighter up to the 90th and the 99th percentile"
    return range_chart(f"{workflow.workflow}: how long a stay in a state takes", note, ranges) if ranges else None


def _bottlenecks(workflow: WorkflowFigures) -> str | None:
    bars = [
        Bar(state.state, state.share, f"{percent(state.share)}, {lasting(state.dwell.total)}")
        for state in workflow.states[:STATES_SHOWN]
        if state.dwell
    ]
    note = "share of the time of all instances together"
    return bar_chart(f"{workflow.workflow}: where the time goes", note, bars, "d") if bars else None


def _commands(workflow: WorkflowFigures) -> str | None:
    ranges = [
        _range(command.type, command.handling) for command in workflow.commands[:COMMANDS_SHOWN] if command.handling
    ]
    note = "how long the try took that gave the result: median; lighter up to the 90th and the 99th percentile"
    return range_chart(f"{workflow.workflow}: how long handlers take", note, ranges, "e") if ranges else None


def _paths(workflow: WorkflowFigures) -> str | None:
    found = workflow.variants
    bars = [
        Bar(
            ", ".join(state for _, state in variant.steps),
            variant.share,
            f"{percent(variant.share)}, {variant.count:,}",
        )
        for variant in found.top
    ]
    note = f"{len(found.top):,} of {found.distinct:,} paths" if found.others else "all paths, by the states on the way"
    return bar_chart(f"{workflow.workflow}: paths taken", note, bars, "b") if bars else None


def _range(label: str, spread: Spread) -> Range:
    return Range(label, spread.p50, spread.p90, spread.p99, f"p50 {lasting(spread.p50)}")
