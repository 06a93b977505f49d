"""`python -m simulate`: run seeds, report what fired, and tell the shortest story of what failed."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

from tests.proof.simulation import hunt
from tests.proof.simulation.plan import FAULTS, Plan, plan_of
from tests.proof.simulation.plants import PLANTS
from tests.proof.simulation.run import Result, run
from tests.proof.simulation.shrink import STORY_LINES, shrunk, story

CHUNK = 20
FAILURES_TOLD = 5


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m simulate",
        description="Runs the real engine in a simulated world that goes wrong, once for each seed, and judges it.",
        epilog="A seed that fails is made smaller; what is printed then repeats it. Faults: "
        + "; ".join(f"{name}: {what}" for name, what in FAULTS.items())
        + ".",
    )
    add = parser.add_argument
    add("--seeds", type=int, default=1_000, metavar="N", help="how many seeds to run (default: 1000)")
    add("--first", type=int, default=0, metavar="SEED", help="the first of them (default: 0)")
    add("--seed", type=int, metavar="SEED", help="run this one only, and tell its story")
    add("--jobs", type=int, default=1, metavar="N", help="how many processes share the work (default: 1)")
    add("--only", metavar="FAULT,…", help="only these kinds of faults, of those that a seed chooses; `none` for none")
    add("--cast", metavar="KIND=N,…", help="with --seed: so many instances of each kind")
    add("--nodes", type=int, metavar="N", help="with --seed: so many processes")
    add("--fault-seconds", type=int, metavar="S", help="with --seed: so long the faults last")
    add("--plant", choices=sorted(PLANTS), help="put a known mistake into the engine, to see that it is noticed")
    add("--plants", action="store_true", help="put in every known mistake, one after the other, and see it noticed")
    add("--lines", type=int, default=STORY_LINES, metavar="N", help="how much of a story is printed")
    return parser


def planned(seed: int, given: argparse.Namespace) -> Plan:
    """Return a seed's plan, made smaller as the command line says."""
    plan = plan_of(seed, plant=given.plant)
    if given.only is not None:
        wanted = frozenset() if given.only == "none" else frozenset(given.only.split(","))
        if unknown := wanted - FAULTS.keys():
            raise SystemExit(f"there is no fault {', '.join(sorted(unknown))}; there are {', '.join(FAULTS)}")
        plan = replace(plan, faults=plan.faults & wanted if given.seed is None else wanted)
    if given.seed is not None:
        if given.cast is not None:
            counts = dict(part.split("=") for part in given.cast.split(",")) if given.cast != "none" else {}
            plan = replace(plan, cast=tuple((kind, int(counts.get(kind, 0))) for kind, _ in plan.cast))
        plan = replace(plan, nodes=given.nodes or plan.nodes, fault_seconds=given.fault_seconds or plan.fault_seconds)
    return plan


def results(plans: list[Plan], jobs: int) -> Iterator[Result]:
    """Run plans, in this process or in several."""
    if jobs <= 1:
        yield from map(run, plans)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(run, plans, chunksize=CHUNK)


def main(given: argparse.Namespace) -> int:
    say = sys.stdout.write
    if given.plants:
        return hunted()
    if given.seed is not None:
        result = run(planned(given.seed, given), kept=True)
        say(f"{story(result, given.lines)}\ntrace: {result.hash}\n")
        return 1 if result.faults else 0
    plans = [planned(seed, given) for seed in range(given.first, given.first + given.seeds)]
    fired: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    failed: list[Result] = []
    commits, begun = 0, time.monotonic()
    for count, result in enumerate(results(plans, given.jobs), 1):
        fired += result.fired
        seen += result.seen
        commits += result.commits
        if result.faults:
            failed.append(result)
            sys.stderr.write(f"seed {result.plan.seed} fails: {result.faults[0].what[:200]}\n")
        if count % 100 == 0:
            rate = count / (time.monotonic() - begun)
            sys.stderr.write(f"{count} of {len(plans)} seeds, {len(failed)} failed, {rate:.1f} seeds/s\n")
    for result in failed[:FAILURES_TOLD]:
        sys.stderr.write(f"making seed {result.plan.seed} smaller\n")
        say(f"# seed {result.plan.seed}\n\n{story(shrunk(result), given.lines)}\n\n")
    say("\n".join(report(given, len(plans), commits, fired, seen, failed)) + "\n")
    return 1 if failed else 0


def hunted() -> int:
    """Hunt every planted mistake."""
    found: list[hunt.Found] = []
    missed: list[str] = []
    for name, plant in PLANTS.items():
        one = hunt.hunt(name)
        if one is None:
            missed.append(name)
        else:
            found.append(one)
        told = "is NOT noticed" if one is None else f"seed {one.seed}: invariant {one.fault.invariant}"
        sys.stderr.write(f"{name}: {told} ({plant.what})\n")
    sys.stdout.write("\n".join(hunt.report(found, missed)) + "\n")
    return 1 if missed else 0


def report(
    given: argparse.Namespace, seeds: int, commits: int, fired: Counter[str], seen: Counter[str], failed: list[Result]
) -> Iterable[str]:
    """Return a few lines of Markdown: what ran, what fired, what was wrong."""
    yield "## Deterministic simulation"
    yield f"- seeds {given.first} to {given.first + seeds - 1}: {seeds:,} runs, {commits:,} commits"
    yield f"- violations: {len(failed)}" + (
        f" (seeds {', '.join(str(r.plan.seed) for r in failed[:20])})" if failed else ""
    )
    yield "- faults fired: " + ", ".join(f"{kind} {fired[kind]:,}" for kind in FAULTS)
    never = [kind for kind in FAULTS if not fired[kind]]
    yield f"- faults that never fired: {', '.join(never) or 'none'}"
    yield "- looked at: " + ", ".join(f"{check} {count:,}" for check, count in sorted(seen.items()))


if __name__ == "__main__":
    sys.exit(main(arguments().parse_args()))
