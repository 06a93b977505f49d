"""One operation on many instances."""

from __future__ import annotations

import sys
from typing import get_args

import click

from mainspring.app import Mainspring
from mainspring.app.bulk import PER_SECOND, REFUSALS_KEPT
from mainspring.app.search import Search
from mainspring.cli.failures import REFUSED, MisuseError
from mainspring.cli.loading import with_app
from mainspring.cli.options import actor_option, app_option, examples, json_option
from mainspring.cli.output import counted, visible, write_json
from mainspring.cli.searching import search_options
from mainspring.views import Action, BulkReport

SHOWN = 10


@click.command(
    epilog=examples(
        "mainspring bulk retry --workflow OrderFulfilment --status suspended --dry-run",
        "mainspring bulk retry --workflow OrderFulfilment --status suspended --per-second 20",
        "mainspring bulk migrate --workflow OrderFulfilment --to 2 --dry-run",
        "mainspring bulk cancel --workflow Trial --prefix test- --reason 'test data' --yes",
    )
)
@click.argument("action", type=click.Choice(get_args(Action)))
@search_options
@click.option("--reason", default="by an operator", show_default=True, help="Why; recorded in each stream.")
@click.option("--per-second", type=float, default=PER_SECOND, show_default=True, help="No faster than this.")
@click.option(
    "--to",
    type=click.IntRange(1),
    metavar="N",
    help="The position of the stream to reset to, or the version of the workflow to migrate to.",
)
@click.option("--dry-run", is_flag=True, help="Only count them; before migrate, also show which could not and why.")
@click.option("--yes", is_flag=True, help="Do not ask first.")
@actor_option
@json_option
@app_option
def bulk(
    action: Action,
    search: Search,
    reason: str,
    per_second: float,
    to: int | None,
    dry_run: bool,
    yes: bool,
    actor: str | None,
    as_json: bool,
    address: str,
) -> int:
    """Suspend, resume, retry, skip, cancel, terminate, reset or migrate many, found by a filter.

    Those found when it begins, and still when their turn comes, are operated on one after the other. One that refuses
    does not stop the rest; exit code 1 says that there was one.
    """

    async def use(app: Mainspring) -> BulkReport:
        if dry_run or not yes:
            found = await app.bulk(action, **search, per_second=per_second, to=to, dry_run=True)
            if dry_run or not found.matched:
                return found
            _ask(action, found.matched)
        progress = None if as_json else _progress
        return await app.bulk(
            action, **search, reason=reason, actor=actor, per_second=per_second, on_progress=progress, to=to
        )

    report = with_app(address, use)
    if as_json:
        write_json(report)
    else:
        _write(report)
    return REFUSED if report.refusals else 0


def _ask(action: str, matched: int) -> None:
    if not sys.stdin.isatty():
        raise MisuseError(f"This would {action} {counted(matched, 'instance')}. Say --yes, or --dry-run to look first.")
    click.confirm(f"{action.capitalize()} {counted(matched, 'instance')}?", abort=True, err=True)


def _progress(report: BulkReport) -> None:
    if sys.stderr.isatty():
        click.echo(f"\r  {report.done + report.refusals:,} of {report.matched:,}", nl=not report.left, err=True)


def _write(report: BulkReport) -> None:
    if report.dry_run:
        click.echo(f"{counted(report.matched, 'instance')} found; nothing was changed")
        if report.refusals:
            click.echo(f"{report.refusals:,} of them would refuse:")
    else:
        click.echo(f"{report.action}: {report.done:,} done, {report.refusals:,} refused")
    for refusal in report.refused[:SHOWN]:
        click.echo(f"  {visible(refusal.instance)}: {visible(refusal.why)}")
    if report.refusals > SHOWN:
        click.echo(f"  … and {report.refusals - SHOWN:,} more; --json lists {REFUSALS_KEPT:,} at most")
