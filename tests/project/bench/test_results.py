"""The comparison: who takes part when, what figures come to, and the page that is written. No figure is asserted."""

from __future__ import annotations

import doctest
import importlib
import signal
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from msgspec import json

from bench.comparison import Comparison, Sample
from bench.comparison_page import plot, section
from bench.contenders import (
    BARE,
    CONTENDERS,
    DBOS,
    MAINSPRING,
    RESTATE,
    WORKLOADS,
    Contender,
    RunError,
    end,
    printed,
    run,
)
from bench.page import put
from bench.results import compared, main, write
from bench.rounds import measured
from bench.settings import Settings
from bench.targets import outcomes

LIMIT = Contender(BARE, "sqlite")
OURS = Contender(MAINSPRING, "sqlite", "best")
PEER = Contender(DBOS, "sqlite", "best")
SERVED = Contender(RESTATE, "own", "best")


def made(*runs: tuple[Contender, str, list[dict[str, Any]]], **more: Any) -> Comparison:
    """A comparison in which these contenders had these figures in these workloads, round by round."""
    samples = [
        Sample(contender, workload, round, 10, figures)
        for contender, workload, rounds in runs
        for round, figures in enumerate(rounds)
    ]
    return Comparison({"Python": "3.11"}, samples, **more)


def rates(*figures: float) -> list[dict[str, Any]]:
    return [{"instances_per_s": figure} for figure in figures]


@pytest.mark.parametrize("module", ["comparison", "comparison_page", "page", "peers.http", "report", "targets"])
def test_docstring_examples_run(module: str) -> None:
    done = doctest.testmod(importlib.import_module(f"bench.{module}"))

    assert done.attempted
    assert done.failed == 0


# ---- what figures come to


def test_a_ratio_is_taken_round_by_round() -> None:
    # The machine was slow in the first round, for both.
    comparison = made((OURS, "w1", rates(100, 900, 1_000)), (LIMIT, "w1", rates(200, 1_800, 2_000)))

    ratio = comparison.ratio((OURS, "w1"), (LIMIT, "w1"), "instances_per_s")

    assert ratio is not None
    assert (ratio.least, ratio.middle, ratio.most) == (0.5, 0.5, 0.5)


def test_a_round_that_only_one_of_both_has_makes_no_ratio() -> None:
    comparison = made((OURS, "w1", rates(100, 900)), (PEER, "w1", rates(10)))

    ratio = comparison.ratio((OURS, "w1"), (PEER, "w1"), "instances_per_s")

    assert ratio is not None
    assert (ratio.middle, ratio.rounds) == (10, 1)


@pytest.mark.parametrize(("ours", "verdict"), [(560.0, "met"), (540.0, "missed")])
def test_a_target_is_met_or_missed_by_the_median(ours: float, verdict: str) -> None:
    comparison = made((OURS, "w1", rates(ours, 1, 2_000)), (LIMIT, "w1", rates(1_000, 1_000, 1_000)))

    found = {(outcome.target.what, outcome.target.store): outcome.verdict for outcome in outcomes(comparison)}

    assert found["W1 to the bare limit", "sqlite"] == verdict
    assert found["W1 to the bare limit", "postgres"] == "not measured"
    assert found["W1 to DBOS's best", "sqlite"] == "not measured"


def test_less_is_better_where_time_is_measured() -> None:
    comparison = made((OURS, "w4", [{"seconds": 0.29}]), (OURS, "w6", [{"late_s": 1.6}]))

    found = {(outcome.target.what, outcome.target.store): outcome.verdict for outcome in outcomes(comparison)}

    assert found["W4", "sqlite"] == "met"
    assert found["W6, late", "sqlite"] == "missed"


# ---- who runs when


def fake(contender: Contender, workload: str, settings: Settings) -> dict[str, Any]:
    return {"seconds": 1.0}


def test_all_contenders_do_a_workload_before_the_next_one(tmp_path: Path) -> None:
    samples = compared(Settings(str(tmp_path)), [OURS, PEER], fake, rounds=2, minutes=9, quick=True)

    first = [(sample.workload, sample.contender) for sample in samples if sample.round == 0]
    assert first == [(workload, contender) for workload in WORKLOADS for contender in (OURS, PEER)]
    assert [sample.round for sample in samples] == sorted(sample.round for sample in samples)


def test_peers_do_what_takes_long_in_every_second_round(tmp_path: Path) -> None:
    samples = compared(Settings(str(tmp_path)), [OURS, PEER], fake, rounds=3, minutes=9, quick=True)

    def rounds(contender: Contender, workload: str) -> list[int]:
        return [sample.round for sample in samples if (sample.contender, sample.workload) == (contender, workload)]

    assert rounds(PEER, "w6") == [0, 2]
    assert rounds(PEER, "w1") == rounds(OURS, "w6") == [0, 1, 2]


