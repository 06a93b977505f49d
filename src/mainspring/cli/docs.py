"""A page of documentation for each workflow of an app, and an index."""

from __future__ import annotations

from pathlib import Path

import click

from mainspring.analysis.diagram.diagram import diagram_of
from mainspring.analysis.diagram.mining import machine_of, mined_of
from mainspring.analysis.documentation.pages import Format, index_of, page_of, write_pages
from mainspring.analysis.documentation.stories import stories_of
from mainspring.analysis.documentation.subject import Subject, subject_of
from mainspring.app import Mainspring
from mainspring.app.internals import internals_of
from mainspring.cli.failures import MisuseError, writing
from mainspring.cli.loading import load_app, with_app
from mainspring.cli.options import app_argument, app_option, examples, json_option
from mainspring.cli.output import counted, write_json
from mainspring.engine.registry import WorkflowEntry, is_internal


@click.command(
    epilog=examples(
        "mainspring docs -o docs/workflows",
        "mainspring docs -o site --format html --history",
        "mainspring docs -o site --format html --history --payloads",
    )
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, file_okay=False), required=True, metavar="DIR", help="Where to."
)
@click.option("--format", type=click.Choice(["md", "html"]), default="md", show_default=True, help="How it is written.")
@click.option("--history", is_flag=True, help="With what instances did: counts, times, and stories of some that ended.")
@click.option("--payloads", is_flag=True, help="Show in the stories the contents of messages, not only their types.")
@json_option
@app_argument
@app_option
def docs(output: Path, format: Format, history: bool, payloads: bool, as_json: bool, address: str) -> None:
    """Write documentation: a page for each workflow, and an index.

    Each page has the workflow's purpose, its diagram, states, transitions, messages with their fields, timeouts, tasks,
    handlers with their policies, children and schedules. Pages of workflows that are gone are removed.
    """
    if payloads and not history:
        raise MisuseError("--payloads is about the stories, which come with --history.")
    if history:
        subjects = with_app(address, lambda app: _with_history(app, payloads=payloads))
    else:
        app = load_app(address)
        subjects = [_from_code(app, entry) for entry in _entries(app)]
    if not subjects:
        raise MisuseError(f"{address} has no workflow to write about.")
    title, source = f"Workflows of {address}", "code and its history" if history else "code"
    told = f"Written by mainspring docs from the app's {source}."
    pages = [index_of(title, subjects, told), *(page_of(subject) for subject in subjects)]
    with writing(output):
        done = write_pages(output, pages, format)
    if as_json:
        write_json({"directory": str(output), "written": done.written, "removed": done.removed})
        return
    click.echo(f"{output}: {counted(len(subjects), 'workflow')}, begin with {done.written[0]}.")
    if done.removed:
        click.echo(f"Removed, for their workflows are gone: {', '.join(done.removed)}.")


def _entries(app: Mainspring) -> list[WorkflowEntry]:
    return [entry for name, entry in internals_of(app).registry.workflows.items() if not is_internal(name)]


def _from_code(app: Mainspring, entry: WorkflowEntry) -> Subject:
    machine = machine_of(entry)
    return subject_of(app, entry, machine, diagram_of(machine, None))


async def _with_history(app: Mainspring, *, payloads: bool) -> list[Subject]:
    subjects: list[Subject] = []
    for entry in _entries(app):
        machine = machine_of(entry)
        mined = await mined_of(internals_of(app).engine.store, entry.name, entry)
        drawn = diagram_of(machine, mined if mined.instances else None)
        stories = await stories_of(internals_of(app).engine.store, entry, payloads=payloads)
        subjects.append(subject_of(app, entry, machine, drawn, stories))
    return subjects
