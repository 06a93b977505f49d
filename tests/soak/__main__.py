"""`python -m tests.soak`: all proofs in their long form, and a report of one page."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.soak.parts import PARTS
from tests.soak.run import Ran, page, run


def main() -> int:
    names = ", ".join(part.name for part in PARTS)
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__, epilog=f"Parts: {names}.")
    parser.add_argument("--only", nargs="+", metavar="PART", choices=[p.name for p in PARTS], help="just these parts")
    parser.add_argument("--short", action="store_true", help="few rounds of each: minutes instead of hours")
    parser.add_argument("--report", type=Path, default=Path("build/soak.md"), help="where the page goes")
    asked = parser.parse_args()
    chosen = [part for part in PARTS if not asked.only or part.name in asked.only]
    runs: list[Ran] = []
    asked.report.parent.mkdir(parents=True, exist_ok=True)
    for ran in run(chosen, short=asked.short, tell=_tell):
        runs.append(ran)
        # After each part, so that whoever ends a soak early has what was seen until then.
        asked.report.write_text(page(runs))
    _tell(f"\n{page(runs)}\nThe page is in {asked.report}.")
    return int(any(ran.failed for ran in runs))


def _tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
