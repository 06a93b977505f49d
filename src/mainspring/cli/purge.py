"""Purging: ended instances are removed, after a preview."""

from __future__ import annotations

import re
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import click
from msgspec.structs import asdict

from mainspring.app import Mainspring
from mainspring.app.internals import internals_of
from mainspring.cli.loading import connected, shown_url
from mainspring.cli.options import examples, json_option
from mainspring.cli.output import counted, write_json
from mainspring.views import PurgeReport

UNITS: Final = {"w": "weeks", "d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
MOST_DIGITS: Final = 6


class Age(click.ParamType[timedelta]):
    """A time span as people write it: 30d.

    >>> Age().convert("12h", None, None)
    datetime.timedelta(seconds=43200)
    """

    name = "age"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """Return the time span that a text says."""
        if isinstance(value, timedelta):
            return value
        written = re.fullmatch(rf"(\d{{1,{MOST_DIGITS}}})([{''.join(UNITS)}])", str(value))
        if written is None:
            self.fail(f"{value!r} is no time span. Write 30d, or 2w, 12h, 90m, 45s.", param, ctx)
        return timedelta(**{UNITS[written[2]]: int(written[1])})


@click.command(
    epilog=examples(
        "mainspring purge --older-than 30d --dry-run",
        "mainspring purge --older-than 30d --archive streams.jsonl",
        "mainspring purge --older-than 2w --workflow OrderFulfilment --yes",
    )
)
@click.option(
    "--older-than", type=Age(), required=True, metavar="AGE", help="Ended so long ago: 30d, 2w, 12h, 90m, 45s."
)
@click.option("--workflow", metavar="NAME", help="Only instances of this workflow.")
@click.option("--dry-run", is_flag=True, help="Only count what would go.")
@click.option(
    "--archive",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the streams to this file first, as JSON lines; what is in it stays.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@connected
async def purge(
    app: Mainspring,
    older_than: timedelta,
    workflow: str | None,
    dry_run: bool,
    archive: Path | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Remove the streams of instances that ended long ago.

    That is their events, snapshots, tasks, attributes, failed attempts and the ids of messages that they took. What is
    left of each is a tombstone: it cannot begin anew, and a message that comes for it later is kept as a dead letter.
    Instances that run, that are suspended, that have work left or dead letters stay.

    It works in small batches beside running workers. End it at any time: what it has begun, the next purge ends.
    """
    if not dry_run and not yes and sys.stdin.isatty():
        would = await app.purge(older_than=older_than, workflow=workflow, dry_run=True)
        where = "without an archive" if archive is None else f"after writing them to {archive}"
        click.confirm(f"Remove {_told(would)} from {shown_url(internals_of(app).url)}, {where}?", abort=True, err=True)
    line = Line()
    try:
        report = await app.purge(
            older_than=older_than, workflow=workflow, dry_run=dry_run, archive=archive, progress=line.show
        )
    finally:
        line.end()
    if as_json:
        write_json({"dry_run": dry_run, **asdict(report)})
    else:
        archived = f", {counted(report.archived, 'event')} archived" if archive is not None and not dry_run else ""
        click.echo(f"{'would purge' if dry_run else 'purged'} {_told(report)}{archived}")


class Line:
    """One line on a terminal that shows how far it has come; nothing elsewhere.

    >>> Line().show(PurgeReport())
    """

    def __init__(self) -> None:
        self._shown = False

    def show(self, report: PurgeReport) -> None:
        """Write the line again."""
        if sys.stderr.isatty():
            click.echo(f"\r{_told(report)}\x1b[K", nl=False, err=True)
            self._shown = True

    def end(self) -> None:
        """Leave the line."""
        if self._shown:
            click.echo("\r\x1b[K", nl=False, err=True)


def _told(report: PurgeReport) -> str:
    return f"{counted(report.instances, 'instance')} with {counted(report.events, 'event')}"
