"""Figures as pictures, and a page that shows them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from msgspec import Struct

from mainspring.analysis.charts import (
    Bar,
    Range,
    Series,
    bar_chart,
    column_chart,
    histogram,
    range_chart,
)
from mainspring.analysis.figures import Figures, WorkflowFigures
from mainspring.analysis.markup import escape
from mainspring.analysis.quantities import lasting, percent
from mainspring.analysis.samples import Spread

STATES_SHOWN: Final = 20
COMMANDS_SHOWN: Final = 20
_COLOURS: Final = {"completed": "b", "failed": "c", "cancelled": "d", "terminated": "e"}


class Plot(Struct, frozen=True):
    """A picture: the name of its file without an ending, and the SVG."""

    name: str
    svg: str


def plots_of(figures: Figures) -> list[Plot]:
    """Return the pictures of all workflows: throughput, durations, states, commands and paths, where there are any.

    >>> from mainspring.engine.inputs.pending import moment
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
