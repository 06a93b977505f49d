"""The command finds what is green only by chance, and says under which conditions it ran."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.steady import report
from tests.steady.__main__ import asked_for
from tests.steady.load import busy
from tests.steady.runs import Conditions, Result, Run, conditions, run
from tests.support.paths import ROOT

FLAKY = """
import os
from pathlib import Path

def test_always_green():
    pass

def test_green_the_first_time_only():
    seen = Path(__file__).with_name("seen")
    assert not seen.exists(), "seen before"
    seen.touch()

def test_which_hash_seed():
    with Path(__file__).with_name("seeds").open("a") as file:
        file.write(os.environ["PYTHONHASHSEED"] + "\\n")
"""


LATE = """
import asyncio, threading
from mainspring.stores.memory import MemoryStore
from mainspring.testing.clock import VirtualClock

def test_no_answer_lets_another_task_go_first():
    async def main():
        store = MemoryStore(VirtualClock())
        await store.open()
        turns = 0
        for _ in range(200):
            turn = asyncio.ensure_future(asyncio.sleep(0))
            await store.stats()
            turns += turn.done()
            await turn
        assert turns == 0, "an answer came late"
    asyncio.run(main())

def test_what_a_thread_sends_comes_in_order():
    async def main():
        loop, came, all_came = asyncio.get_running_loop(), [], asyncio.Event()
        def send():
            for number in range(200):
                loop.call_soon_threadsafe(came.append, number)
            loop.call_soon_threadsafe(all_came.set)
        threading.Thread(target=send).start()
        await all_came.wait()
        assert came == list(range(200))
    asyncio.run(main())
"""


def ran(number: int = 1, code: int = 0, **tests: str) -> Run:
    made = Run(Conditions(number, loaded=False, order_seed=None, hash_seed=1), code, 1.0, 1.0)
    made.tests = {name: Result(outcome, 0.1 * number) for name, outcome in tests.items()}
    return made


def test_a_test_that_is_green_by_chance_is_named_with_its_failure_and_its_durations(tmp_path: Path) -> None:
    (tmp_path / "test_flaky.py").write_text(FLAKY)
    command = [sys.executable, "-m", "tests.steady", "--runs", "2", "--loaded", "1", "--seed", "5"]
    done = subprocess.run(  # noqa: S603  ours
        [*command, "--keep", str(tmp_path / "kept"), str(tmp_path), "--", "--numprocesses", "0"],
        cwd=ROOT,
        # Of all plugins that are installed only one is needed here, and loading the others takes seconds.
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "-p xdist.plugin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    page = (tmp_path / "kept/report.md").read_text()
    assert "1 failed; 1 tests were not green every time" in page
    [section] = [part for part in page.split("\n## ") if part.partition("\n")[0].endswith("time_only")]
    assert "outcomes: passed, failed" in section
    assert "AssertionError: seen before" in section
    assert "| quiet, file order, PYTHONHASHSEED=" in page
    assert "| loaded, random order" in page
    assert len(set((tmp_path / "seeds").read_text().split())) == 2


@pytest.mark.parametrize(
    "before",
    ["--runs 2 tests/engine tests/stores", "tests/engine tests/stores --runs 2", "tests/engine --runs 2 tests/stores"],
)
def test_options_and_tests_come_in_any_order_and_pytest_gets_what_stands_behind_them(before: str) -> None:
    asked = asked_for([*before.split(), "--", "-k", "one or two", "--", "--lf"])
    assert (asked.runs, asked.loaded, asked.tests) == (2, 0, ["tests/engine", "tests/stores"])
    assert asked.for_pytest == ["-k", "one or two", "--", "--lf"]
    assert asked_for(["--", "-k", "x"]).for_pytest == ["-k", "x"]
    assert asked_for(before.split()).for_pytest == []


@pytest.mark.parametrize("late", [True, False])
def test_answers_come_late_if_asked_for_and_those_of_one_thread_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, late: bool
) -> None:
    (tmp_path / "test_late.py").write_text(LATE)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # as above
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p xdist.plugin")
    given = Conditions(1, loaded=False, order_seed=None, hash_seed=1, late_seed=1 if late else None)
    done = run(given, [str(tmp_path), "--numprocesses", "0", "-p", "no:cacheprovider"], tmp_path)
    outcomes = {name.rpartition("::")[2]: test.outcome for name, test in done.tests.items()}
    assert outcomes == {
        "test_no_answer_lets_another_task_go_first": "failed" if late else "passed",
        "test_what_a_thread_sends_comes_in_order": "passed",
    }


@pytest.mark.parametrize("outcome", ["failed", "skipped"])
def test_a_test_whose_outcome_changes_is_not_steady(outcome: str) -> None:
    assert report.unsteady([ran(good="passed", bad="passed"), ran(good="passed", bad=outcome)]) == ["bad"]


def test_a_test_that_is_missing_in_a_run_is_not_steady() -> None:
    runs = [ran(good="passed", gone="passed"), ran(good="passed")]
    assert report.unsteady(runs) == ["gone"]
    assert not report.steady(runs)


def test_a_run_that_breaks_off_is_not_steady_though_all_its_tests_were_green() -> None:
    assert not report.steady([ran(good="passed"), ran(good="passed", code=3)])
    assert report.steady([ran(good="passed"), ran(good="passed")])


def test_the_slowest_tests_are_told_by_their_medians() -> None:
    assert "- 0.20 s good" in report.page([ran(number, good="passed") for number in (1, 2, 3)])


def test_runs_differ_in_load_order_and_hash_seed_and_the_same_seed_gives_the_same_again() -> None:
    made = list(conditions(10, 4, seed=7))
    assert sum(each.loaded for each in made) == 4
    assert [each.order_seed is None for each in made] == [True, False] * 5
    assert len({each.hash_seed for each in made}) == 10
    assert {each.loaded for each in made if each.order_seed is None} == {True, False}
    assert list(conditions(10, 4, seed=7)) == made
    assert list(conditions(10, 4, seed=8)) != made
    assert [each.late_seed for each in conditions(10, 4, seed=7, late=True)] == [each.hash_seed for each in made]


def test_the_load_keeps_every_core_and_the_disk_busy_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[bytes]] = []
    begin = subprocess.Popen

    def noted(command: list[str]) -> subprocess.Popen[bytes]:
        started.append(begin(command))
        return started[-1]

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("subprocess.Popen", noted)
    with busy():
        assert [process.poll() for process in started] == [None] * ((os.cpu_count() or 1) + 1)
        assert len(list(tmp_path.iterdir())) == 1
    assert all(process.returncode is not None for process in started)
    assert list(tmp_path.iterdir()) == []
