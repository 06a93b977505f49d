"""Sources: where messages of other services come in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import click

from mainspring.app import Mainspring
from mainspring.app.internals import internals_of
from mainspring.app.services import Source
from mainspring.cli.failures import NotFoundError
from mainspring.cli.loading import with_app
from mainspring.cli.options import actor_option, app_option, examples, json_option
from mainspring.cli.output import visible, write_json, write_lines, write_table
from mainspring.errors import told

REASON = "by an operator"


@click.group(epilog=examples("mainspring sources list", "mainspring sources pause orders"))
def sources() -> None:
    """List, pause or resume where messages of other services come in."""


@sources.command("list", epilog=examples("mainspring sources list --json"))
@json_option
@app_option
def list_sources(as_json: bool, address: str) -> None:
    """List sources: their brokers, and how many messages wait there."""

    async def use(app: Mainspring) -> None:
        found = [await _document(source) for source in internals_of(app).services.sources.values()]
        if as_json:
            write_lines(found)
        elif found:
            columns = ("name", "broker", "address", "group", "status", "lag")
            write_table(columns, [tuple(visible(_shown(each, column)) for column in columns) for each in found])
        if not found:
            click.echo("This app has no sources.", err=True)

    with_app(address, use)


@sources.command(epilog=examples('mainspring sources pause orders --reason "the warehouse moves" --actor ann'))
@click.argument("name")
@click.option("--reason", default=REASON, show_default=True, help="Why.")
@actor_option
@json_option
@app_option
def pause(name: str, reason: str, actor: str | None, as_json: bool, address: str) -> None:
    """Let a source take nothing more, in all workers, until it is resumed. What waits stays at its broker."""
    _act(address, name, as_json, lambda source: source.pause(reason, actor=actor))


@sources.command(epilog=examples("mainspring sources resume orders"))
@click.argument("name")
@json_option
@app_option
def resume(name: str, as_json: bool, address: str) -> None:
    """Let a source that was paused go on."""
    _act(address, name, as_json, lambda source: source.resume())


def _act(address: str, name: str, as_json: bool, act: Callable[[Source], Awaitable[None]]) -> None:
    async def use(app: Mainspring) -> None:
        source = internals_of(app).services.sources.get(name)
        if source is None:
            known = ", ".join(internals_of(app).services.sources) or "none"
            raise NotFoundError(f"There is no source {name}. This app has: {known}.")
        await act(source)
        document = await _document(source)
        if as_json:
            write_json(document)
        else:
            click.echo(f"{name} is {document['status']}")

    with_app(address, use)


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
