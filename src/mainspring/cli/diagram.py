"""The state diagram of a workflow, from its code, from its history, or from both."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Final, Literal, TypeAlias

import click
from msgspec import json

from mainspring.analysis.diagram.diagram import Diagram, diagram_of
from mainspring.analysis.diagram.dot import to_dot
from mainspring.analysis.diagram.mermaid import to_mermaid
from mainspring.analysis.diagram.mining import machine_of, mined_of
from mainspring.analysis.diagram.svg import to_svg
from mainspring.analysis.files import write_whole
from mainspring.app import Mainspring
from mainspring.app.internals import internals_of
from mainspring.app.search import filter_of
from mainspring.cli.failures import MisuseError, NotFoundError, writing
from mainspring.cli.loading import load_app, with_app
from mainspring.cli.options import app_option, examples, json_option
from mainspring.cli.output import counted
from mainspring.cli.searching import time_of
from mainspring.engine.registry import WorkflowEntry, is_internal

Source: TypeAlias = Literal["code", "history", "both"]
Format: TypeAlias = Literal["mermaid", "svg", "dot"]

_WRITERS: Final = {"mermaid": to_mermaid, "svg": to_svg, "dot": to_dot}
_ENDINGS: Final[dict[str, Format]] = {
    ".svg": "svg",
    ".dot": "dot",
    ".gv": "dot",
    ".mmd": "mermaid",
    ".mermaid": "mermaid",
}


@click.command(
    epilog=examples(
        "mainspring diagram OrderFulfilment",
        "mainspring diagram OrderFulfilment --from both -o orders.svg",
        "mainspring diagram OrderFulfilment --from history --since 7d --sample 1000",
        "mainspring diagram --format dot | dot -Tpdf -o orders.pdf",
    )
)
@click.argument("workflow", required=False)
@click.option(
    "--from",
    "source",
    type=click.Choice(["code", "history", "both"]),
    default="code",
    show_default=True,
    help="What is drawn: what the code can do, what instances did, or both together.",
)
@click.option("--format", type=click.Choice(["mermaid", "svg", "dot"]), help="By the file's ending, else mermaid.")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write a file.")
@click.option(
    "--since", metavar="TIME", help="History: only instances that moved since 2026-01-31T09:00Z, or 7d (ago)."
)
@click.option("--until", metavar="TIME", help="History: only instances that last moved before.")
@click.option("--sample", type=click.IntRange(1), metavar="N", help="History: only N instances, chosen by their ids.")
@click.option("--ignored", is_flag=True, help="Draw also what changes nothing and decides nothing.")
@json_option
@app_option
def diagram(
    workflow: str | None,
    source: Source,
    format: Format | None,
    output: Path | None,
    since: str | None,
    until: str | None,
    sample: int | None,
    ignored: bool,
    as_json: bool,
    address: str,
) -> None:
    """Draw the state diagram of a workflow, from its code, its history, or both.

    WORKFLOW may be left out where the app has only one. Drawn together, it shows what is in the code and happened, what
    never happened, and what only older code did; with counts, and the median time in each state.
    """
    between = (time_of(since), time_of(until))
    if source == "code" and (since or until or sample):
        raise MisuseError("--since, --until and --sample choose among instances: use --from history or --from both.")
    if source == "code":
        app = load_app(address)
        drawn = diagram_of(machine_of(entry_of(app, workflow)), None, ignored=ignored)
    else:
        drawn = with_app(address, lambda app: _drawn(app, workflow, source, between, sample, ignored=ignored))
    _write(drawn, format, output, as_json=as_json)


async def _drawn(
    app: Mainspring,
    workflow: str | None,
    source: Source,
    between: tuple[datetime | None, datetime | None],
    sample: int | None,
    *,
    ignored: bool,
) -> Diagram:
    # What only older code knew can still be drawn from what it left behind.
    unknown = workflow is not None and source == "history" and workflow not in internals_of(app).registry.workflows
    entry = None if unknown else entry_of(app, workflow)
    name = entry.name if entry else workflow or ""
    where = filter_of(workflow=name, updated_from=between[0], updated_to=between[1])
    mined = await mined_of(internals_of(app).engine.store, name, entry, where, sample)
    if not mined.instances and source == "history":
        raise NotFoundError(f"There is no instance of {mined.workflow} to draw. Draw its code with --from code.")
    return diagram_of(machine_of(entry) if entry and source == "both" else None, mined, ignored=ignored)


def entry_of(app: Mainspring, workflow: str | None) -> WorkflowEntry:
    """Return the workflow of a name, or the only one there is."""
    known = {name: entry for name, entry in internals_of(app).registry.workflows.items() if not is_internal(name)}
    if workflow is None and len(known) == 1:
        return next(iter(known.values()))
    if workflow in known:
        return known[workflow]
    have = f"This app has {', '.join(known)}." if known else "This app has none."
    raise MisuseError(f"Which workflow? {have}" if workflow is None else f"There is no workflow {workflow}. {have}")


def _write(drawn: Diagram, format: Format | None, output: Path | None, *, as_json: bool) -> None:
    chosen = format or (_ENDINGS.get(output.suffix.lower()) if output else None) or "mermaid"
    text = f"{json.encode(drawn).decode()}\n" if as_json else _WRITERS[chosen](drawn)
    if output is None:
        click.echo(text, nl=False)
        return
    with writing(output):
        write_whole(output, text)
    states = sum(node.kind == "state" for node in drawn.nodes)
    click.echo(
        f"{output}: {counted(states, 'state')}, {counted(sum(len(a.steps) for a in drawn.arrows), 'step')}", err=True
    )
