"""Instances that seem stuck, with the likely reason."""

from __future__ import annotations

import sys
from typing import Final

import click
from msgspec.structs import replace

from mainspring.analysis.figures.tally import LONGEST_KEPT
from mainspring.analysis.stuck.held import not_going_on
from mainspring.analysis.stuck.lines import lines_of
from mainspring.analysis.stuck.stuck import SHOWN, Stuck, StuckFound, bounds_of, stuck_of
from mainspring.analysis.texts import lasting
from mainspring.app import Mainspring
from mainspring.app.internals import internals_of
from mainspring.app.search import filter_of
from mainspring.cli.failures import REFUSED
from mainspring.cli.loading import with_app
from mainspring.cli.options import app_argument, app_option, examples, json_option, processes_option
from mainspring.cli.output import counted, visible, write_json, write_table
from mainspring.cli.searching import condition
from mainspring.cli.sharing import sharing_of

COLUMNS: Final = ("instance", "state", "there for", "usually", "why it is here", "likely reason")


@click.command(
    epilog=examples(
        "mainspring stuck",
        "mainspring stuck --workflow OrderFulfilment --limit 10",
        "mainspring stuck --json | jq '.shown[] | [.instance, .reason.cause]'",
    )
)
@click.option("--workflow", metavar="NAME", help="Only this workflow.")
@click.option("--prefix", metavar="TEXT", help="Only instances whose id begins so.")
@click.option("--attribute", multiple=True, metavar="NAME=VALUE", help="Only instances with this attribute, as in ls.")
@click.option(
    "--limit", type=click.IntRange(1, LONGEST_KEPT), default=SHOWN, show_default=True, help="At most so many."
)
@processes_option
@json_option
@app_argument
@app_option
def stuck(
    workflow: str | None,
    prefix: str | None,
    attribute: tuple[str, ...],
    limit: int,
    processes: int | None,
    as_json: bool,
    address: str,
) -> int:
    """List instances that seem stuck, and why.

    Those that are suspended first; then those that run longer than their workflow's `expected_within`, and those that
    are in their state much longer than others were (compared with all finished stays there, and for a minute at least):
    among them, those of which something is wrong before those that only wait. Below them stand the lines at which the
    flows among them wait, and what is held back now, whosever it is. Exit code 1 says that there is something.
    """
    where = filter_of(workflow=workflow, id_prefix=prefix, attributes=[condition(text) for text in attribute])

    async def use(app: Mainspring) -> StuckFound:
        total = sum((await app.stats()).instances.values())
        with click.progressbar(length=total, label="instances", file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:
            sharing = sharing_of(app, address, processes)
            known = internals_of(app).registry
            found = await stuck_of(
                internals_of(app).engine.store, where, bounds_of(known), limit, sharing, bar.update, known
            )
        store = internals_of(app).engine.store
        lines = await lines_of(store, known, found.shown)
        return replace(found, held_back=tuple(await not_going_on(store)), lines=lines)

    found = with_app(address, use)
    if as_json:
        write_json(found)
    else:
        _write(found)
    return REFUSED if found.found or found.held_back else 0


def _write(found: StuckFound) -> None:
    if found.shown:
        write_table(COLUMNS, [_cells(stuck) for stuck in found.shown])
        click.echo()
    running = counted(found.looked_at, "instance that has not ended", "instances that have not ended")
    if not found.found:
        click.echo(f"None of {running} seems stuck." if found.looked_at else "Nothing runs.")
    else:
        click.echo(f"{found.found:,} of {running} {'seems' if found.found == 1 else 'seem'} stuck.")
    if found.found > len(found.shown):
        more = ": --limit shows more" if len(found.shown) < LONGEST_KEPT else ""
        click.echo(f"Shown are the worst {len(found.shown):,}{more}.")
    for line in found.lines:
        waiting = counted(len(line.instances), "flow waits", "flows wait")
        click.echo(f"{waiting} at {visible(line.line)}: {visible(line.text)}")
    for why in found.held_back:
        click.secho(visible(why), fg="red")


def _cells(stuck: Stuck) -> tuple[str, ...]:
    usual = "" if stuck.usual_seconds is None else f"{lasting(stuck.usual_seconds)} (of {stuck.stays:,})"
    if stuck.limit_seconds is None:
        why = "is suspended"
    elif stuck.by == "bound":
        why = f"runs for {lasting(stuck.running_seconds)}, expected within {lasting(stuck.limit_seconds)}"
    else:
        why = f"unusual there after {lasting(stuck.limit_seconds)}"
    return (stuck.instance, stuck.state, lasting(stuck.state_seconds), usual, why, stuck.reason.text)
