"""Figures of workflows: throughput, durations, failures, states, commands, paths and costs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

import click
from msgspec.structs import replace

from mainspring.analysis.diagram.mining import machine_of
from mainspring.analysis.figures.advice import advice_of
from mainspring.analysis.figures.figures import (
    VARIANTS_SHOWN,
    Advice,
    CommandFigures,
    Figures,
    StateFigures,
    TimerFigures,
    WorkflowFigures,
    figures_of,
    moved_within,
)
from mainspring.analysis.figures.samples import RELATIVE_ERROR, Spread
from mainspring.analysis.figures.tally import VariantsFound
from mainspring.analysis.figures.timeline import ENDS, Throughput
from mainspring.analysis.processes import Sharing
from mainspring.analysis.reading.model import Machine
from mainspring.analysis.texts import lasting, percent, sized
from mainspring.app import Mainspring
from mainspring.app.internals import internals_of
from mainspring.app.search import filter_of, microseconds
from mainspring.cli.failures import MisuseError
from mainspring.cli.loading import shown_url, with_app
from mainspring.cli.options import app_argument, app_option, examples, json_option, processes_option
from mainspring.cli.output import counted, write_json, write_table
from mainspring.cli.searching import TIMES, condition, time_of
from mainspring.cli.sharing import sharing_of
from mainspring.port.records import InstanceFilter

INTERVALS_WRITTEN: Final = 24


@click.command(
    epilog=examples(
        "mainspring stats",
        "mainspring stats --workflow OrderFulfilment --since 7d",
        "mainspring stats --attribute country=NL --since 2026-01-01 --until 2026-02-01",
        "mainspring stats --plots pictures",
        "mainspring stats --json | jq '.workflows[].durations.completed.p99'",
    )
)
@click.option("--workflow", metavar="NAME", help="Only this workflow.")
@click.option("--prefix", metavar="TEXT", help="Only instances whose id begins so.")
@click.option("--attribute", multiple=True, metavar="NAME=VALUE", help="Only instances with this attribute, as in ls.")
@click.option("--since", metavar="TIME", help=f"Count what happened since {TIMES}")
@click.option("--until", metavar="TIME", help="Count what happened before.")
@click.option(
    "--variants",
    type=click.IntRange(0, 1_000),
    default=VARIANTS_SHOWN,
    show_default=True,
    help="So many paths at most.",
)
@click.option(
    "--plots",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write pictures and a page of them to this folder.",
)
@click.option("--png", is_flag=True, help="Write the pictures as PNG; needs the extra `plots`.")
@processes_option
@json_option
@app_argument
@app_option
def stats(
    workflow: str | None,
    prefix: str | None,
    attribute: tuple[str, ...],
    since: str | None,
    until: str | None,
    variants: int,
    plots: Path | None,
    png: bool,
    processes: int | None,
    as_json: bool,
    address: str,
) -> None:
    """Show figures of workflows: throughput, durations, failures, paths and costs.

    Every event of the instances is read, without its body and in small pages: workers are not held up. What is counted
    is what happened between --since and --until, whenever the instance began.
    """
    if png and plots is None:
        raise MisuseError("--png says how pictures are written, and --plots where: give both.")
    window = (microseconds("since", time_of(since)), microseconds("until", time_of(until)))
    found = filter_of(workflow=workflow, id_prefix=prefix, attributes=[condition(text) for text in attribute])
    where = moved_within(found, *window)

    async def use(app: Mainspring) -> None:
        figures = await _read(app, where, window, variants, sharing_of(app, address, processes))
        figures = replace(figures, advice=advice_of(figures, lambda name: _machine(app, name)))
        if plots is not None:
            from mainspring.cli.plotting import write_plots  # noqa: PLC0415  only who asks for pictures pays for them

            write_plots(figures, plots, as_png=png)
        if as_json:
            write_json(figures)
        else:
            _write(figures)
        if not figures.instances:
            click.echo(f"No such instances in {shown_url(internals_of(app).url)}.", err=True)

    with_app(address, use)


async def _read(
    app: Mainspring,
    where: InstanceFilter,
    window: tuple[int | None, int | None],
    variants: int,
    sharing: Sharing | None,
) -> Figures:
    total = sum((await app.stats()).instances.values())
    with click.progressbar(length=total, label="instances", file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:
        return await figures_of(internals_of(app).engine.store, where, *window, variants, sharing, bar.update)


def _machine(app: Mainspring, workflow: str) -> Machine | None:
    entry = internals_of(app).registry.workflows.get(workflow)
    return None if entry is None else machine_of(entry)


# ---- for people


def _write(figures: Figures) -> None:
    for place, workflow in enumerate(figures.workflows):
        if place:
            click.echo()
        _write_head(workflow)
        _write_durations(workflow)
        _write_states(workflow.states)
        _write_commands(workflow.commands)
        _write_timers(workflow.timers)
        _write_variants(workflow.variants)
        _write_throughput(workflow.throughput)
    _write_advice(figures.advice)
    if any(not spread.exact for workflow in figures.workflows for spread in _spreads(workflow)):
        click.echo(f"\nPercentiles of many values are within {RELATIVE_ERROR:.0%} of the exact ones.")


def _write_advice(advice: Sequence[Advice]) -> None:
    if advice:
        click.secho("\nworth a look", bold=True)
    for each in advice:
        click.echo(f"{each.workflow}: {each.text}\n  {each.command}")


def _spreads(workflow: WorkflowFigures) -> Sequence[Spread]:
    found = [state.dwell for state in workflow.states]
    found += [spread for command in workflow.commands for spread in (command.handling, command.until_answer)]
    return [*workflow.durations.values(), *(spread for spread in found if spread is not None)]


def _write_head(workflow: WorkflowFigures) -> None:
    now = ", ".join(f"{count:,} {status}" for status, count in workflow.statuses.items())
    click.secho(f"{workflow.workflow}: {now}", bold=True)
    cost = f"{counted(workflow.events, 'event')}, {sized(workflow.bytes)}, handlers {lasting(workflow.handler_seconds)}"
    instances = sum(workflow.statuses.values())
    each = f" ({workflow.events / instances:,.1f} events and {sized(round(workflow.bytes / instances))} each)"
    click.echo(f"cost: {cost}{each}")
    failures = [
        f"{percent(workflow.failure_rate)} failed" if workflow.failure_rate is not None else "",
        counted(workflow.faults, "fault") if workflow.faults else "",
        f"suspended {counted(workflow.suspensions, 'time')}" if workflow.suspensions else "",
        counted(workflow.resets, "reset") if workflow.resets else "",
    ]
    click.echo(f"failures: {', '.join(told for told in failures if told) or 'none'}")
    if workflow.incomplete:
        whose = counted(workflow.incomplete, "instance")
        click.echo(f"{whose} without a whole history: in durations and throughput, not in states and paths")


def _write_durations(workflow: WorkflowFigures) -> None:
    rows = [(status, *_spread(spread)) for status, spread in workflow.durations.items()]
    _write_part(("ended", "count", *_PERCENTILES), rows)


def _write_states(states: Sequence[StateFigures]) -> None:
    rows = [
        (
            state.state,
            *_spread(state.dwell),
            percent(state.share) if state.dwell else "",
            f"{state.waiting:,}" if state.waiting else "",
            f"{state.again:,}" if state.again else "",
        )
        for state in states
    ]
    _write_part(("state", "stays", *_PERCENTILES, "of all time", "there now", "entered again"), rows)


def _write_commands(commands: Sequence[CommandFigures]) -> None:
    rows = [
        (
            command.type,
            f"{command.sent:,}",
            f"{command.answered:,}",
            f"{command.failed:,}" if command.failed else "",
            percent(command.retry_rate),
            f"{command.attempts:,}" if command.calls else "",
            lasting(command.handling.p50) if command.handling else "",
            lasting(command.handling.p99) if command.handling else "",
            lasting(command.until_answer.p50) if command.until_answer else "",
            f"{command.again:,}" if command.again else "",
        )
        for command in commands
    ]
    columns = ("command", "sent", "answered", "failed", "retried", "attempts", "handling p50", "p99", "to answer p50")
    _write_part((*columns, "sent again"), rows)


def _write_timers(timers: Sequence[TimerFigures]) -> None:
    rows = [(timer.type, f"{timer.set:,}", *_cells(timer.fired, timer.over)) for timer in timers]
    _write_part(("timer", "set", "fired", "never fired"), rows)


def _write_variants(variants: VariantsFound) -> None:
    rows = [
        (f"{variant.count:,}", percent(variant.share), ", ".join(f"{type} → {state}" for type, state in variant.steps))
        for variant in variants.top
    ]
    if variants.others:
        more = "at least " if variants.uncertain else ""
        others = f"other paths ({more}{variants.distinct - len(variants.top):,})"
        rows.append((f"{variants.others:,}", "", others))
    _write_part(("taken", "share", "path"), rows)
    if variants.uncertain:
        click.echo(f"There were too many paths to remember them all: a count may be too low by {variants.uncertain:,}.")


def _write_throughput(throughput: Throughput) -> None:
    shown = throughput.intervals[-INTERVALS_WRITTEN:]
    ends = [status for status in ENDS if any(status in interval.ended for interval in throughput.intervals)]
    rows = [
        (_when(interval.begin, throughput), *_cells(interval.begun, *(interval.ended.get(e, 0) for e in ends)))
        for interval in shown
    ]
    _write_part((f"{throughput.width} (UTC)", "begun", *ends), rows)
    if len(shown) < len(throughput.intervals):
        click.echo(f"and {counted(len(throughput.intervals) - len(shown), f'{throughput.width}')} before")


def _when(time: datetime, throughput: Throughput) -> str:
    return f"{time:%Y-%m-%d %H:%M}" if throughput.width in ("minute", "hour") else f"{time:%Y-%m-%d}"


_PERCENTILES: Final = ("p50", "p90", "p99", "longest")


def _spread(spread: Spread | None) -> tuple[str, ...]:
    if spread is None:
        return ("", "", "", "", "")
    return (f"{spread.count:,}", *(lasting(s) for s in (spread.p50, spread.p90, spread.p99, spread.longest)))


def _cells(*counts: int) -> tuple[str, ...]:
    return tuple(f"{count:,}" if count else "" for count in counts)


def _write_part(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Write a table, without columns that have nothing to show."""
    if rows:
        told = [place for place in range(len(columns)) if any(row[place] for row in rows)]
        click.echo()
        write_table([columns[place] for place in told], [[row[place] for place in told] for row in rows])
