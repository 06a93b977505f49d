"""From a run that fails to the smallest one that still does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tests.proof.simulation.plan import Plan, smaller
from tests.proof.simulation.run import Result, run

MOST_RUNS: Final = 200
STORY_LINES: Final = 150


def shrunk(failed: Result, *, heard: Callable[[Plan], None] = lambda _: None) -> Result:
    """Return the smallest run found that breaks one of the same invariants, with its story."""
    broken = {fault.invariant for fault in failed.faults}
    best, runs = failed.plan, 0
    found = True
    while found and runs < MOST_RUNS:
        found = False
        for plan in smaller(best):
            runs += 1
            if runs > MOST_RUNS:
                break
            if broken & {fault.invariant for fault in run(plan).faults}:
                best, found = plan, True
                heard(best)
                break
    return run(best, kept=True)


def story(result: Result, lines: int = STORY_LINES) -> str:
    """Return what happened, what is wrong with it, and how to see it again."""
    told = result.lines
    if len(told) > lines:
        told = (*told[: lines // 3], f"… {len(told) - lines} lines more …", *told[-(lines - lines // 3) :])
    what = (
        f"{result.plan.nodes} processes, {result.plan.instances} instances, "
        f"faults for {result.plan.fault_seconds} s: {', '.join(sorted(result.plan.faults)) or 'none'}"
    )
    faults = [
        f"invariant {fault.invariant}: {f'{fault.ref}: ' if fault.ref else ''}{fault.what}" for fault in result.faults
    ]
    return "\n".join((what, "", *told, "", *faults, "", f"again: {result.plan.command()}"))
