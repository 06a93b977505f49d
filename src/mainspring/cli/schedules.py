"""Schedules: messages that are sent again and again, by a calendar."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime

import click

from mainspring.app import Mainspring
from mainspring.app.schedules import MOST_NEXT
from mainspring.cli.loading import with_app
from mainspring.cli.options import actor_option, app_option, examples, json_option
from mainspring.cli.output import write_json, write_lines, write_table


@click.group(epilog=examples("mainspring schedules list", "mainspring schedules pause nightly"))
def schedules() -> None:
    """List, pause, resume, remove or run what is sent by a calendar."""


@schedules.command("list", epilog=examples("mainspring schedules list --json"))
@json_option
@app_option
def list_schedules(as_json: bool, address: str) -> None:
    """List the schedules that the app declares."""

    async def use(app: Mainspring) -> None:
        found = await app.schedules.list()
        if as_json:
            write_lines(found)
        elif found:
            columns = ("name", "calendar", "catch-up", "message", "status", "next (UTC)")
            rows = [(i.name, i.calendar, i.catch_up, i.message, i.status, _clock(i.next)) for i in found]
            write_table(columns, rows)
        if not found:
            click.echo("This app declares no schedules.", err=True)

    with_app(address, use)


@schedules.command("next", epilog=examples("mainspring schedules next nightly -n 3"))
@click.argument("name")
@click.option("-n", "count", type=click.IntRange(1, MOST_NEXT), default=5, show_default=True, help="So many.")
@json_option
@app_option
def next_times(name: str, count: int, as_json: bool, address: str) -> None:
    """Show the next times of a schedule."""

    async def use(app: Mainspring) -> None:
        times = await app.schedules.next(name, count)
        if as_json:
            write_lines({"name": name, "time": time} for time in times)
        else:
            click.echo("\n".join(_clock(time) for time in times))

    with_app(address, use)


@schedules.command(epilog=examples("mainspring schedules pause nightly --actor ann"))
@click.argument("name")
@actor_option
@json_option
@app_option
def pause(name: str, actor: str | None, as_json: bool, address: str) -> None:
    """Let a schedule fire no more until it is resumed."""
    _act(address, name, as_json, lambda app: app.schedules.pause(name, actor=actor))


@schedules.command(epilog=examples("mainspring schedules resume nightly"))
@click.argument("name")
@actor_option
@json_option
@app_option
def resume(name: str, actor: str | None, as_json: bool, address: str) -> None:
    """Let a paused or removed schedule fire again, from its next time on."""
    _act(address, name, as_json, lambda app: app.schedules.resume(name, actor=actor))


@schedules.command(epilog=examples("mainspring schedules remove nightly"))
@click.argument("name")
@actor_option
@json_option
@app_option
def remove(name: str, actor: str | None, as_json: bool, address: str) -> None:
    """Let a schedule fire no more, until it is declared differently or resumed."""
    _act(address, name, as_json, lambda app: app.schedules.remove(name, actor=actor))


@schedules.command(epilog=examples("mainspring schedules run nightly"))
@click.argument("name")
@actor_option
@json_option
@app_option
def run(name: str, actor: str | None, as_json: bool, address: str) -> None:
    """Fire once, now; the calendar goes on as it was."""
    _act(address, name, as_json, lambda app: app.schedules.run_now(name, actor=actor))


def _act(address: str, name: str, as_json: bool, act: Callable[[Mainspring], Awaitable[None]]) -> None:
    async def use(app: Mainspring) -> None:
        await act(app)
        info = next(info for info in await app.schedules.list() if info.name == name)
        if as_json:
            write_json(info)
        else:
            click.echo(f"{name} is {info.status}" + (f", next at {_clock(info.next)} UTC" if info.next else ""))

    with_app(address, use)


def _clock(time: datetime | None) -> str:
    return "" if time is None else f"{time:%Y-%m-%d %H:%M:%S}"
