"""The proof of the simulator: every planted mistake is noticed within so many seeds, and none that is not there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from tests.proof.crash.checker import Fault
from tests.proof.simulation.plan import plan_of
from tests.proof.simulation.plants import PLANTS
from tests.proof.simulation.run import run

SEEDS: Final = 1_000


@dataclass(frozen=True)
class Found:
    """How a planted mistake was noticed: by which seed, and by what."""

    plant: str
    seed: int
    tried: int
    fault: Fault


def hunt(name: str, most: int = SEEDS) -> Found | None:
    """Return the first seed that notices a planted mistake; the same plan without it must be clean.

    Seeds are tried from the plant's own first one on: that is where it was found before, and no more than a hint.
    """
    first = PLANTS[name].first
    for tried, seed in enumerate(range(first, first + most), 1):
        plan = plan_of(seed, plant=name)
        faults = run(plan).faults
        if faults and not run(replace(plan, plant=None)).faults:
            return Found(name, seed, tried, faults[0])
    return None


def report(found: list[Found], missed: list[str]) -> Iterable[str]:
    """Return a few lines of Markdown."""
    yield "## Planted mistakes"
    yield f"- planted: {len(found) + len(missed)}, noticed: {len(found)}, each within {SEEDS:,} seeds"
    if found:
        most = max(found, key=lambda one: one.tried)
        yield f"- the slowest: {most.plant}, after {most.tried} seeds"
        yield f"- noticed by invariants: {', '.join(map(str, sorted({one.fault.invariant for one in found})))}"
    if missed:
        yield f"- NOT noticed: {', '.join(missed)}"
