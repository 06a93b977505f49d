"""`python -m tests.proof.model --store sqlite --examples 2000 --steps 50 --seed 7`: a store against a model.

Each example begins with an empty store and does so many things to it: commits of units of every meaning (duplicates,
conflicts, stale leases, settlements, retries, dead letters, tasks, trims), claims, workers that come and go, time that
passes, people at their tasks, purges, projections, and the store closed and opened again. After every step all that can
be seen of the store is compared with the model. A failure is made as small as it gets and shown as a program.
"""

from __future__ import annotations

import argparse
import secrets
import sys
import time
from collections.abc import Callable

from hypothesis import Phase

from mainspring.port.store import Store
from mainspring.testing.clock import VirtualClock
from tests.proof.model.beds import BEDS, Bed
from tests.proof.model.trial import trial


class Counting:
    """A bed that tells how far a run is."""

    def __init__(self, bed: Bed, examples: int) -> None:
        self._bed = bed
        self._examples = examples
        self.durable = bed.durable
        self.begun = 0

    async def again(self, clock: VirtualClock) -> Store:
        return await self._bed.again(clock)

    async def leave(self) -> None:
        await self._bed.leave()

    async def fresh(self, clock: VirtualClock) -> Store:
        self.begun += 1
        if self.begun % max(1, self._examples // 20) == 0:
            sys.stderr.write(f"  {self.begun:,} of {self._examples:,} examples\n")
        return await self._bed.fresh(clock)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.proof.model", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", choices=tuple(BEDS), default="sqlite", help="which store (default: %(default)s)")
    parser.add_argument("--examples", type=int, default=2_000, help="how many examples (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=50, help="steps of each (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=None, help="repeat a run exactly")
    asked = parser.parse_args()
    seed = secrets.randbelow(1_000_000) if asked.seed is None else asked.seed
    sys.stderr.write(f"{asked.examples:,} examples of {asked.steps} steps on {asked.store}, seed {seed}\n")
    begun = time.monotonic()
    bed = Counting(BEDS[asked.store](), asked.examples)
    counts, failure = _tried(lambda: trial(bed, asked.examples, asked.steps, seed, (Phase.generate, Phase.shrink)))
    sys.stdout.write(_report(asked, seed, time.monotonic() - begun, counts, failure))
    return int(failure is not None)


def _tried(run: Callable[[], dict[str, int]]) -> tuple[dict[str, int], Exception | None]:
    try:
        return run(), None
    except Exception as error:  # noqa: BLE001  whatever a store raises is a finding
        sys.stderr.write("\n".join([*getattr(error, "__notes__", ()), f"{type(error).__name__}: {error}", ""]))
        return {}, error


def _report(
    asked: argparse.Namespace, seed: int, seconds: float, counts: dict[str, int], failure: Exception | None
) -> str:
    outcomes = {name.partition(": ")[2]: count for name, count in sorted(counts.items()) if ": " in name}
    verbs = sum(count for name, count in counts.items() if ": " not in name)
    size = f"--store {asked.store} --examples {asked.examples} --steps {asked.steps}"
    again = f"python -m tests.proof.model {size} --seed {seed}"
    lines = [
        f"- {asked.examples:,} examples of up to {asked.steps} steps in {seconds:.0f} s; again: `{again}`",
        f"- {verbs:,} calls; units: {', '.join(f'{count:,} {name}' for name, count in outcomes.items()) or 'none'}",
        f"- violations: {'none' if failure is None else f'{type(failure).__name__}: {str(failure)[:300]}'}",
    ]
    return f"\n## The {asked.store} store against a model of dictionaries\n\n" + "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
