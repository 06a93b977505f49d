"""What was seen, as a page."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from statistics import median
from typing import Final

from tests.steady.runs import Run
from tests.support.paths import ROOT

SLOWEST: Final = 30
TEXT_LINES: Final = 12


def unsteady(runs: Sequence[Run]) -> list[str]:
    """Return the tests that were not green every time: failed, missing, or skipped in some runs only."""
    names = sorted({name for run in runs for name in run.tests})
    return [name for name in names if "failed" in (seen := _outcomes(name, runs)) or len(set(seen)) > 1]


def steady(runs: Sequence[Run]) -> bool:
    """Return True if every run ended well and found the same."""
    return all(run.code == 0 for run in runs) and not unsteady(runs)


def page(runs: Sequence[Run]) -> str:
    """Return the report."""
    found = unsteady(runs)
    failed = sum(run.code != 0 for run in runs)
    verdict = "every test was green every time" if steady(runs) else f"{len(found)} tests were not green every time"
    lines = [f"# {len(runs)} runs of {_commit()}: {failed} failed; {verdict}", "", *_table(runs), ""]
    for name in found:
        lines += [
            f"## {name}",
            "",
            f"- outcomes: {', '.join(_outcomes(name, runs))}",
            f"- {_durations(name, runs)}",
            "",
        ]
        for run in runs:
            if (test := run.tests.get(name)) and test.text:
                lines += [f"Run {run.conditions.number}:", "", "```", *test.text.splitlines()[-TEXT_LINES:], "```", ""]
    return "\n".join([*lines, *_slowest(runs)]) + "\n"


def _table(runs: Sequence[Run]) -> list[str]:
    head = "| run | conditions | passed | failed | skipped | seconds | CPU seconds | exit code |"
    rows = [
        f"| {run.conditions.number} | {run.conditions} | {run.count('passed')} | {run.count('failed')} "
        f"| {run.count('skipped')} | {run.seconds:.0f} | {run.cpu_seconds:.0f} | {run.code} |"
        for run in runs
    ]
    return [head, "|---:|---|---:|---:|---:|---:|---:|---:|", *rows]


def _slowest(runs: Sequence[Run]) -> list[str]:
    """Return the tests that take longest, by their medians over the quiet runs; over all if none was quiet."""
    quiet = [run for run in runs if not run.conditions.loaded] or runs
    names = {name for run in quiet for name in run.tests}
    medians = {name: median(run.tests[name].seconds for run in quiet if name in run.tests) for name in names}
    most = sorted(medians, key=lambda name: (-medians[name], name))[:SLOWEST]
    return [f"## The {len(most)} slowest", "", *(f"- {medians[name]:.2f} s {name}" for name in most)]


def _outcomes(name: str, runs: Sequence[Run]) -> list[str]:
    return [run.tests[name].outcome if name in run.tests else "missing" for run in runs]


def _durations(name: str, runs: Sequence[Run]) -> str:
    took = sorted(run.tests[name].seconds for run in runs if name in run.tests)
    return f"seconds: shortest {took[0]:.2f}, median {median(took):.2f}, longest {took[-1]:.2f}"


def _commit() -> str:
    """Return the commit that is checked out, and whether anything differs from it."""
    asked = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    told = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603  whichever git there is
    return told.stdout.strip() or "an unknown commit"
