"""Read models: how far they are, and rebuilding them."""

from __future__ import annotations

import click

from mainspring.app import Mainspring
from mainspring.cli.failures import REFUSED
from mainspring.cli.loading import connected
from mainspring.cli.options import examples, json_option
from mainspring.cli.output import counted, visible, write_json, write_lines, write_table
from mainspring.views import Lag, ProjectionStatus

NEWER = "a worker waits for one of a newer release"


@click.group(epilog=examples("mainspring projections list", "mainspring projections rebuild open_orders"))
def projections() -> None:
    """List, show or rebuild read models."""


@projections.command("list", epilog=examples("mainspring projections list --json"))
@json_option
@connected
async def list_projections(app: Mainspring, as_json: bool) -> None:
    """List read models, with the lag of each."""
    found = await app.projections.list()
    if as_json:
        write_lines(found)
    elif found:
        write_table(
            ("projection", "version", "behind", "error"),
            [(each.name, _version(each), _behind(each), _error(each)) for each in found],
            ["red" if each.stopped else "" for each in found],
        )
    else:
        click.echo("There are no projections.", err=True)


@projections.command(epilog=examples("mainspring projections show open_orders"))
@click.argument("name")
@json_option
@connected
async def show(app: Mainspring, name: str, as_json: bool) -> int:
    """Show one read model: its generations, and what stopped it. Exit code 1 says that something did."""
    status = await app.projections(name).status()
    if as_json:
        write_json(status)
    else:
        _write(status)
    return REFUSED if status.stopped else 0


@projections.command(epilog=examples("mainspring projections rebuild open_orders"))
@click.argument("name")
@json_option
@connected
async def rebuild(app: Mainspring, name: str, as_json: bool) -> None:
    """Fill a read model from the beginning of the feed, beside the live one, and swap when it has caught up.

    A worker does it; `mainspring projections show NAME` tells how far it is.
    """
    generation = await app.projections(name).rebuild()
    if as_json:
        write_json({"name": name, "generation": generation})
    else:
        click.echo(f"{visible(name)}: generation {generation} will be built by a worker")


def _version(status: ProjectionStatus) -> str:
    return "" if status.live is None else str(status.live.version)


def _behind(status: ProjectionStatus) -> str:
    if status.live is None:
        return "no worker ran it yet"
    text = _lag(status.live)
    return text if status.building is None else f"{text}; building: {_lag(status.building)}"


def _lag(lag: Lag) -> str:
    return f"{counted(lag.events, 'event')}, {lag.seconds:,.0f} s" if lag.events else "nothing"


def _error(status: ProjectionStatus) -> str:
    error = next((lag.error for lag in (status.live, status.building) if lag is not None and lag.error), "")
    return f"{NEWER}: {status.left}" if not error and status.left is not None else error


def _write(status: ProjectionStatus) -> None:
    click.echo(visible(status.name) + ("" if status.declared else " (not in this app)"))
    for title, lag in (("live", status.live), ("building", status.building)):
        if lag is None:
            continue
        click.echo(f"  {title}: generation {lag.generation}, version {lag.version}, position {max(lag.position, 0):,}")
        click.echo(f"    behind: {_lag(lag)}")
        if lag.error is not None:
            click.echo(f"    stopped: {visible(lag.error)}")
    if status.left is not None:
        click.echo(f"  {NEWER}: {visible(status.left)}")
    if status.live is None:
        click.echo("  no worker ran it yet")
