"""One run: a plan in, a verdict out."""

from __future__ import annotations

import gc
from collections import Counter
from dataclasses import dataclass

from tests.proof.crash.checker import Fault
from tests.proof.simulation.judge import judged
from tests.proof.simulation.plan import Plan
from tests.proof.simulation.plants import planted
from tests.proof.simulation.world import World


@dataclass(frozen=True)
class Result:
    """What came of a run."""

    plan: Plan
    hash: str
    faults: tuple[Fault, ...]
    fired: Counter[str]
    seen: Counter[str]
    lines: tuple[str, ...]
    commits: int


def run(plan: Plan, *, kept: bool = False) -> Result:
    """Run a plan. `kept` keeps the story."""
    # Cycles of a run are many and go together at its end: looking for them meanwhile costs a third of the time.
    gc.disable()
    world = World(plan, kept=kept)
    try:
        with planted(plan.plant):
            world.run()
            verdict = judged(world)
    finally:
        world.loop.bury()
        gc.enable()
    return Result(
        plan,
        world.trace.hash,
        tuple(verdict.faults),
        world.trace.fired,
        verdict.seen,
        tuple(world.trace.lines),
        len(world.database.commits),
    )
