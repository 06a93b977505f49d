"""`python -m tests.proof.store_faults`: let every call of a store fail once, with every kind of fault, and judge it."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.proof.crash_points.__main__ import opened
from tests.proof.crash_points.runner import Prepared
from tests.proof.crash_points.scenarios import SCENARIOS
from tests.proof.store_faults.calls import Fault
from tests.proof.store_faults.life import LEVELS
from tests.proof.store_faults.plants import PLANTS
from tests.proof.store_faults.runner import PATIENCE_SECONDS, FaultRunner
from tests.support.folders import MEMORY, in_memory

EVERY: Final = 50
WRONG_CHARACTERS: Final = 2_000


def main() -> int:
    asked = _parsed()
    # Whoever ends it ends its server too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    # What a disk does is judged by none of it: the calls that fail are told so by us.
    if (memory := in_memory(asked.memory)) is not None:
        tempfile.tempdir = str(memory)
    began = time.monotonic()
    injected: Counter[tuple[str, str]] = Counter()
    broken: Counter[tuple[str, str]] = Counter()
    for level in asked.level or LEVELS:
        with tempfile.TemporaryDirectory(prefix="mainspring-store-faults-") as folder, opened(_store(level)) as store:
            runner = FaultRunner(Path(folder), store, level, asked.plant)
            for name in asked.scenario or SCENARIOS:
                prepared = runner.prepare(SCENARIOS[name])
                for kind, wrong in _failed(asked, runner, prepared, level):
                    injected[level, kind] += 1
                    broken[level, kind] += wrong
                runner.remove(prepared)
    which = "every one of them" if asked.stride == 1 else f"one in {asked.stride}"
    sys.stdout.write("## Faults at the store's calls\n")
    sys.stdout.write(f"A call fails once, and all goes on: of all calls and kinds of faults, {which}.\n")
    if not asked.kind:
        sys.stdout.write("Of kinds that no code of ours can tell apart at a call, one is tried.\n")
    sys.stdout.write("\n")
    sys.stdout.write("| calls | fault | injected | survived |\n|---|---|---:|---:|\n")
    for (level, kind), count in injected.items():
        sys.stdout.write(f"| {level} | {kind} | {count:,} | {count - broken[level, kind]:,} |\n")
    sys.stdout.write(f"\n{injected.total():,} faults in {time.monotonic() - began:,.0f} s.\n")
    return int(broken.total() > 0)


def _store(level: str) -> str:
    return level.partition("-")[0]


def _failed(
    asked: argparse.Namespace, runner: FaultRunner, prepared: Prepared, level: str
) -> Iterator[tuple[str, bool]]:
    """Tell of each fault whether a promise was broken; what is wrong is told at once."""
    scenario, done, bad = prepared.scenario.name, 0, 0
    faults = runner.faults(prepared, *asked.kind or ())
    chosen = [Fault(kind, asked.call) for kind in asked.kind] if asked.call else faults[:: asked.stride]
    for fault in chosen:
        run = runner.fail(prepared, fault, asked.patience)
        if run is None:
            continue
        done += 1
        if run.wrong:
            bad += 1
            again = f"--level {level} --scenario {scenario} --kind '{fault.kind}' --call '{fault.at}'"
            sys.stderr.write(f"\n{fault.kind} at {fault.at}; again: python -m tests.proof.store_faults {again}\n")
            for wrong in run.wrong:
                sys.stderr.write(f"  {wrong[:WRONG_CHARACTERS]}\n")
        if done % EVERY == 0:
            sys.stderr.write(f"  {level} {scenario}: {done} faults, {bad} with a broken promise\n")
        yield fault.kind, bool(run.wrong)
    sys.stderr.write(f"{level} {scenario}: {done} faults, {bad} with a broken promise\n")


def _parsed() -> argparse.Namespace:
    kinds = sorted({kind for level in LEVELS.values() for kind in level.kinds})
    parser = argparse.ArgumentParser(prog="python -m tests.proof.store_faults", description=__doc__)
    parser.add_argument("--level", action="append", choices=tuple(LEVELS), help="whose calls fail; all if not given")
    parser.add_argument("--scenario", action="append", choices=tuple(SCENARIOS), help="only this one; may be repeated")
    parser.add_argument("--kind", action="append", choices=kinds, help="only this fault; may be repeated")
    parser.add_argument("--call", help="this call only, as COMMIT#3")
    parser.add_argument("--stride", type=int, default=1, help="every so-many-th fault")
    parser.add_argument("--patience", type=float, default=PATIENCE_SECONDS, help="seconds until a wait is in vain")
    parser.add_argument("--memory", type=Path, default=MEMORY, help="where databases lie, if it is there and has room")
    parser.add_argument("--plant", choices=tuple(PLANTS), help="let every process have this bug: it must be found")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
