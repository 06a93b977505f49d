"""The execution log of an instance."""

from __future__ import annotations

import click

from mainspring.app import Mainspring
from mainspring.cli.loading import connected, find, ref_of
from mainspring.cli.options import examples, json_option
from mainspring.cli.output import visible, write_lines, write_table
from mainspring.core.story import duration
from mainspring.views import LogLine

COLUMNS = ("position", "time (UTC)", "what", "about", "state", "actor", "attempt", "took", "answered after", "waited")
STYLES = {"Faulted": "red", "Attempted": "yellow", "Failed": "red", "Suspended": "yellow", "Completed": "green"}


@click.command(epilog=examples("mainspring log o-1", "mainspring log OrderFulfilment/o-1 --json"))
@click.argument("identity", metavar="ID")
@json_option
@connected
async def log(app: Mainspring, identity: str, as_json: bool) -> None:
    """Show what happened to an instance, who did it, and how long it took.

    Started, Stepped, Faulted, Suspended, Resumed, Completed and so on, with the handler's attempt and duration for a
    result. Attempts that failed are Attempted, at the position of the command, with its type, the worker, the duration
    and the error.

    `took` is the duration of the handler's attempt; `answered after` the time since the command, timer, task, child or
    fan-out was recorded that a line answers; `waited` how long a timer was due when it was taken.
    """
    lines = await app.instance_at(str(ref_of(await find(app, identity)))).log()
    if as_json:
        write_lines(lines)
        return
    write_table(COLUMNS, [_cells(line) for line in lines], [STYLES.get(line.what, "") for line in lines])


def _cells(line: LogLine) -> tuple[str, ...]:
    return (
        str(line.position),
        "" if line.time is None else f"{line.time:%Y-%m-%d %H:%M:%S}.{line.time.microsecond // 1_000:03}",
        line.what,
        visible(line.about if line.command is None else f"{line.command}: {line.about}"),
        line.state or "",
        visible(line.actor or ""),
        "" if line.attempt is None else str(line.attempt),
        *("" if span is None else duration(span) for span in (line.duration, line.answered_after, line.waited)),
    )
