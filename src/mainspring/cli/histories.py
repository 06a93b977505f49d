"""Golden histories: streams kept in a file, and held against today's code."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from mainspring.app import Mainspring
from mainspring.app.histories import Held, History, held, kept_histories, read_histories, write_histories
from mainspring.app.internals import internals_of
from mainspring.app.search import Search, filter_of
from mainspring.cli.failures import REFUSED, MisuseError, one_line, writing
from mainspring.cli.loading import connected, load_app
from mainspring.cli.options import app_argument, app_option, examples, json_option
from mainspring.cli.output import counted, visible, write_json
from mainspring.cli.searching import search_options
from mainspring.engine.registry import is_internal
from mainspring.errors import told
from mainspring.port.records import InstanceRow

FILE: Final = "histories.json"
PER_WORKFLOW: Final = 100
NAMED: Final = 10


@click.command(
    epilog=examples(
        "mainspring record",
        "mainspring record -o tests/histories/orders.json --workflow OrderFulfilment --limit 20",
        "mainspring record -o failed.json --status failed --since 7d",
    )
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=FILE,
    show_default=True,
    metavar="FILE",
    help="Where to.",
)
@click.option("--limit", type=click.IntRange(1), default=PER_WORKFLOW, show_default=True, help="Of each workflow.")
@search_options
@json_option
@app_argument
@connected
async def record(app: Mainspring, output: Path, limit: int, search: Search, as_json: bool) -> int:
    """Keep streams in a file, as golden histories.

    They are for `mainspring verify`. Of each workflow the instances that began first are kept. The file holds what
    messages say, unsealed: keep none of production that may not be in your repository. What was erased, keeps no
    history or cannot be folded is left out, and named.
    """
    kept: list[History] = []
    left_out: dict[str, str] = {}
    for name in _workflows(app, search):
        where = filter_of(**{**search, "workflow": name})
        for row in await internals_of(app).engine.store.instances(where, limit):
            await _keep(app, row, kept, left_out)
    with writing(output):
        write_histories(output, kept)
    _write_kept(output, kept, left_out, as_json=as_json)
    return 0


@click.command(
    epilog=examples(
        "mainspring verify histories.json",
        "mainspring verify tests/histories/*.json --app shop:app",
        "mainspring verify histories.json --json",
    )
)
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE..."
)
@json_option
@app_option
def verify(files: tuple[Path, ...], as_json: bool, address: str) -> int:
    """Hold golden histories against today's code.

    They are decided and folded once more. No database is asked, and nothing is carried out. Instances that differ in
    the same way are shown together, with the first difference of one of them. Exit code 1 says that something has
    changed.
    """
    app = load_app(address)
    results = [one for file in files for one in held(internals_of(app).registry, read_histories(file), file)]
    groups = grouped(results)
    if as_json:
        write_json(_document(results, groups))
    else:
        _write_groups(results, groups)
    return REFUSED if groups else 0


def _workflows(app: Mainspring, search: Search) -> list[str]:
    named = search.get("workflow")
    if named is None:
        return [name for name in internals_of(app).registry.workflows if not is_internal(name)]
    if named not in internals_of(app).registry.workflows:
        known = ", ".join(name for name in internals_of(app).registry.workflows if not is_internal(name))
        raise MisuseError(f"This app has no workflow {named}. It has {known or 'none'}.")
    return [named]


async def _keep(app: Mainspring, row: InstanceRow, kept: list[History], left_out: dict[str, str]) -> None:
    """Keep one instance, or know why it cannot be kept."""
    name = f"{row.workflow}/{row.id}"
    try:
        found = [
            history
            async for history in kept_histories(internals_of(app).engine.store, internals_of(app).registry, [row])
        ]
    except Exception as error:  # noqa: BLE001  an author's evolve may raise anything; the others are kept all the same
        left_out[name] = one_line(told(error))
        return
    if found:
        kept += found
    else:
        left_out[name] = "its history was erased, or is not kept"


def _write_kept(output: Path, kept: list[History], left_out: dict[str, str], *, as_json: bool) -> None:
    numbers: dict[str, int] = {}
    for history in kept:
        numbers[history.workflow] = numbers.get(history.workflow, 0) + 1
    if as_json:
        write_json({"file": str(output), "histories": len(kept), "workflows": numbers, "left_out": left_out})
        return
    of = f" ({', '.join(f'{number:,} of {name}' for name, number in numbers.items())})" if numbers else ""
    click.echo(f"{counted(len(kept), 'history', 'histories')} in {output}{of}")
    for name, reason in list(left_out.items())[:NAMED]:
        click.echo(f"left out: {visible(name)}: {visible(reason)}", err=True)
    if len(left_out) > NAMED:
        click.echo(f"left out: and {len(left_out) - NAMED:,} more", err=True)


# ---- what has changed


def grouped(results: list[Held]) -> list[list[Held]]:
    """Return what has changed, those that differ in the same way together, the most frequent first.

    >>> grouped([Held("Refund", "c-1", inputs=2)])
    []
    """
    groups: dict[tuple[str | None, ...], list[Held]] = {}
    for one in results:
        if one.changed is not None:
            key = (one.workflow, one.changed.kind, one.changed.message, one.changed.state)
            groups.setdefault(key, []).append(one)
    return sorted(groups.values(), key=lambda group: -len(group))


def _write_groups(results: list[Held], groups: list[list[Held]]) -> None:
    changed = sum(map(len, groups))
    inputs = sum(one.inputs for one in results)
    told = f"{counted(len(results), 'history', 'histories')}, {counted(inputs, 'input')}"
    click.secho(f"{told}: {'all as before' if not changed else f'{changed:,} changed'}", bold=bool(changed))
    for group in groups:
        click.echo()
        click.secho(f"{counted(len(group), 'instance')}: {_heading(group[0])}", fg="red")
        for line in _text(group[0]).splitlines():
            click.echo(f"  {visible(line)}")
        if len(group) > 1:
            others = ", ".join(one.instance for one in group[1 : NAMED + 1])
            more = f" and {len(group) - 1 - NAMED:,} more" if len(group) - 1 > NAMED else ""
            click.echo(f"  likewise {visible(others)}{more}")


def _heading(one: Held) -> str:
    changed = one.changed
    if changed is None or changed.message is None:
        return f"{one.workflow} {'' if changed is None else changed.kind}"
    what = {"another state": "leads to another state", "fails now": "fails now"}.get(
        changed.kind, "is decided otherwise"
    )
    return f"{one.workflow}: {changed.message} in {changed.state} {what}"


def _text(one: Held) -> str:
    return "" if one.changed is None else one.changed.text


def _document(results: list[Held], groups: list[list[Held]]) -> dict[str, Any]:
    return {
        "histories": len(results),
        "inputs": sum(one.inputs for one in results),
        "changed": [
            {
                "workflow": group[0].workflow,
                "kind": changed.kind,
                "message": changed.message,
                "state": changed.state,
                "instances": [one.instance for one in group],
                "example": changed.text,
            }
            for group in groups
            if (changed := group[0].changed) is not None
        ],
    }
