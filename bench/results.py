"""`python -m bench.results` runs each workload for all contenders in turns, and writes bench/RESULTS.md with a plot."""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import signal
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from msgspec import json, structs

from bench import comparison_page, contenders
from bench.comparison import Comparison, Sample
from bench.contenders import CONTENDERS, DBOS, RESTATE, WORKLOADS, Contender, Run, RunError
from bench.measure import Figures, Meter, fsync_ms, machine
from bench.page import put
from bench.peers import install
from bench.places import filesystem, on_disk
from bench.servers import VARIABLE, connection, measured_server
from bench.settings import Settings

HERE: Final = Path(__file__).parent
BUILD: Final = HERE.parent / "build" / "bench"
ROUNDS: Final = 5
MINUTES: Final = 24.0
SECTION: Final = "comparison"
PEERS: Final = {DBOS: "dbos", RESTATE: "restate"}


def main() -> None:
    asked = _parser().parse_args()
    # Or what was started for a run would outlive it.
    signal.signal(signal.SIGTERM, _end)
    try:
        comparison = _read(asked.again) if asked.again else _measured(asked)
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    # A short run proves nothing, so it does not take the place of one that does.
    place = BUILD if comparison.quick else HERE
    write(comparison, asked.to or place)
    tell(f"written: {asked.to or place}/RESULTS.md")


def write(comparison: Comparison, place: Path) -> None:
    """Write the page and its picture."""
    put(place / "RESULTS.md", SECTION, comparison_page.section(comparison, "results.svg"))
    (place / "results.svg").write_text(comparison_page.plot(comparison))


def compared(
    settings: Settings,
    those: Sequence[Contender],
    run: Run,
    *,
    rounds: int,
    minutes: float,
    quick: bool,
) -> list[Sample]:
    """Run each workload for all contenders before the next one, round after round, as long as there is time."""
    samples: list[Sample] = []
    begun, longest = time.monotonic(), 0.0
    for round in range(rounds):
        if round and time.monotonic() - begun + longest > minutes * 60:
            tell(f"another round would take longer than {minutes:g} minutes: {round} of {rounds} were made")
            break
        round_begun = time.monotonic()
        for workload in WORKLOADS:
            for contender in those:
                if contender.takes_part(workload, round):
                    own = structs.replace(settings, n=contender.size(workload, quick=quick))
                    samples.append(_sample(contender, workload, round, own, run))
        longest = max(longest, time.monotonic() - round_begun)
    return samples


def _sample(contender: Contender, workload: str, round: int, settings: Settings, run: Run) -> Sample:
    about = f"round {round + 1}: {workload}, {contender.name}"
    try:
        with Meter(workers=[os.getpid()]) as meter:
            figures = run(contender, workload, settings)
    except RunError as reason:
        tell(f"{about}: no figure: {reason}")
        return Sample(contender, workload, round, settings.n, failure=str(reason))
    tell(f"{about}: {_main_figure(figures)}, {meter.seconds:.0f} s")
    # Of the whole run with all its processes, where a bench knows its own part only.
    busy = meter.figures()["others_busy"]
    return Sample(contender, workload, round, settings.n, figures={**figures, "others_busy": busy})


def _main_figure(figures: Figures) -> str:
    name = next(name for name in ("instances_per_s", "p50_ms", "late_s", "seconds") if name in figures)
    return f"{name} {figures[name]:,g}"


def _measured(asked: argparse.Namespace) -> Comparison:
    folder = on_disk(asked.dir)
    absent = _absent(asked.peers)
    those = [contender for contender in CONTENDERS if contender.engine not in absent]
    with measured_server(Settings(str(folder), "postgres"), asked.url) as settings:
        facts = facts_of(settings)
        samples = compared(
            settings,
            those,
            contenders.run,
            rounds=1 if asked.quick else asked.rounds,
            minutes=asked.minutes,
            quick=asked.quick,
        )
    comparison = Comparison(facts, samples, absent, asked.quick)
    BUILD.mkdir(parents=True, exist_ok=True)
    (BUILD / "results.json").write_bytes(json.encode(comparison))
    return comparison


def _absent(wanted: bool) -> dict[str, str]:
    """Install the peers, and return those that cannot take part with the reason."""
    absent: dict[str, str] = {}
    for engine, peer in PEERS.items():
        if not wanted:
            absent[engine] = "left out (--no-peers)"
            continue
        tell(f"installing {engine}, unless it is there")
        try:
            install.installed(peer)
        except install.Unavailable as reason:
            absent[engine] = f"not installed ({reason})"
    return absent


def facts_of(settings: Settings) -> Figures:
    """Return the machine's facts."""
    found = machine()
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": f"{found['cores']} cores, {found['machine']}, {_processor()}",
        "system": f"{found['system']} {platform.release()}",
        "Python": found["python"],
        "SQLite": f"{found['sqlite']}, WAL, synchronous=FULL",
        "PostgreSQL": asyncio.run(_server(settings)),
        "disk": f"{filesystem(settings.path)}, {fsync_ms(settings.path)} ms to keep 4 KiB",
        "load before": found["load"],
    }


async def _server(settings: Settings) -> str:
    """Return the server's version. That it is durable was checked before."""
    async with connection(settings) as opened:
        version = await opened.fetchval("SHOW server_version")
    return f"{version}, fsync, full_page_writes and synchronous_commit on"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def _read(path: Path) -> Comparison:
    return json.decode(path.read_bytes(), type=Comparison)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.results", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one round of small sizes, written to build/bench")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how many at most (default: %(default)s)")
    parser.add_argument(
        "--minutes", type=float, default=MINUTES, help="begin no round that would end later (%(default)g)"
    )
    parser.add_argument("--no-peers", dest="peers", action="store_false", help="mainspring and the limit only")
    parser.add_argument("--url", help=f"a PostgreSQL server (default: {VARIABLE}, or one started for the run)")
    parser.add_argument("--dir", type=Path, help="a folder on a real disk, for the runs' own folders")
    parser.add_argument("--to", type=Path, help="the folder for RESULTS.md (default: bench, or build/bench if --quick)")
    parser.add_argument(
        "--again", type=Path, metavar="JSON", help="write the page anew from a run's build/bench/results.json"
    )
    return parser


def _end(*_: object) -> None:
    raise SystemExit(143)


def tell(what: str) -> None:
    sys.stderr.write(f"{what}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main()
