"""Hand-chosen mistakes: each is made in a copy of the sources, and the tests that ought to notice it are run.

    python -m tests.mutants chosen [--only NAME] [--list] [--jobs N] [--seconds N]

A mistake counts as killed when a test fails with it that passes without it: that one is run once more on the sources as
they are, and once more with the mistake, so that a test which failed by chance kills nothing.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from tests.mutants.chosen_edges import APP, BROKERS, CLI, WEB
from tests.mutants.chosen_engine import ENGINE
from tests.mutants.chosen_stores import STORES
from tests.mutants.mistake import Mistake
from tests.support.paths import ROOT

CHOSEN: Final = (*ENGINE, *STORES, *APP, *WEB, *BROKERS, *CLI)
SOURCES: Final = ROOT / "src"
JOBS: Final = 2
LONGEST_SECONDS: Final = 300.0
NEEDED: Final = 0.95

Verdict: TypeAlias = Literal["killed", "hung", "survived", "stale", "broken"]

_FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)
# pytest's exit codes.
_PASSED, _SOME_FAILED = 0, 1
_MISTAKEN: Final[frozenset[Verdict]] = frozenset({"survived", "stale", "broken"})


class Finding(NamedTuple):
    """What became of a mistake: the test that noticed it, or why nobody knows."""

    mistake: Mistake
    verdict: Verdict
    told: str
    seconds: float


def is_stale(mistake: Mistake, sources: Path = SOURCES) -> bool:
    """Tell whether the code that a mistake changes is not there any more, or more than once."""
    file = sources / "mainspring" / mistake.file
    return not file.is_file() or file.read_text(encoding="utf-8").count(mistake.original) != 1


def judged(mistake: Mistake, seconds: float = LONGEST_SECONDS, root: Path = ROOT) -> Finding:
    """Make one mistake, run its tests, and tell what became of it."""
    sources = root / "src"
    begun = time.monotonic()

    def found(verdict: Verdict, told: str) -> Finding:
        return Finding(mistake, verdict, told, time.monotonic() - begun)

    if is_stale(mistake, sources):
        return found("stale", f"{mistake.file} does not hold its code exactly once")
    with tempfile.TemporaryDirectory(prefix="mistake-") as folder:
        _make(mistake, sources, Path(folder))
        chosen = [*mistake.tests, *(["-k", mistake.keyword] if mistake.keyword else [])]
        code, output = _run(chosen, Path(folder), seconds, root)
        if code is None:
            return found("hung", f"no end within {seconds:g} s")
        if code == _PASSED:
            return found("survived", "all of its tests pass")
        names = _FAILED.findall(output)
        if code != _SOME_FAILED or not names:
            return found("broken", " ".join(output.split()[-40:]))
        if _run(names[:1], sources, seconds, root)[0] != _PASSED:
            return found("broken", f"{names[0]} fails without it too")
        if _run(names[:1], Path(folder), seconds, root)[0] == _PASSED:
            return found("broken", f"{names[0]} failed once, and not again")
    return found("killed", names[0])


def _make(mistake: Mistake, sources: Path, folder: Path) -> None:
    """Make a copy of the sources with one mistake in it."""
    shutil.copytree(sources / "mainspring", folder / "mainspring")
    changed = folder / "mainspring" / mistake.file
    changed.write_text(
        changed.read_text(encoding="utf-8").replace(mistake.original, mistake.replacement), encoding="utf-8"
    )
    for compiled in (changed.parent / "__pycache__").glob(f"{changed.stem}.*"):
        compiled.unlink()  # it may be taken for that of the changed file


def _run(chosen: Sequence[str], sources: Path, seconds: float, root: Path) -> tuple[int | None, str]:
    """Run tests on these sources. Return pytest's exit code, None if it did not end in time, and what it wrote."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--tb=no", *chosen]
    environment = {**os.environ, "PYTHONPATH": str(sources)}
    process = subprocess.Popen(  # noqa: S603  our own tests
        command,
        cwd=root,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        # With all that it has started: the group is its own.
        os.killpg(process.pid, 9)
        process.communicate()
        return None, ""
    return process.returncode, output


def report(findings: Iterable[Finding]) -> str:
    """Return a page: the score, and each mistake with what became of it, those that nobody noticed first."""
    ordered = sorted(findings, key=lambda finding: (finding.verdict not in _MISTAKEN, finding.mistake.file))
    counts = Counter(finding.verdict for finding in ordered)
    lines = ["## Chosen mistakes", f"{score(ordered):.1%} of {len(ordered)} are noticed"]
    lines.append(", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))
    for finding in ordered:
        lines.append(f"{finding.verdict:9}{finding.mistake.file}: {finding.mistake.name} ({finding.seconds:.0f} s)")
        lines.append(f"{'':9}  {finding.told}")
    return "\n".join(lines)


def score(findings: Sequence[Finding]) -> float:
    """Return which share was noticed."""
    return sum(finding.verdict not in _MISTAKEN for finding in findings) / len(findings)


def main(argv: Sequence[str] | None = None, chosen: Sequence[Mistake] = CHOSEN, root: Path = ROOT) -> int:
    """Judge mistakes, tell of each on standard error, and print a page. 0: enough were noticed, and none is stale."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants chosen", description="Try hand-chosen mistakes.")
    parser.add_argument("--only", action="append", default=[], metavar="TEXT", help="those with this in name or file")
    parser.add_argument("--list", action="store_true", help="only name them")
    parser.add_argument("--jobs", type=int, default=JOBS, help="so many at once")
    parser.add_argument("--seconds", type=float, default=LONGEST_SECONDS, help="for each, at most")
    given = parser.parse_args(argv)
    wanted = [m for m in chosen if not given.only or any(text in f"{m.file}: {m.name}" for text in given.only)]
    if not wanted:
        parser.error("there is no such mistake")
    if given.list:
        sys.stdout.write("".join(f"{mistake.file}: {mistake.name}\n" for mistake in wanted))
        return 0
    findings: list[Finding] = []
    with ThreadPoolExecutor(given.jobs) as pool:
        for done in as_completed([pool.submit(judged, mistake, given.seconds, root) for mistake in wanted]):
            finding = done.result()
            findings.append(finding)
            place = f"{len(findings)} of {len(wanted)}"
            sys.stderr.write(f"{place}: {finding.verdict}: {finding.mistake.name} ({finding.told})\n")
            sys.stderr.flush()
    sys.stdout.write(f"{report(findings)}\n")
    stale = any(finding.verdict in ("stale", "broken") for finding in findings)
    return 1 if stale or score(findings) < NEEDED else 0


if __name__ == "__main__":
    sys.exit(main())
