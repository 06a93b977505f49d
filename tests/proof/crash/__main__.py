"""The kill loop: workers and clients are killed, workers are stopped beyond their lease, and what is left is judged.

Four workers and two clients share one store. A kill comes 0.05 to 3 s after the worker began to serve. When it is over,
an independent checker holds what clients were told, what stands in the tables and what handlers did against the
invariants of the design. Exit code 1 if one was broken, if it never became quiet, or if a worker ended by itself.
"""

from __future__ import annotations

import argparse
import secrets
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from tests.proof.crash.files import Place
from tests.proof.crash.loop import Loop


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.proof.crash", description=__doc__)
    parser.add_argument("--cycles", type=int, default=500, help="how often a worker is killed")
    parser.add_argument("--seed", type=int, default=None, help="repeat a run, as far as timing allows")
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite", help="where the streams are")
    parser.add_argument("--keep", action="store_true", help="keep the files of a run that went well")
    asked = parser.parse_args()
    # Whoever ends the loop ends its processes and its server too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    seed = secrets.randbelow(1_000_000) if asked.seed is None else asked.seed
    folder = Path(tempfile.mkdtemp(prefix="mainspring-crash-"))
    sys.stderr.write(f"{asked.cycles} cycles on {asked.store}, seed {seed}, in {folder}\n")
    loop = Loop(Place(folder), seed, on_server=asked.store == "postgres")
    try:
        run = loop.run(asked.cycles, lambda cycle: _progress(cycle, asked.cycles))
        judged = loop.judge()
    finally:
        loop.end()
    failed = judged.returncode != 0 or run.quiet_seconds is None or run.exits > 0
    if failed:
        again = f"python -m tests.proof.crash --store {asked.store} --seed {seed} --cycles {asked.cycles}"
        sys.stdout.write(f"FAILED: the files are in {folder}; again: {again}\n")
    elif not asked.keep:
        shutil.rmtree(folder)
    sys.stdout.write(f"{judged.stderr}{judged.stdout}")
    return int(failed)


def _progress(cycle: int, cycles: int) -> None:
    """A line that rewrites itself on a terminal, and one line in ten elsewhere."""
    if sys.stderr.isatty():
        done = round(40 * cycle / cycles)
        sys.stderr.write(f"\r  {'━' * done}{'╌' * (40 - done)}  {cycle:,} of {cycles:,} kills")
        sys.stderr.flush()
    elif cycle % max(1, cycles // 10) == 0:
        sys.stderr.write(f"  {cycle:,} of {cycles:,} kills\n")


if __name__ == "__main__":
    sys.exit(main())
