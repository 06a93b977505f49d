"""`python -m tests.crash --cycles 500 --seed 7`: the kill loop, with progress and a report of one page."""

from __future__ import annotations

import argparse
import secrets
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from tests.crash.files import Place
from tests.crash.loop import Loop


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--cycles", type=int, default=500, help="how often a worker is killed")
    parser.add_argument("--seed", type=int, default=None, help="repeat a run, as far as timing allows")
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite", help="where the streams are")
    parser.add_argument("--keep", action="store_true", help="keep the files of a run that went well")
    asked = parser.parse_args()
    # Whoever ends the loop ends its processes and its server too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    seed = secrets.randbelow(1_000_000) if asked.seed is None else asked.seed
    folder = Path(tempfile.mkdtemp(prefix="mainspring-crash-"))
    sys.stdout.write(f"{asked.cycles} cycles on {asked.store}, seed {seed}, in {folder}\n")
    loop = Loop(Place(folder), seed, on_server=asked.store == "postgres")
    try:
        run = loop.run(asked.cycles, lambda cycle: _progress(cycle, asked.cycles))
        quiet = "never" if run.quiet_seconds is None else f"{run.quiet_seconds:.1f} s after the last kill"
        sys.stdout.write(f"\n{run.cycles} kills of workers, {run.client_kills} of the client, in {run.seconds:.0f} s\n")
        if loop.upheaval is not None:
            counts = loop.upheaval.counts
            sys.stdout.write(
                f"server: {counts.crashes} crashes, {counts.stops} stops, {counts.sessions} sessions ended\n"
            )
        sys.stdout.write(f"quiet: {quiet}; {run.exits} workers ended by themselves\n")
        judged = loop.judge()
        sys.stdout.write(judged.stdout + judged.stderr)
    finally:
        loop.end()
    failed = judged.returncode != 0 or run.quiet_seconds is None or run.exits > 0
    if failed:
        again = f"python -m tests.crash --store {asked.store} --seed {seed} --cycles {asked.cycles}"
        sys.stdout.write(f"\nthe files are in {folder}; again: {again}\n")
    elif not asked.keep:
        shutil.rmtree(folder)
    return int(failed)


def _progress(cycle: int, cycles: int) -> None:
    """A line that rewrites itself on a terminal, and one line in ten elsewhere."""
    if sys.stdout.isatty():
        done = round(40 * cycle / cycles)
        sys.stdout.write(f"\r  {'━' * done}{'╌' * (40 - done)}  {cycle:,} of {cycles:,} kills")
        sys.stdout.flush()
    elif cycle % max(1, cycles // 10) == 0:
        sys.stdout.write(f"  {cycle:,} of {cycles:,} kills\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
