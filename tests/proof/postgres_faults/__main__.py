"""`python -m tests.proof.postgres_faults`: PostgreSQL in real trouble under workers, judged by the independent checker.

Without --fault all faults happen, one after the other, each on a database of its own. A seed repeats the order of what
is asked and of what goes wrong; not the timing, which is the machine's. Exit code 1 if a promise was broken, or if what
should have gone wrong did not.
"""

from __future__ import annotations

import argparse
import secrets
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.proof.postgres_faults.faults import FAULTS, Fault
from tests.proof.postgres_faults.performance import performed, serving
from tests.proof.postgres_faults.stage import Outcome
from tests.support.postgres.server import Unavailable

SHOWN = 10


def main() -> int:
    names = [fault.name for fault in FAULTS]
    parser = argparse.ArgumentParser(
        prog="python -m tests.proof.postgres_faults",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="\n".join(["faults, with the rounds of a long run:", *map(_line_of_help, FAULTS)]),
    )
    parser.add_argument(
        "--fault", choices=names, action="append", metavar="NAME", help="only this one; may be repeated"
    )
    parser.add_argument("--rounds", type=int, default=None, help="how often each fault happens; unless given, as below")
    parser.add_argument("--seed", type=int, default=None, help="repeat a run, as far as timing allows")
    asked = parser.parse_args()
    # Whoever ends the run ends its servers too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    seed = secrets.randbelow(1_000_000) if asked.seed is None else asked.seed
    chosen = [fault for fault in FAULTS if fault.name in (asked.fault or names)]
    results = [_run(fault, asked.rounds or fault.long, seed) for fault in chosen]
    sys.stdout.write("\n".join(_report(seed, results)) + "\n")
    return int(any(result.wrong for result in results))


@dataclass(frozen=True)
class Result:
    """What became of a fault: how it went, or why it could not be tried."""

    fault: Fault
    outcome: Outcome | None = None
    skipped: str = ""
    error: str = ""

    @property
    def wrong(self) -> bool:
        return bool(self.error or (self.outcome is not None and self.outcome.complaints))


def _report(seed: int, results: list[Result]) -> Iterator[str]:
    """Return a few lines for the report of a soak."""
    outcomes = [result.outcome for result in results if result.outcome is not None]
    happened = sum((outcome.happened for outcome in outcomes), Counter[str]())
    told = sum((outcome.told for outcome in outcomes), Counter[str]())
    effects = sum("effect" in line for outcome in outcomes for line in outcome.evidence.effects)
    violations = sum(len(outcome.complaints) for outcome in outcomes)
    yield f"## PostgreSQL in trouble (seed {seed})"
    yield f"- {len(outcomes)} of {len(results)} faults: {', '.join(f'{n:,} {what}' for what, n in happened.items())}"
    yield f"- {told['ok']:,} inputs acknowledged, {told['unknown']:,} asked again, {effects:,} effects of handlers"
    yield f"- **{violations} violations**"
    if skipped := "; ".join(f"{result.fault.name}: {result.skipped}" for result in results if result.skipped):
        yield f"- skipped: {skipped}"
    if wrong := ", ".join(result.fault.name for result in results if result.wrong):
        yield f"- wrong: {wrong}"


def _line_of_help(fault: Fault) -> str:
    return f"  {fault.name:<12} {fault.long:>5}  {fault.what}"


def _run(fault: Fault, rounds: int, seed: int) -> Result:
    """Let a fault happen, tell on the way how it went, and keep the files where something is wrong."""
    folder = Path(tempfile.mkdtemp(prefix=f"faults-{fault.name}-"))
    command = f"python -m tests.proof.postgres_faults --fault {fault.name} --rounds {rounds}"
    again = f"the files are in {folder}; again: {command}"
    begun = time.monotonic()
    try:
        with serving(fault) as server:
            result = Result(fault, performed(fault, server, folder, rounds, seed))
    except Unavailable as reason:
        result = Result(fault, skipped=str(reason))
    except Exception as error:  # noqa: BLE001  the other faults are tried all the same
        result = Result(fault, error=repr(error))
    summary = result.skipped or result.error or _summary(result.outcome)
    sys.stderr.write(f"{fault.name}: {summary}; {time.monotonic() - begun:.0f} s\n")
    if result.wrong:
        complaints = [] if result.outcome is None else result.outcome.complaints
        sys.stderr.write("".join(f"  {line}\n" for line in (*complaints[:SHOWN], f"{again} --seed {seed}")))
    else:
        shutil.rmtree(folder)
    return result


def _summary(outcome: Outcome | None) -> str:
    if outcome is None:
        return "it was not judged"
    happened = ", ".join(f"{count:,} {what}" for what, count in outcome.happened.items())
    effects = sum("effect" in line for line in outcome.evidence.effects)
    told = f"{outcome.told['ok']:,} inputs acknowledged, {outcome.told['unknown']:,} asked again, {effects:,} effects"
    quiet = "never quiet" if outcome.quiet_seconds is None else f"quiet after {outcome.quiet_seconds:.1f} s"
    return f"{happened}; {told}, {quiet}; {len(outcome.complaints)} violations"


if __name__ == "__main__":
    sys.exit(main())
