"""Lists: instances and timers."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from typing import Final

import click

from mainspring.app import Mainspring
from mainspring.app.app import PAGE
from mainspring.app.given import LARGEST
from mainspring.app.internals import internals_of
from mainspring.app.search import Search, filter_of, found
from mainspring.app.viewing import instance_view, output_view
from mainspring.cli.loading import connected, find, ref_of, shown_url, with_app
from mainspring.cli.options import app_option, examples, json_option
from mainspring.cli.output import STATUS_STYLES, clock, distance, text_of, write_lines, write_table
from mainspring.cli.searching import search_options
from mainspring.engine.recording.stored_values import moment
from mainspring.port.records import InstanceFilter
from mainspring.views import InstanceInfo

LIMIT: Final = click.IntRange(1, 100_000)
PLACE: Final = click.IntRange(0, LARGEST)
EXPORT_PAGE: Final = 1_000


@click.command(
    epilog=examples(
        "mainspring ls --status suspended",
        "mainspring ls --workflow OrderFulfilment --prefix o- --limit 20",
        "mainspring ls --attribute customer=c-7 --attribute 'amount>=1000' --since 2h",
        "mainspring ls --status suspended --error refused",
        "mainspring ls --all --json > instances.jsonl",
    )
)
@search_options
@click.option("--limit", type=LIMIT, default=PAGE, show_default=True, help="At most so many.")
@click.option("--after", type=PLACE, default=0, metavar="KEY", help="Go on behind the last one seen.")
@click.option("--all", "everything", is_flag=True, help="All of them, page by page.")
@json_option
@app_option
def ls(search: Search, limit: int, after: int, everything: bool, as_json: bool, address: str) -> None:
    """List instances, in the order in which they began.

    With --json each line is a document. `key` of the last line is what --after takes.
    """
    where = filter_of(**search)

    async def use(app: Mainspring) -> None:
        if everything:
            await _write_all(app, where, after, as_json)
            return
        rows = await _page(app, where, limit, after)
        _write_page(rows, as_json, heading=True)
        if not rows:
            click.echo(f"No such instances in {shown_url(internals_of(app).url)}.", err=True)
        elif len(rows) == limit and not as_json:
            click.echo(f"There may be more: --after {rows[-1].key}", err=True)

    with_app(address, use)


async def _write_all(app: Mainspring, where: InstanceFilter, after: int, as_json: bool) -> None:
    total = sum((await app.stats()).instances.values()) if where == InstanceFilter() else None
    # The bar would tear the table apart on the terminal that shows both.
    hidden = sys.stdout.isatty() or not sys.stderr.isatty()
    with click.progressbar(length=total or 0, label="instances", file=sys.stderr, hidden=hidden) as bar:
        heading = True
        async for rows in _pages(app, where, after):
            _write_page(rows, as_json, heading=heading)
            heading = False
            bar.update(len(rows))


async def _page(app: Mainspring, where: InstanceFilter, limit: int, after: int) -> list[InstanceInfo]:
    return [instance_view(row) for row in await found(internals_of(app).engine.store, where, limit, after)]


async def _pages(app: Mainspring, where: InstanceFilter, after: int) -> AsyncIterator[list[InstanceInfo]]:
    while rows := await _page(app, where, EXPORT_PAGE, after):
        yield rows
        after = rows[-1].key


def _write_page(rows: list[InstanceInfo], as_json: bool, *, heading: bool) -> None:
    if as_json:
        write_lines(rows)
    elif rows:
        write_table(
            ("instance", "status", "state", "workflow version", "position", "updated (UTC)", "error"),
            [
                (
                    row.instance,
                    row.status,
                    row.state or "",
                    str(row.workflow_version),
                    str(row.position),
                    clock(row.updated),
                    row.error or "",
                )
                for row in rows
            ],
            [STATUS_STYLES.get(row.status, "") for row in rows],
            heading=heading,
        )


@click.command(epilog=examples("mainspring timers", "mainspring timers OrderFulfilment/o-1 --json"))
@click.argument("identity", metavar="[ID]", required=False)
@click.option("--limit", type=LIMIT, default=PAGE, show_default=True, help="At most so many.")
@json_option
@connected
async def timers(app: Mainspring, identity: str | None, limit: int, as_json: bool) -> None:
    """List timers, the next one first.

    All of them, or those of the instance ID. A timer that is overdue waits for a worker.
    """
    store = internals_of(app).engine.store
    ref = None if identity is None else ref_of(await find(app, identity))
    timers = [output_view(claim) for claim in await store.outputs(ref, timers=True, limit=limit)]
    if as_json:
        write_lines(timers)
    elif timers:
        now = moment(store.now_us())
        write_table(
            ("instance", "due (UTC)", "that is", "key", "message"),
            [
                (
                    timer.instance,
                    clock(timer.due),
                    distance(timer.due, now),
                    timer.key or "",
                    f"{timer.type} {text_of(timer.message)}",
                )
                for timer in timers
            ],
            ["red" if timer.due < now else "" for timer in timers],
        )
    else:
        click.echo(f"No timers wait in {shown_url(internals_of(app).url)}.", err=True)
