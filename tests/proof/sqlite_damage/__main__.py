"""`python -m tests.proof.sqlite_damage --flips 1000 --seed 7`: damage an SQLite database; it is never believed.

Half of the flips are in the database and half in its log; besides, each file is cut short a tenth as often. The exit
code is 1 where something was read that was not written, or where an error was not one of mainspring's.
"""

from __future__ import annotations

import argparse
import logging
import secrets
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.proof.sqlite_damage.flips import Damager, Tally
from tests.proof.sqlite_damage.subject import make

LINES: Final = 20
CUTS_SHARE: Final = 10


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.proof.sqlite_damage",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--flips", type=int, default=1_000, help="how many bytes are flipped, each in a fresh copy")
    parser.add_argument(
        "--seed", type=int, default=None, help="repeat a run; the database itself depends on timing too"
    )
    asked = parser.parse_args()
    seed = secrets.randbelow(1_000_000) if asked.seed is None else asked.seed
    # Workers tell of what is damaged; here it is expected a thousand times.
    logging.disable(logging.ERROR)
    with tempfile.TemporaryDirectory(prefix="mainspring-damage-") as folder:
        tally = _run(Path(folder), asked.flips, seed)
    for text in tally.violations:
        sys.stderr.write(f"{text}\n")
    sys.stdout.write(_report(tally, seed))
    return int(bool(tally.violations))


def _run(folder: Path, flips: int, seed: int) -> Tally:
    damager = Damager(folder, *make(folder, seed))
    cuts = max(1, flips // CUTS_SHARE)
    times = {
        "a byte of the database": flips - flips // 2,
        "a byte of the log": flips // 2,
        "the database cut short": cuts,
        "the log cut short": cuts,
    }
    total, done = sum(times.values()), 0
    for kind, count in times.items():
        for _ in damager.run(kind, count, seed):
            done += 1
            if done % max(1, total // LINES) == 0:
                sys.stderr.write(f"  {done:,} of {total:,} damages\n")
    return damager.tally


def _report(tally: Tally, seed: int) -> str:
    columns = ("told", "told by the doctor", "as written", "without a snapshot", "an earlier commit")
    kinds = dict.fromkeys(kind for kind, _ in tally.outcomes)
    rows = "\n".join(
        f"| {kind} | {' | '.join(f'{tally.outcomes[kind, column]:,}' for column in columns)} |" for kind in kinds
    )
    head = f"| seed {seed} | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}"
    return f"## Damage to an SQLite file\n\n{head}\n{rows}\n\n{len(tally.violations)} damages were believed.\n"


if __name__ == "__main__":
    sys.exit(main())
