"""Schedules: messages that are sent again and again, by a calendar."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from datetime import datetime

import click

from mainspring.app import Mainspring
from mainspring.app.schedules import MOST_NEXT, Schedules
from mainspring.cli.loading import connected
from mainspring.cli.options import actor_option, examples, json_option
from mainspring.cli.output import write_json, write_lines, write_table


@click.group(epilog=examples("mainspring schedules list", "mainspring schedules pause nightly"))
def schedules() -> None:
    """List, pause, resume, remove or run what is sent by a calendar."""


@schedules.command("list", epilog=examples("mainspring schedules list --json"))
@json_option
@connected
async def list_schedules(app: Mainspring, as_json: bool) -> None:
    """List the schedules that the app declares."""
    found = await app.schedules.list()
    if as_json:
        write_lines(found)
    elif found:
        columns = ("name", "calendar", "catch-up", "message", "status", "next (UTC)")
        rows = [(i.name, i.calendar, i.catch_up, i.message, i.status, _clock(i.next)) for i in found]
        write_table(columns, rows)
    if not found:
        click.echo("This app declares no schedules.", err=True)


@schedules.command("next", epilog=examples("mainspring schedules next nightly -n 3"))
@click.argument("name")
@click.option("-n", "count", type=click.IntRange(1, MOST_NEXT), default=5, show_default=True, help="So many.")
@json_option
@connected
async def next_times(app: Mainspring, name: str, count: int, as_json: bool) -> None:
    """Show the next times of a schedule."""
    times = await app.schedules.next(name, count)
    if as_json:
        write_lines({"name": name, "time": time} for time in times)
    else:
        click.echo("\n".join(_clock(time) for time in times))


def _operation(name: str, example: str) -> Callable[[Callable[..., Awaitable[None]]], click.Command]:
    """Make a command of what is done to a schedule: it says what became of it."""

    def decorate(operation: Callable[..., Awaitable[None]]) -> click.Command:
        @schedules.command(name, epilog=examples(example))
        @click.argument("name")
        @actor_option
        @json_option
        @connected
        @functools.wraps(operation)
        async def operate(app: Mainspring, name: str, actor: str | None, as_json: bool) -> None:
            await operation(app.schedules, name, actor=actor)
            info = next(info for info in await app.schedules.list() if info.name == name)
            if as_json:
                write_json(info)
            else:
                click.echo(f"{name} is {info.status}" + (f", next at {_clock(info.next)} UTC" if info.next else ""))

        return operate

    return decorate


@_operation("pause", "mainspring schedules pause nightly --actor ann")
async def pause(schedules: Schedules, name: str, actor: str | None) -> None:
    """Let a schedule fire no more until it is resumed."""
    await schedules.pause(name, actor=actor)


@_operation("resume", "mainspring schedules resume nightly")
async def resume(schedules: Schedules, name: str, actor: str | None) -> None:
    """Let a paused or removed schedule fire again, from its next time on."""
    await schedules.resume(name, actor=actor)


@_operation("remove", "mainspring schedules remove nightly")
async def remove(schedules: Schedules, name: str, actor: str | None) -> None:
    """Let a schedule fire no more, until it is declared differently or resumed."""
    await schedules.remove(name, actor=actor)


@_operation("run", "mainspring schedules run nightly")
async def run(schedules: Schedules, name: str, actor: str | None) -> None:
    """Fire once, now; the calendar goes on as it was."""
    await schedules.run_now(name, actor=actor)


def _clock(time: datetime | None) -> str:
    return "" if time is None else f"{time:%Y-%m-%d %H:%M:%S}"