def test_no_round_begins_that_would_end_too_late(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    samples = compared(Settings(str(tmp_path)), [OURS], fake, rounds=3, minutes=0, quick=True)

    assert {sample.round for sample in samples} == {0}
    assert "1 of 3 were made" in capsys.readouterr().err


def test_a_run_without_a_figure_stops_nobody(tmp_path: Path) -> None:
    def failing(contender: Contender, workload: str, settings: Settings) -> dict[str, Any]:
        if contender == PEER and workload == "w5":
            raise RunError("2 of 3 were done | after 300 s")
        return {"seconds": 1.0}

    samples = compared(Settings(str(tmp_path)), [PEER, OURS], failing, rounds=1, minutes=9, quick=True)
    page = section(Comparison({}, samples), "results.svg")

    assert [sample.workload for sample in samples if sample.failure] == ["w5"]
    assert len(samples) == 2 * len(WORKLOADS)
    assert "- no figure: DBOS, SQLite, best, w5, round 1: 2 of 3 were done / after 300 s" in page
    assert "failed" in next(line for line in page.splitlines() if line.startswith("| DBOS, SQLite, best"))


# ---- the page


def test_the_table_has_medians_with_their_spread_and_who_could_not_come() -> None:
    comparison = made(
        (OURS, "w1", rates(3_000, 1_000, 2_000)), (PEER, "w1", rates(80)), absent={RESTATE: "not installed (npm: no)"}
    )

    lines = section(comparison, "results.svg").splitlines()

    assert any(line.startswith("| mainspring, SQLite, best | 2,000 (1,000 to 3,000) |") for line in lines)
    assert any(line.startswith("| DBOS, SQLite, best | 80 | - |") for line in lines)
    assert any(line.startswith("| Restate: not installed (npm: no) | - |") for line in lines)
    assert not any(line.startswith("| Restate, best") for line in lines)


def test_a_short_run_is_judged_by_no_target() -> None:
    page = section(made((OURS, "w1", rates(1)), quick=True), "results.svg")

    assert "missed" not in page
    assert "no measurement" in page


def test_the_picture_has_a_bar_for_each_figure_above_zero() -> None:
    comparison = made((OURS, "w1", rates(3_000, 2_000)), (PEER, "w1", rates(80)), (SERVED, "w6", [{"late_s": 0.0}]))

    drawn = ET.fromstring(plot(comparison))  # noqa: S314  our own

    texts = [text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert [text for text in texts if text in {"mainspring, SQLite, best", "DBOS, SQLite, best"}]
    assert "Restate, best" not in texts
    widths = [
        float(bar.attrib["width"])
        for bar in drawn.iter("{http://www.w3.org/2000/svg}rect")
        if "fill" in bar.attrib and "x" in bar.attrib
    ]
    assert widths[0] > widths[1] > 0


def test_a_section_is_written_anew_and_the_others_stay(tmp_path: Path) -> None:
    page = tmp_path / "there" / "RESULTS.md"

    put(page, "comparison", "## Speed\nslow")
    put(page, "growth", "## Growth\nflat")
    put(page, "comparison", "## Speed\nfast \\1")

    assert page.read_text() == (
        "# Results\n\n<!-- comparison: begin -->\n## Speed\nfast \\1\n<!-- comparison: end -->\n\n"
        "<!-- growth: begin -->\n## Growth\nflat\n<!-- growth: end -->\n"
    )


# ---- real runs


def test_mainspring_and_the_limit_are_compared_for_real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def here(name: str, settings: Settings) -> dict[str, Any]:
        folder = tmp_path / f"{name}-{settings.tuned}-{settings.n}"
        folder.mkdir()
        # Tuning is for the whole process, and this one is the tests'.
        return measured(name, Settings(str(folder), settings.store, n=settings.n))

    monkeypatch.setattr("bench.contenders.one_round", here)
    monkeypatch.setattr("bench.contenders.QUICK", {"w1": 20, "w2": 3, "w3": 5, "w3-long": 10, "w4": 5})
    monkeypatch.setattr("bench.results.WORKLOADS", ("w1", "w2", "w3", "w3-long", "w4"))
    those = [contender for contender in CONTENDERS if contender.store == "sqlite" and not contender.is_peer]

    samples = compared(Settings(str(tmp_path)), those, run, rounds=1, minutes=9, quick=True)
    write(Comparison({}, samples, quick=True), tmp_path)

    assert [sample.failure for sample in samples] == [""] * (2 * 3 + 3 * 2)
    assert "| mainspring, SQLite, default |" in (tmp_path / "RESULTS.md").read_text()
    assert (tmp_path / "results.svg").read_text().startswith("<svg")


def test_what_was_measured_is_written_once_more_without_measuring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = tmp_path / "results.json"
    saved.write_bytes(json.encode(made((OURS, "w1", rates(7)))))
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(sys, "argv", ["results", "--again", str(saved), "--to", str(tmp_path)])

    try:
        main()
    finally:
        signal.signal(signal.SIGTERM, before)

    assert "| mainspring, SQLite, best | 7 |" in (tmp_path / "RESULTS.md").read_text()


def test_all_done_before_the_kill_is_no_recovery(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.contenders.one_round", lambda *_: {"seconds": 1.0, "completed_at_kill": 3})

    with pytest.raises(RunError, match="before the kill"):
        run(OURS, "w5", Settings(str(tmp_path), n=3))


@pytest.mark.parametrize(
    ("code", "reason"), [("sys.exit('no figure: 1 lost')", "no figure: 1 lost"), ("sys.exit(3)", "exit code 3")]
)
def test_a_peer_that_fails_has_no_figure_but_a_reason(code: str, reason: str) -> None:
    with pytest.raises(RunError, match=reason):
        printed([sys.executable, "-c", f"import sys; {code}"])


def test_a_peer_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.contenders.PEER_SECONDS", 0.1)
    ended: list[int] = []

    def spied(process: Any) -> None:
        end(process)
        ended.append(process.returncode)

    monkeypatch.setattr("bench.contenders.end", spied)

    with pytest.raises(RunError, match="not done after"):
        printed([sys.executable, "-c", "import time; time.sleep(60)"])

    assert ended == [-signal.SIGTERM]
