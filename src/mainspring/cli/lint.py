"""Lint: what is wrong with an app's workflows, read from their code. No database is opened."""

from __future__ import annotations

import os
from typing import Any

import click

from mainspring.analysis.lint.check import lint as lint_app
from mainspring.analysis.lint.rules import Report
from mainspring.analysis.reading.model import Place
from mainspring.app.internals import internals_of
from mainspring.cli.failures import REFUSED, MisuseError
from mainspring.cli.loading import load_app
from mainspring.cli.options import app_argument, app_option, examples, json_option
from mainspring.cli.output import counted, visible, write_json

UNKNOWN_WAY = "Which inputs lead there is not known."
COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}


@click.command(
    epilog=examples(
        "mainspring lint",
        "mainspring lint --app shop:app --workflow OrderFulfilment",
        "mainspring lint --strict  # notes count too",
        "mainspring lint --json | jq '.findings[] | [.file, .line, .rule]'",
    )
)
@click.option("-w", "--workflow", metavar="NAME", help="Only this workflow.")
@click.option("--strict", is_flag=True, help="Let notes count as well: exit code 1 for any finding.")
@json_option
@app_argument
@app_option
def lint(workflow: str | None, strict: bool, as_json: bool, address: str) -> int:
    """Look for mistakes in workflows: cases and timeouts that are missing.

    It reads the code of decide and evolve, and how the app is wired; it runs neither, and opens no database. Exit code
    1 says that there is an error or a warning. A comment on the line, or above it, says that a finding is intended:

    \b
      # mainspring: intended waits-without-timeout the answer is late, not lost
    """  # noqa: D301  click knows it by the character itself: these lines stay as they are
    app = load_app(address)
    if workflow is not None and workflow not in internals_of(app).registry.workflows:
        names = ", ".join(sorted(internals_of(app).registry.workflows)) or "none"
        raise MisuseError(f"{address} has no workflow {workflow}. It has {names}.")
    report = lint_app(app, workflow)
    failed = report.fails(strict=strict)
    if as_json:
        write_json(_document(report, ok=not failed))
    else:
        _write(report)
    return REFUSED if failed else 0


def _document(report: Report, *, ok: bool) -> dict[str, Any]:
    return {
        "ok": ok,
        "workflows": report.workflows,
        "findings": [each.document(each.place.file) for each in report.findings],
        "intended": [each.document(each.finding.place.file) for each in report.intended],
    }


def _write(report: Report) -> None:
    for finding in report.findings:
        head = click.style(f"{finding.level} {finding.code} {finding.name}", fg=COLOURS[finding.level])
        click.echo(f"{_shown(finding.place)}: {head}")
        click.echo(f"  {visible(finding.what)}.")
        if finding.witness is not None:
            inputs = ", ".join(finding.witness)
            click.echo(f"  Inputs that lead there: {visible(inputs)}." if inputs else f"  {UNKNOWN_WAY}")
        click.echo(f"  {visible(finding.fix)}")
    levels = [finding.level for finding in report.findings]
    counts = [counted(levels.count(level), level) for level in COLOURS if level in levels]
    if report.intended:
        counts.append(f"{len(report.intended)} intended")
    click.echo(f"{counted(len(report.workflows), 'workflow')} read: {', '.join(counts) or 'nothing found'}.")


def _shown(place: Place) -> str:
    """Return a place as an editor finds it: below the current directory, without that."""
    here = os.getcwd() + os.sep  # noqa: PTH109  a prefix of strings
    return visible(str(place).removeprefix(here))
