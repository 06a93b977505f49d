"""Every bench runs, checks its own work and prints a line of JSON. No figure is asserted: tests are not timed."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from bench import cold_start
from bench.__main__ import main
from bench.catalogue import BENCHES
from bench.checks import NotDoneError
from bench.cold_start import COMMANDS
from bench.cold_start import section as cold_start_section
from bench.compare import compare
from bench.core import core
from bench.growth import curves, exponent, sizes_of
from bench.growth import section as growth_section
from bench.growth_axes import AXES
from bench.growth_plot import plot
from bench.http import LONG_READS, READS
from bench.http import section as http_section
from bench.isolation import section
from bench.measure import cpu_seconds, machine, percentiles
from bench.places import on_disk
from bench.profile import STAGES
from bench.profile import section as stages_section
from bench.report import emit, result
from bench.rounds import measured
from bench.settings import Settings
from bench.studio import PAGES
from bench.studio import section as studio_section
from bench.w5_parts import effects_of
from mainspring import Mainspring
from mainspring.app.internals import internals_of
from mainspring.port.records import InstanceFilter
from tests.studio.serving import needs_browser, needs_page

SIZES = {"w1": 30, "w2": 5, "w3": 20, "w4": 20, "fan-out": 30, "replay": 50}
# Those that need no store, or only a real one. A kill needs so many that some are left behind it.
OTHER_SIZES = {"w5": 200, "processes": 3, "growth": 10}


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.measure.FSYNCS", 2)
    monkeypatch.setattr("bench.idle.SETTLE_SECONDS", 0.0)
    monkeypatch.setattr("bench.http_parts.LONG_STREAM", 20)
    for name, value in {"SAMPLES": 2, "LONG_SAMPLES": 1, "WARM": 0, "CONNECTIONS": 2, "SECONDS": 0.05}.items():
        monkeypatch.setattr(f"bench.http.{name}", value)
    for name, value in {"SAMPLES": 1, "MOVES": 3, "JUMPS": 2}.items():
        monkeypatch.setattr(f"bench.studio.{name}", value)
    monkeypatch.setattr("bench.idle.IDLE_SECONDS", 0.1)
    monkeypatch.setattr("bench.isolation.PASSES", 1)
    monkeypatch.setattr("bench.computing.PASSES", 1)
    monkeypatch.setattr("bench.growth.REPEATS", 1)
    for name in ("ORDERS", "NAPS", "AT_ONCE", "NOTES", "COLD_NOTES"):
        monkeypatch.setattr(f"bench.growth_axes.{name}", 5)
    monkeypatch.setattr("bench.growth_axes.NAP_SECONDS", 0.1)
    monkeypatch.setattr("bench.isolation.SECONDS", 0.1)
    monkeypatch.setattr("bench.isolation.BURST", 150)
    monkeypatch.setattr("bench.isolation.SECONDS_BETWEEN_BURSTS", 0.05)


def sound(name: str, settings: Settings) -> dict[str, Any]:
    """Return what a bench measured, if it has its figure and can be written down."""
    figures = measured(name, settings)
    assert figures[BENCHES[name].figure] > 0
    assert json.loads(json.dumps(figures)) == figures
    return figures


# What starts a browser, or six workers. The parts that they stand on are met by others: a full store and a server by
# http, a worker by w5 and idle.
MARKS = {"studio": [pytest.mark.soak, needs_page, needs_browser], "processes": [pytest.mark.soak]}
# Those that have a test of their own, and one that is w5 itself on SQLite.
ELSEWHERE = {"isolation", "profile", "cold-start", "w6", "w5-restart"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=MARKS.get(name, [])) for name in BENCHES if name not in ELSEWHERE]
)
def test_a_bench_measures_on_sqlite(name: str, tmp_path: Path) -> None:
    sound(name, Settings(str(tmp_path), n=(SIZES | OTHER_SIZES).get(name, 30), chunk=10, batch=10))


@pytest.mark.parametrize("name", sorted(SIZES))
def test_a_bench_measures_in_memory(name: str, tmp_path: Path) -> None:
    sound(name, Settings(str(tmp_path), store="memory", n=SIZES[name], chunk=10))


@pytest.mark.parametrize("store", ["sqlite", "memory"])
def test_timers_that_are_due_at_one_moment_are_measured(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asleep_for(seconds: float) -> dict[str, Any]:
        monkeypatch.setattr("bench.w6.SHORTEST_SLEEP_SECONDS", seconds)
        folder = tmp_path / f"{seconds:g}"
        folder.mkdir()
        return sound("w6", Settings(str(folder), store=store, n=30, chunk=10))

    try:
        figures = asleep_for(0.3)
    except NotDoneError:  # a busy machine: the moment had come before all were asleep
        figures = asleep_for(30.0)

    assert figures["early"] == 0


def test_timers_that_are_due_before_all_are_set_give_no_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.w6.SHORTEST_SLEEP_SECONDS", -1.0)

    with pytest.raises(NotDoneError, match="too busy"):
        measured("w6", Settings(str(tmp_path), store="memory", n=3, chunk=3))


def test_what_neighbours_wait_for_becomes_a_section_of_a_report(tmp_path: Path) -> None:
    figures = sound("isolation", Settings(str(tmp_path), n=30))

    lines = section({"store": "sqlite", "n": 30, **figures}).splitlines()

    assert lines[0] == "## Isolation on sqlite, 30 neighbours"
    assert [line.split(" ")[1] for line in lines[4:9]] == ["undisturbed", "poisoned", "hot", "enormous", "all"]
    assert all(figures[counted] > 0 for counted in ("faults", "poisoned_jobs", "bursts", "cold_folds", "cold_states"))


def test_the_stages_of_a_step_become_a_table_and_the_engine_is_left_as_it_was(tmp_path: Path) -> None:
    before = [getattr(owner, name) for _, _, functions in STAGES for owner, name in functions]
    figures = sound("profile", Settings(str(tmp_path), n=30, chunk=10))

    lines = stages_section({"n": 30, **figures}).splitlines()

    assert [getattr(owner, name) for _, _, functions in STAGES for owner, name in functions] == before
    assert len(lines) == 4 + len(STAGES) + 4
    assert all(figures[f"{who}: {stage}"] > 0 for who, stage, _ in STAGES if stage != "COMMIT and fsync")


def test_cold_starts_become_a_section_of_a_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[str, ...]] = []

    def fake(command: tuple[str, ...], compiled: Path) -> tuple[float, float]:
        assert compiled.is_dir()
        started.append(command)
        return (0.02, 0.01) if command == COMMANDS["bare"] else (0.12, 0.06)

    monkeypatch.setattr("bench.cold_start._started", fake)

    figures = sound("cold-start", Settings(str(tmp_path), n=2))

    assert started == [*COMMANDS.values()] * 3, "once to compile, and then in turns"
    assert (figures["bare_ms"], figures["app_ms"], figures["app_cpu_ms"]) == (20, 100, 50)
    lines = cold_start_section({"n": 2, **figures}).splitlines()
    assert lines[0] == "## Cold start"
    assert [line.endswith(" | 100 | 50 |") for line in lines[4:-2]] == [True] * (len(COMMANDS) - 1)
    assert list(tmp_path.glob("tmp*")) == []


def test_a_cold_start_is_timed_by_the_wall_and_by_the_processor(tmp_path: Path) -> None:
    wall, cpu = cold_start._started(COMMANDS["bare"], tmp_path)  # noqa: SLF001  the only part that starts something

    assert wall > 0
    assert cpu > 0
    with pytest.raises(SystemExit, match="exit code 3"):
        cold_start._started(("-c", "raise SystemExit(3)"), tmp_path)  # noqa: SLF001  as above


def test_questions_over_http_become_a_section_of_a_report(tmp_path: Path) -> None:
    figures = {f"{name} {each} ms": 1.0 for name in (*READS, *LONG_READS) for each in ("p50", "p99")}
    first = {"first stats s": 1.0, "first stuck, of a hundred s": 2.0, "search of all s": 3.0, "worst_p99_ms": 1.0}
    sent = {"sends_per_s": 999.0, "send_p50_ms": 1.0, "send_p99_ms": 2.0, "send_server_cpu_us_each": 300.0}
    busy = {"reads_others_busy": 0.1, "sends_others_busy": 0.2}

    lines = http_section({"store": "sqlite", "n": 30, **figures, **first, **sent, **busy}).splitlines()

    assert lines[0] == "## HTTP on sqlite, 30 instances"
    assert len(lines) == 4 + len(READS) + len(LONG_READS) + 4


def test_pages_in_a_browser_become_a_section_of_a_report() -> None:
    figures = {f"{name} {which}": 0.5 for name in PAGES for which in ("s", "worst s")}
    moves = {f"{what}_{percent}_ms": 20.0 for what in ("scrub", "jump") for percent in ("p50", "p99")}

    lines = studio_section({"n": 30, **figures, **moves}).splitlines()

    assert lines[0] == "## The studio in a browser, 30 instances"
    assert len(lines) == 4 + len(PAGES) + 2


def test_growth_becomes_a_section_and_a_picture(tmp_path: Path) -> None:
    figures = measured("growth", Settings(str(tmp_path), n=1_000, axis="stream"))

    result = {"store": "sqlite", "n": 1_000, **figures}
    assert curves(result)["stream"]["cpu"].keys() == {1, 10, 100}
    lines = growth_section(result).splitlines()
    assert lines[0] == "## Growth on sqlite"
    assert lines[4].startswith("| events in the stream | 1: ")
    picture = ET.fromstring(plot(result))  # noqa: S314  our own
    assert len(list(picture.iter("{http://www.w3.org/2000/svg}polyline"))) == 2


@pytest.mark.parametrize(("power", "found"), [(0.0, 0.0), (1.0, 1.0), (0.5, 0.5), (-1.0, -1.0)])
def test_the_exponent_is_the_slope_of_a_cost_over_a_size(power: float, found: float) -> None:
    assert exponent({size: 7 * size**power for size in (1, 10, 100, 1_000)}) == pytest.approx(found)


def test_a_stream_is_hardly_longer_than_is_said_while_it_is_measured(tmp_path: Path) -> None:
    async def main() -> None:
        async with AXES["stream"](Settings(str(tmp_path))) as axis:
            for size in (1, 10, 100):
                await axis.grow(size)
                for _ in range(5):
                    await axis.measured()
                app: Mainspring = axis._app  # type: ignore[attr-defined]  # noqa: SLF001  no other way to see it
                rows = await internals_of(app).engine.store.instances(InstanceFilter(), 1_000)
                assert max(row.version for row in rows) <= 1.1 * size + 3  # an instance begins with a few
            await axis.check()

    asyncio.run(main())


def test_each_axis_is_measured_to_its_own_end() -> None:
    sizes = {name: sizes_of(axis, 1_000_000)[-1] for name, axis in AXES.items()}

    assert sizes == {
        "finished": 1_000_000,
        "stream": 100_000,
        "stream-cold": 100_000,
        "concurrent": 10_000,
        "timers": 1_000_000,
    }


def test_killing_the_worker_needs_a_store_that_outlives_it(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="--store sqlite"):
        measured("w5", Settings(str(tmp_path), store="memory", n=3))


def test_workers_of_their_own_need_a_store_that_they_share(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="--store memory"):
        measured("w1", Settings(str(tmp_path), store="memory", workers=2))


@pytest.mark.parametrize(
    ("lines", "in_flight", "reason"),
    [
        (["o-1 ship k-1", "o-1 ship k-1"], 0, "1 ran twice (0 in flight)"),
        (["o-1 ship k-1", "o-1 ship k-2"], 1, "1 had two keys"),
        (["o-1 charge k-1"], 0, "1 never ran"),
    ],
)
def test_an_effect_too_many_or_too_few_is_found_in_the_ledger(
    lines: list[str], in_flight: int, reason: str, tmp_path: Path
) -> None:
    done = ["o-1 validate k-3", "o-1 charge k-2", *lines] if len(lines) > 1 else ["o-1 validate k-3", *lines]
    (tmp_path / "ledger").write_text("\n".join([*done, ""]))

    with pytest.raises(NotDoneError, match=re.escape(reason)):
        effects_of(tmp_path / "ledger", 1, in_flight)


def test_the_cpu_time_of_a_process_has_that_of_its_children() -> None:
    before = cpu_seconds(os.getpid())

    busy = "import time\nwhile time.process_time() < 0.1: pass"
    subprocess.run([sys.executable, "-c", busy], check=True)  # noqa: S603  Python itself

    # Half of it: the system counts in ticks, and each of four counters may lose one. Our own part is a few of them.
    assert cpu_seconds(os.getpid()) - before >= 0.05


def test_the_comparison_puts_the_engine_beside_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []

    def told(name: str, settings: Settings) -> dict[str, Any]:
        asked.append((name, settings.n))
        fast = {"limit": 1_000.0, "limit-bulk": 2_000.0, "w1": 600.0 if len(asked) < 6 else 500.0}
        slow = {"limit-loop": 2.0, "w2": 5.0}
        return {
            "instances_per_s": fast.get(name, 1.0),
            "p50_ms": slow.get(name, 1.0),
            "p99_ms": 9.0,
            "others_busy": 0.0,
        }

    monkeypatch.setattr("bench.compare.one_round", told)

    figures = compare(Settings(str(tmp_path), n=1_000), 2, lambda _: None)

    assert asked == [("limit", 1_000), ("w1", 1_000), ("limit-bulk", 1_000), ("limit-loop", 300), ("w2", 300)] * 2
    assert figures["w1_to_limit_rounds"] == [0.6, 0.5]
    assert figures["w1_to_limit"] == 0.55
    assert figures["w2_to_limit_loop"] == 2.5


def test_the_core_is_measured() -> None:
    assert core(instances=20, repeats=1)["steps_per_s"] > 0


def test_the_command_prints_one_line_of_json_for_each_result(
    disk: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    command = ["bench", "limit", "--n", "20", "--repeat", "1", "--json", "--dir", str(disk)]
    monkeypatch.setattr(sys, "argv", command)
    sigterm = signal.getsignal(signal.SIGTERM)

    try:
        main()  # its round runs in a process of its own
    finally:
        signal.signal(signal.SIGTERM, sigterm)

    told = capfd.readouterr()
    (line,) = told.out.splitlines()
    printed = json.loads(line)
    assert (printed["bench"], printed["n"], printed["repeats"]) == ("limit", 20, 1)
    assert machine().keys() <= printed.keys()
    assert told.err == ""
    assert list(disk.iterdir()) == []


def test_a_result_has_medians_and_every_round(capsys: pytest.CaptureFixture[str]) -> None:
    rounds = [{"instances_per_s": figure} for figure in (3.0, 1.0, 2.0)]

    emit(result("w1", "sqlite", 10, "instances_per_s", rounds), as_json=False)

    printed = capsys.readouterr().out
    assert printed.startswith("w1 · sqlite · n = 10\n  instances_per_s                2\n")
    assert "rounds                         3  1  2" in printed


def test_a_percentile_is_one_of_the_figures() -> None:
    assert percentiles([0.001 * n for n in range(1, 101)]) == {"p50_ms": 51.0, "p95_ms": 95.0, "p99_ms": 99.0}


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="there is no filesystem in memory here")  # noqa: S108  only asked
def test_a_folder_in_memory_is_refused() -> None:
    with pytest.raises(SystemExit, match="--dir"):
        on_disk(Path("/dev/shm"))  # noqa: S108  nothing is written
