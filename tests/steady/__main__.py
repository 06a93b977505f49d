"""`python -m tests.steady`: run the tests again and again, and report each that was not green every time.

Every second run is in random order, and each has another PYTHONHASHSEED; the seeds are printed, and the same --seed
gives the same ones again. Under load every core is wanted by another process, and one more writes and syncs the disk.
With --late every eighth answer of a store, a thread, a socket or a timer comes up to 30 ms later than it would: what a
busy machine brings about once in a thousand runs is found in a few.
The exit code is 1 if a run failed or a test was not green every time.

  python -m tests.steady                                  ten runs of everything, four of them under load (1.5 hours)
  python -m tests.steady --runs 30 --loaded 30 tests/edges/brokers tests/engine/test_timers.py
  python -m tests.steady --runs 4 --loaded 0 --late tests/engine
  python -m tests.steady --runs 3 -- -k "two_services"    what stands behind -- is for pytest
"""

from __future__ import annotations

import argparse
import secrets
import signal
import subprocess
import sys
from pathlib import Path

from tests.steady import report
from tests.steady.runs import Run, conditions, run
from tests.support.paths import ROOT


def asked_for(arguments: list[str]) -> argparse.Namespace:
    """Return what somebody asks for: of what stands behind --, argparse would refuse a part, depending on the order."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    parser = argparse.ArgumentParser(
        prog="python -m tests.steady", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tests", nargs="*", help="which tests, as pytest takes them (default: all)")
    parser.add_argument("--runs", type=int, default=10, help="how many runs (default: %(default)s)")
    parser.add_argument("--loaded", type=int, default=None, help="how many of them under load (default: 4 of 10)")
    parser.add_argument("--late", action="store_true", help="let answers come late, at random")
    parser.add_argument("--seed", type=int, default=None, help="of orders and hash seeds (default: another each time)")
    parser.add_argument("--keep", type=Path, default=Path("build/steady"), help="where logs and the report go")
    asked = parser.parse_intermixed_args(arguments[:at])
    asked.for_pytest = arguments[at + 1 :]
    if asked.loaded is None:
        asked.loaded = asked.runs * 4 // 10
    if not 0 <= asked.loaded <= asked.runs or asked.runs < 1:
        parser.error(f"--loaded {asked.loaded} has to be between 0 and --runs {asked.runs}, and there has to be a run")
    return asked


def main() -> int:
    asked = asked_for(sys.argv[1:])
    seed = secrets.randbelow(1_000_000) if asked.seed is None else asked.seed
    _tell(f"{asked.runs} runs, {asked.loaded} under load, --seed {seed}; logs in {asked.keep}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    # A shell lets what it starts in the background ignore it, and that would be handed on to the runs.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    asked.keep.mkdir(parents=True, exist_ok=True)
    if not asked.tests:
        _build_page()
    runs: list[Run] = []
    for given in conditions(asked.runs, asked.loaded, seed, late=asked.late):
        _tell(f"run {given.number} of {asked.runs} ({given}) …")
        runs.append(run(given, [*asked.tests, *asked.for_pytest], asked.keep))
        _tell(f"  {runs[-1]}")
        for name, test in runs[-1].tests.items():
            if test.outcome == "failed":
                _tell(f"  FAILED {name} ({test.seconds:.1f} s)")
        # After each run, so that whoever ends it early has what was seen until then.
        (asked.keep / "report.md").write_text(report.page(runs))
    _tell(f"\n{report.page(runs)}\nThe page is in {asked.keep / 'report.md'}.")
    return int(not report.steady(runs))


def _build_page() -> None:
    """Build what `make test` builds first: without the studio's page its tests are skipped."""
    command = [sys.executable, "studio/make_page.py", "--if-possible"]
    subprocess.run(command, cwd=ROOT, check=True)  # noqa: S603  ours


def _tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
