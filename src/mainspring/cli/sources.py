"""Sources: where messages of other services come in."""

from __future__ import annotations

from typing import Any

import click

from mainspring.app import Mainspring
from mainspring.app.internals import internals_of
from mainspring.app.services import Source
from mainspring.cli.failures import NotFoundError
from mainspring.cli.loading import connected
from mainspring.cli.options import actor_option, examples, json_option
from mainspring.cli.output import visible, write_json, write_lines, write_table
from mainspring.errors import told

REASON = "by an operator"


@click.group(epilog=examples("mainspring sources list", "mainspring sources pause orders"))
def sources() -> None:
    """List, pause or resume where messages of other services come in."""


@sources.command("list", epilog=examples("mainspring sources list --json"))
@json_option
@connected
async def list_sources(app: Mainspring, as_json: bool) -> None:
    """List sources: their brokers, and how many messages wait there."""
    found = [await _document(source) for source in internals_of(app).services.sources.values()]
    if as_json:
        write_lines(found)
    elif found:
        columns = ("name", "broker", "address", "group", "status", "lag")
        write_table(columns, [tuple(visible(_shown(each, column)) for column in columns) for each in found])
    if not found:
        click.echo("This app has no sources.", err=True)


@sources.command(epilog=examples('mainspring sources pause orders --reason "the warehouse moves" --actor ann'))
@click.argument("name")
@click.option("--reason", default=REASON, show_default=True, help="Why.")
@actor_option
@json_option
@connected
async def pause(app: Mainspring, name: str, reason: str, actor: str | None, as_json: bool) -> None:
    """Let a source take nothing more, in all workers, until it is resumed. What waits stays at its broker."""
    source = _source(app, name)
    await source.pause(reason, actor=actor)
    await _write_status(source, as_json)


@sources.command(epilog=examples("mainspring sources resume orders"))
@click.argument("name")
@json_option
@connected
async def resume(app: Mainspring, name: str, as_json: bool) -> None:
    """Resume a source that was paused."""
    source = _source(app, name)
    await source.resume()
    await _write_status(source, as_json)


def _source(app: Mainspring, name: str) -> Source:
    source = internals_of(app).services.sources.get(name)
    if source is None:
        known = ", ".join(internals_of(app).services.sources) or "none"
        raise NotFoundError(f"There is no source {name}. This app has: {known}.")
    return source


async def _write_status(source: Source, as_json: bool) -> None:
    document = await _document(source)
    if as_json:
        write_json(document)
    else:
        click.echo(f"{document['name']} is {document['status']}")


async def _document(source: Source) -> dict[str, Any]:
    figures, paused = source.figures, await source.paused()
    lag, error = None, None
    try:
        lag = await source.lag()
    except Exception as failure:  # noqa: BLE001  a broker that is down is shown as such, beside the others
        error = told(failure)
    return {
        "name": figures.name,
        "broker": figures.broker,
        "address": figures.address,
        "group": figures.group,
        "status": "active" if paused is None else "paused",
        "paused": paused,
        "lag": lag,
        "error": error,
    }


def _shown(document: dict[str, Any], column: str) -> str:
    if column == "lag" and document["lag"] is None:
        return document["error"] or "unknown"
    return str(document[column])
