"""`python -m tests.proof.power_cuts --cuts 1000 --seed 7`: cut the power under the SQLite store again and again.

With `--synchronous NORMAL` or `OFF` commits are not synced: acknowledged inputs must then be lost, or the disk under
the test remembers too much; it ends with the first disk that has lost one. The exit code is 1 where a promise was
broken, or, if it is made so easy, where no acknowledged input was lost.
"""

from __future__ import annotations

import argparse
import secrets
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.proof.power_cuts.chain import Chain, Result

CUTS_PER_DISK: Final = 20
SHOWN: Final = 3
ACKNOWLEDGED: Final = "acknowledged"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.proof.power_cuts",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--cuts", type=int, default=1_000, help="how often the power is cut, 20 times on each disk")
    parser.add_argument("--seed", type=int, default=None, help="repeat a run, as far as timing allows")
    parser.add_argument("--synchronous", choices=("NORMAL", "OFF"), help="sync less, to see that the test notices")
    asked = parser.parse_args()
    seed = secrets.randbelow(1_000_000) if asked.seed is None else asked.seed
    results = _chains(asked.cuts, seed, asked.synchronous)
    violations = [text for result in results for text in result.violations]
    for text in (text for result in results for text in result.violations[:SHOWN]):
        sys.stderr.write(f"{text}\n")
    sys.stdout.write(_report(results, seed, asked.synchronous))
    return int(bool(violations)) if asked.synchronous is None else int(not _lost(violations))


def _chains(cuts: int, seed: int, synchronous: str | None) -> list[Result]:
    results: list[Result] = []
    done = 0
    while done < cuts:
        folder = Path(tempfile.mkdtemp(prefix="mainspring-cuts-"))
        chain = Chain(folder, f"{seed}-{len(results)}", synchronous=synchronous)
        results.append(chain.run(min(CUTS_PER_DISK, cuts - done)))
        done += CUTS_PER_DISK
        sys.stderr.write(f"  {min(done, cuts):,} of {cuts:,} cuts\n")
        if results[-1].violations and synchronous is None:
            sys.stderr.write(f"the files are in {folder}\n")
        else:
            shutil.rmtree(folder)
        if synchronous is not None and _lost(results[-1].violations):
            break
    return results


def _lost(violations: list[str]) -> bool:
    """Tell whether what was acknowledged is not there: not every other broken promise of a disk is that."""
    return any(ACKNOWLEDGED in text for text in violations)


def _report(results: list[Result], seed: int, synchronous: str | None) -> str:
    total = {
        "cuts": sum(result.cuts for result in results),
        "disks, each at rest at the end": len(results),
        "inputs acknowledged": sum(result.acknowledged for result in results),
        "events at the end": sum(result.events for result in results),
        "logs recovered": sum(result.recovered_logs for result in results),
        "broken promises": sum(len(result.violations) for result in results),
    }
    title = "Power cuts below SQLite" + ("" if synchronous is None else f", with synchronous={synchronous}")
    rows = "\n".join(f"| {what} | {count:,} |" for what, count in total.items())
    return f"## {title}\n\n| seed {seed} | |\n|---|---|\n{rows}\n"


if __name__ == "__main__":
    sys.exit(main())
