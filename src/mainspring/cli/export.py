"""Streams to a file, for other tools."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final, get_args

import click
from msgspec import structs

from mainspring.analysis.export.export import LEFT_OUT_NAMED, Exported, Format
from mainspring.analysis.export.export import export as write_export
from mainspring.analysis.export.redaction import Redaction
from mainspring.app import Mainspring
from mainspring.app.internals import internals_of
from mainspring.app.search import Search, filter_of
from mainspring.cli.failures import REFUSED, MisuseError
from mainspring.cli.loading import with_app
from mainspring.cli.options import app_argument, app_option, examples, json_option
from mainspring.cli.output import counted, visible, write_json
from mainspring.cli.searching import search_options
from mainspring.port.records import InstanceFilter

SHOWN: Final = 10


@click.command(
    epilog=examples(
        "mainspring export -o streams.jsonl.gz --payloads --redact card,Register.email",
        "mainspring export -o orders.xes --format xes --workflow OrderFulfilment --began-since 30d",
        "mainspring export -o log.json --format ocel",
    )
)
@search_options
@click.option(
    "-o",
    "--output",
    "path",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    metavar="FILE",
    help="Where to; compressed if it ends in .gz. A file that is there is replaced when the new one is whole.",
)
@click.option(
    "--format",
    type=click.Choice(get_args(Format)),
    default="jsonl",
    show_default=True,
    help="JSON lines, which what-if reads; XES (IEEE 1849); or OCEL 2.0 (JSON).",
)
@click.option("--payloads", is_flag=True, help="With what the messages say; else only their types leave the database.")
@click.option("--redact", multiple=True, metavar="FIELDS", help="But not these: card,Register.email")
@json_option
@app_argument
@app_option
def export(
    search: Search, path: Path, format: Format, payloads: bool, redact: tuple[str, ...], as_json: bool, address: str
) -> int:
    """Write streams to a file: as JSON lines, or for process mining tools.

    Exit code 1 says that some streams could not be read and are left out, or cut short.
    """
    fields = [field.strip() for several in redact for field in several.split(",")]
    if fields and not payloads:
        raise MisuseError("There is nothing to redact: messages leave only with --payloads.")
    if not path.parent.is_dir():
        raise MisuseError(f"There is no directory {path.parent}.")
    redaction = Redaction(payloads=payloads, fields=fields)
    where = filter_of(**search)

    async def use(app: Mainspring) -> Exported:
        redaction.check(internals_of(app).registry)
        total = sum((await app.stats()).instances.values()) if where == InstanceFilter() else 0
        hidden = not sys.stderr.isatty()
        with click.progressbar(length=total, label="instances", file=sys.stderr, hidden=hidden) as bar:
            return await write_export(
                internals_of(app).engine.store,
                path,
                [where],
                format=format,
                redaction=redaction,
                on_progress=bar.update,
            )

    exported = with_app(address, use)
    if as_json:
        write_json({"file": str(path), "format": format, **structs.asdict(exported)})
    else:
        _write(path, exported)
    return REFUSED if exported.unread else 0


def _write(path: Path, exported: Exported) -> None:
    click.echo(f"{counted(exported.instances, 'instance')}, {counted(exported.events, 'event')} in {path}")
    if exported.unread:
        click.echo(f"{exported.unread:,} could not be read, or not to the end:", err=True)
    for instance, why in exported.left_out[:SHOWN]:
        click.echo(f"  {visible(instance)}: {visible(why)}", err=True)
    if exported.unread > SHOWN:
        click.echo(f"  … and {exported.unread - SHOWN:,} more; --json lists {LEFT_OUT_NAMED} at most", err=True)
