"""The lines at which the code of a flow waits, as they are written for people."""

from __future__ import annotations

import sys

import click

from mainspring.analysis.reading.model import shortened
from mainspring.cli.output import clock, counted, visible
from mainspring.views import Frame, WaitingCode, WaitsAt


def write_lines_of_code(found: WaitsAt) -> None:
    """Write where a flow waits: each line with its source, its variables, and the calls that led to it."""
    if not found.is_flow:
        return
    if found.problem is not None:
        click.secho(f"\nAt which line it waits cannot be told: {visible(found.problem)}", fg="red")
    for code in found.waiting:
        _write(code, ended=found.ended)
    if found.more:
        click.echo(f"\n{counted(found.more, 'task')} more wait.")


def _write(code: WaitingCode, *, ended: bool) -> None:
    waits = "waited" if ended else "waits"
    until = "" if code.times_out is None else f", until {clock(code.times_out)} (UTC)"
    due = "" if code.due is None else f", due {clock(code.due)} (UTC)"
    place = _place(code.frames[0]) if code.frames else "no line of its own"
    click.echo()
    click.secho(f"{visible(code.task)} {waits} at {place} for {visible(code.awaits)}{due}{until}", bold=True)
    for number, frame in enumerate(code.frames):
        if number:
            click.echo(f"  called at {_place(frame)}")
        if number == len(code.frames) - 1 and code.more:
            click.echo(f"  … {counted(code.more, 'call')} more between them")
        _write_frame(frame)


def _write_frame(frame: Frame) -> None:
    if frame.text:
        click.secho(f"    {visible(frame.text)}", fg="cyan")
    for variable in frame.variables:
        click.echo(f"      {variable.name} = {visible(variable.value or variable.type)}")
    if frame.more:
        click.echo(f"      … {counted(frame.more, 'variable')} more")


def _place(frame: Frame) -> str:
    return visible(f"{shortened(frame.file, sys.path)}:{frame.line} in {frame.function}")
