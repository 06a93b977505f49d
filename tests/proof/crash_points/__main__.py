"""`python -m tests.proof.crash_points`: kill a process at every crash point of every scenario, and judge it."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.proof.crash_points.plants import PLANTS
from tests.proof.crash_points.points import Point
from tests.proof.crash_points.runner import Crash, Files, OnServer, Prepared, Runner, Store
from tests.proof.crash_points.scenarios import SCENARIOS
from tests.support.postgres.server import Server

STORES: Final = ("sqlite", "postgres")
EVERY: Final = 25
FAULT_CHARACTERS: Final = 2_000


def main() -> int:
    asked = _parsed()
    # Whoever ends it ends its server too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    reports = [_played(asked, store) for store in ([asked.store] if asked.store else STORES)]
    which = "every point" if asked.stride == 1 else f"one point in {asked.stride}"
    sys.stdout.write(f"## Crash points\nA process is killed at {which}, another goes on, and the end is judged.\n\n")
    sys.stdout.write("| store | points | kills | with violations | seconds |\n|---|---|---|---|---|\n")
    for report in reports:
        points, kills, bad = (sum(column) for column in zip(*report.scenarios.values(), strict=True))
        sys.stdout.write(f"| {report.store} | {points:,} | {kills:,} | {bad} | {report.seconds:,.0f} |\n")
    sys.stdout.write("\n")
    for report in reports:
        each = ", ".join(f"{name} {points}" for name, (points, _, _) in report.scenarios.items())
        sys.stdout.write(f"- points on {report.store}: {each}\n")
    return int(any(bad for report in reports for _, _, bad in report.scenarios.values()))


@dataclass(frozen=True)
class Report:
    """How it went on one store: for each scenario its points, the kills, and how many of these broke a promise."""

    store: str
    scenarios: dict[str, tuple[int, int, int]]
    seconds: float


def _played(asked: argparse.Namespace, name: str) -> Report:
    began = time.monotonic()
    scenarios: dict[str, tuple[int, int, int]] = {}
    with tempfile.TemporaryDirectory(prefix="mainspring-crash-points-") as folder, opened(name) as store:
        runner = Runner(Path(folder), store, asked.plant)
        for scenario in [asked.scenario] if asked.scenario else SCENARIOS:
            prepared = runner.prepare(SCENARIOS[scenario])
            points = [asked.point] if asked.point else range(asked.first, sys.maxsize, asked.stride)
            scenarios[scenario] = (len(prepared.points), *_killed(runner, prepared, points, name))
            runner.remove(prepared)
    return Report(name, scenarios, time.monotonic() - began)


def _killed(runner: Runner, prepared: Prepared, points: Iterable[Point], store: str) -> tuple[int, int]:
    """Return how many kills there were, and how many with faults, which are told at once."""
    scenario, killed, faulty = prepared.scenario.name, 0, 0
    for point in points:
        crash = runner.crash(prepared, point)
        if crash is None:
            break
        killed += 1
        if crash.faults:
            faulty += 1
            _tell(crash, f"--store {store} --scenario {scenario} --point '{point}'")
        if killed % EVERY == 0:
            sys.stderr.write(
                f"  {store} {scenario}: point {point} of about {len(prepared.points)}, {faulty} violated\n"
            )
    sys.stderr.write(f"{store} {scenario}: {killed} kills, {faulty} violated\n")
    return killed, faulty


def _tell(crash: Crash, again: str) -> None:
    sys.stderr.write(f"\npoint {crash.point}, {crash.where}; again: python -m tests.proof.crash_points {again}\n")
    for fault in crash.faults:
        sys.stderr.write(f"  {fault[:FAULT_CHARACTERS]}\n")


@contextmanager
def opened(name: str) -> Generator[Store]:
    """Have a store: files, or a server of the run's own."""
    if name == "sqlite":
        yield Files()
        return
    # Processes are killed here, not the server: what it has written stays.
    server = Server(settings={"fsync": "off"})
    try:
        server.start()
        store = OnServer(server.url)
        try:
            yield store
        finally:
            store.close()
    finally:
        server.remove()


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.proof.crash_points", description=__doc__)
    parser.add_argument("--store", choices=STORES, help="where the streams are; both if not given")
    parser.add_argument("--scenario", choices=tuple(SCENARIOS), help="only this one")
    parser.add_argument(
        "--point", type=_point, help="kill at this point only, given as a number, or as how its name begins"
    )
    parser.add_argument("--stride", type=int, default=1, help="kill at every so-many-th point")
    parser.add_argument("--first", type=int, default=1, help="the point to begin with")
    parser.add_argument("--plant", choices=tuple(PLANTS), help="let every process have this bug: it must be found")
    return parser.parse_args()


def _point(text: str) -> Point:
    return int(text) if text.isdigit() else text


if __name__ == "__main__":
    sys.exit(main())
