"""What if today's code had run all along? A check before a deployment."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import click
from msgspec import structs

from mainspring.analysis.what_if.check import check, check_file, matches
from mainspring.analysis.what_if.contrast import named
from mainspring.analysis.what_if.old_code import OldCode, old_code
from mainspring.analysis.what_if.report import EXAMPLES, Difference, Report, Unchecked
from mainspring.app import Mainspring
from mainspring.app.search import Search, filter_of
from mainspring.cli.failures import REFUSED, MisuseError
from mainspring.cli.loading import load_app, with_app
from mainspring.cli.options import app_argument, app_option, examples, json_option, processes_option
from mainspring.cli.output import counted, visible, write_json
from mainspring.cli.searching import search_options
from mainspring.cli.sharing import sharing_of
from mainspring.errors import OperationError
from mainspring.port.records import ENDED, InstanceFilter, Status

SAMPLE: Final = click.IntRange(1, 100_000)
STORIES: Final = click.IntRange(0, 20)
IN_FLIGHT: Final[tuple[Status, ...]] = ("running", "suspended", "compensating")


@click.command(
    "what-if",
    epilog=examples(
        "mainspring what-if",
        "mainspring what-if --in-flight --app shop:app",
        "mainspring what-if --workflow OrderFulfilment --since 7d --sample 1000",
        "mainspring what-if --against v1.4  # every state, held against the one that this revision comes to",
        "mainspring what-if --from streams.jsonl.gz --json | jq .differences[].what",
    ),
)
@search_options
@click.option("--in-flight", is_flag=True, help="Only instances that have not ended: running, suspended, compensating.")
@click.option("--sample", type=SAMPLE, metavar="N", help="At most N instances of each workflow, by chance.")
@processes_option
@click.option(
    "--from",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Check what `mainspring export --payloads` or a purge's archive has written, and no database.",
)
@click.option(
    "--against",
    "old",
    metavar="OLD",
    help="Fold with this code too, a folder or a revision of git, and compare every state.",
)
@click.option("--stories", type=STORIES, default=EXAMPLES, show_default=True, help="So many of each difference.")
@json_option
@app_argument
@app_option
def what_if(
    search: Search,
    in_flight: bool,
    sample: int | None,
    processes: int | None,
    file: Path | None,
    old: str | None,
    stories: int,
    as_json: bool,
    address: str,
) -> int:
    """Show what would go otherwise if today's code had run all along.

    Every recorded input is decided once more in the state in which it was taken, and every event is folded; nothing is
    carried out and nothing is written. Of most states a stream has the name alone: --against compares the whole of
    each with the one that older code comes to. Exit code 1 says that something differs.
    """
    begun = time.perf_counter()
    wheres = _filters(search, in_flight=in_flight)
    if file is not None and (sample or wheres[0].attributes):
        raise MisuseError("A file can be searched neither by --attribute nor for a --sample.")
    with _old_code(old, address) as against:
        if file is None:
            report = _check_store(address, wheres, sample, processes, stories, against)
        else:
            report = _check_file(address, file, wheres, stories, against)
    seconds = time.perf_counter() - begun
    if as_json:
        rate = {"seconds": round(seconds, 3), "events_per_second": round(report.events / seconds)}
        write_json({"safe": report.safe, **structs.asdict(report), **rate})
    else:
        _write(report, seconds)
    return 0 if report.safe else REFUSED


def _filters(search: Search, *, in_flight: bool) -> list[InstanceFilter]:
    where = filter_of(**search)
    if not in_flight:
        return [where]
    if where.status in ENDED:
        raise MisuseError(f"--in-flight and --status {where.status} leave nothing.")
    return [structs.replace(where, status=status) for status in IN_FLIGHT if where.status in (None, status)]


@contextmanager
def _old_code(old: str | None, address: str) -> Generator[OldCode | None]:
    """Find the code to compare with; what cannot be found or loaded is a mistake in the command, and no difference."""
    if old is None:
        yield None
        return
    with ExitStack() as stack:
        try:
            found = stack.enter_context(old_code(old, address))
        except OperationError as error:
            raise MisuseError(str(error)) from None
        yield found


def _check_store(
    address: str,
    wheres: list[InstanceFilter],
    sample: int | None,
    processes: int | None,
    stories: int,
    against: OldCode | None,
) -> Report:
    async def use(app: Mainspring) -> Report:
        total = sum((await app.stats()).instances.values()) if wheres == [InstanceFilter()] and not sample else 0
        with _bar(total) as bar:
            return await check(
                app,
                wheres,
                sample=sample,
                examples=stories,
                sharing=sharing_of(app, address, processes),
                against=against,
                on_progress=lambda part: bar.update(part.instances),
            )

    return with_app(address, use)


def _check_file(
    address: str, file: Path, wheres: list[InstanceFilter], stories: int, against: OldCode | None
) -> Report:
    if not file.is_file():
        raise MisuseError(f"There is no file {file}.")
    with _bar(0, "lines") as bar:
        return check_file(
            load_app(address),
            file,
            lambda row: any(matches(where, row) for where in wheres),
            examples=stories,
            against=against,
            on_progress=bar.update,
        )


def _bar(total: int, label: str = "instances") -> AbstractContextManager[Any]:
    return click.progressbar(length=total, label=label, file=sys.stderr, hidden=not sys.stderr.isatty())


# ---- for people


def _write(report: Report, seconds: float) -> None:
    beside = "" if report.against is None else f", beside that of {visible(report.against)}"
    click.secho(f"{_counts(report)}, with the code of today{beside}", bold=True)
    click.echo(_compared(report))
    for new in report.new_fields:
        click.echo(f"new fields, compared with nothing: {visible(named(new.fields))} of {new.state} in {new.workflow}")
    for difference in report.differences:
        click.echo()
        _write_difference(difference)
    if report.unchecked:
        click.echo()
        click.echo("not checked, or not to the end:")
        for unchecked in report.unchecked:
            click.echo(f"  {_unchecked(unchecked)}")
    click.echo()
    click.secho(verdict(report), fg="green" if report.safe else "red", bold=True)
    click.echo(f"{report.events:,} events in {seconds:.1f} s: {report.events / seconds:,.0f} a second", err=True)


def _counts(report: Report) -> str:
    instances = f"{counted(report.instances, 'instance')}, {report.in_flight:,} of them in flight"
    return f"{instances}; {counted(report.events, 'event')}"


def _compared(report: Report) -> str:
    compared = report.compared
    parts = [
        f"compared: the decisions of {counted(compared.decisions, 'step')}",
        f"the names of {counted(compared.state_names, 'state')}",
        f"whole states in {compared.states:,} of {compared.states_passed:,}",
    ]
    if report.against is None and compared.states < compared.states_passed:
        parts[-1] += " (--against OLD compares all)"
    if compared.before_migration:
        parts.append(f"and not {counted(compared.before_migration, 'step')} before a migration")
    if compared.unreadable_snapshots:
        parts.append(f"and not {counted(compared.unreadable_snapshots, 'snapshot')} of states of another shape")
    return ", ".join(parts)


def _write_difference(difference: Difference) -> None:
    version = f" (workflow version {difference.workflow_version})" if difference.workflow_version != 1 else ""
    click.secho(f"{difference.workflow}{version}: {visible(difference.what)}", fg="red")
    flight = f"{difference.in_flight:,} of them in flight"
    click.echo(f"  {counted(difference.instances, 'instance')}, {flight}; {counted(difference.steps, 'step')}")
    for example in difference.examples:
        click.echo(f"  {visible(example.instance)} ({example.status}), position {example.position}:")
        for line in example.lines:
            click.echo(f"    {visible(line)}")


def _unchecked(unchecked: Unchecked) -> str:
    instances = f"{counted(unchecked.instances, 'instance')}, {unchecked.in_flight:,} of them in flight"
    return visible(f"{instances}: {unchecked.why}, as {unchecked.example}")


def verdict(report: Report) -> str:
    """Return the answer to the question that the command is asked before a deployment.

    >>> verdict(Report(instances=2, in_flight=2))
    'No difference was found in what was compared, for 2 instances in flight.'
    >>> verdict(Report(instances=5, in_flight=2, differing=3))
    'Of 2 instances in flight none differs in what was compared; 3 ended ones do.'
    """
    flight, unchecked = report.in_flight, report.unchecked_in_flight
    but = f" {unchecked:,} in flight could not be checked, or not to the end." if unchecked else ""
    if report.differing_in_flight:
        differ = f"{report.differing_in_flight:,} of {counted(flight, 'instance')} in flight"
        ended = report.differing - report.differing_in_flight
        return f"Not safe as it is: {differ} and {ended:,} ended ones differ.{but}"
    if report.differing and not flight:
        return f"No instance is in flight; {report.differing:,} ended ones differ.{but}"
    if report.differing:
        none = f"Of {counted(flight, 'instance')} in flight none differs in what was compared"
        return f"{none}; {report.differing:,} ended ones do.{but}"
    if unchecked:
        return f"No difference was found in what could be checked.{but}"
    if not flight:
        return f"No difference was found in what was compared; no instance is in flight.{but}"
    return f"No difference was found in what was compared, for {counted(flight, 'instance')} in flight."
