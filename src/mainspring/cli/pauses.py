"""Pauses: handlers and workflows of which nothing more is begun, in all workers."""

from __future__ import annotations

import click

from mainspring.app import Mainspring
from mainspring.app.internals import internals_of
from mainspring.cli.loading import connected
from mainspring.cli.options import actor_option, examples, json_option
from mainspring.cli.output import visible, write_lines, write_table
from mainspring.cli.sources import REASON
from mainspring.engine.operations.known_pauses import unread_pauses
from mainspring.engine.operations.pause_orders import WAY_OUT
from mainspring.views import PauseInfo

COLUMNS = ("what", "since (UTC)", "by", "waiting", "reason")


@click.group(epilog=examples("mainspring pauses list", "mainspring pauses pause ChargeCard"))
def pauses() -> None:
    """List, pause or resume handlers and workflows, for all workers.

    What is paused begins nothing more, in any process, and loses nothing. Commands of a handler wait without an
    attempt; messages and results of a workflow wait in their order, and timers that come due meanwhile fire when it is
    resumed, perhaps behind them. Time is not paused: deadlines run on. What runs already is finished. The workers know
    within two seconds.
    """


@pauses.command("list", epilog=examples("mainspring pauses list --json"))
@json_option
@connected
async def list_pauses(app: Mainspring, as_json: bool) -> None:
    """List what is paused: by whom, since when, why, and how many messages wait for it."""
    found = await app.pauses.list()
    if as_json:
        write_lines(found)
    elif found:
        write_table(COLUMNS, [_cells(info) for info in found])
    if (unread := await unread_pauses(internals_of(app).engine.store)) is not None:
        click.echo(f"{visible(unread)} {WAY_OUT}", err=True)
    elif not found:
        click.echo("Nothing is paused.", err=True)


@pauses.command(
    epilog=examples(
        'mainspring pauses pause ChargeCard --reason "the bank moves" --actor ann',
        "mainspring pauses pause workflow:Orders",
    )
)
@click.argument("what")
@click.option("--reason", default=REASON, show_default=True, help="Why.")
@actor_option
@json_option
@connected
async def pause(app: Mainspring, what: str, reason: str, actor: str | None, as_json: bool) -> None:
    """Let all workers begin nothing more of a handler or a workflow, until it is resumed.

    WHAT is the name of the message that the handler takes, or of the workflow; handler:NAME or workflow:NAME where both
    have it.
    """
    await app.pauses.pause(what, reason, actor=actor)
    await _write_paused(app, as_json)


@pauses.command(epilog=examples("mainspring pauses resume ChargeCard --actor ann"))
@click.argument("what")
@actor_option
@json_option
@connected
async def resume(app: Mainspring, what: str, actor: str | None, as_json: bool) -> None:
    """Resume a handler or a workflow that was paused, with what has waited."""
    if not await app.pauses.resume(what, actor=actor):
        click.echo(f"{visible(what)} was not paused.", err=True)
    await _write_paused(app, as_json)


async def _write_paused(app: Mainspring, as_json: bool) -> None:
    found = await app.pauses.list()
    if as_json:
        write_lines(found)
    else:
        click.echo(f"Paused now: {', '.join(visible(info.what) for info in found) or 'nothing'}")


def _cells(info: PauseInfo) -> tuple[str, ...]:
    waiting = f"{info.waiting:,}{' or more' if info.more else ''}"
    since = f"{info.since:%Y-%m-%d %H:%M:%S}"
    return visible(info.what), since, visible(info.actor or ""), waiting, visible(info.reason)
