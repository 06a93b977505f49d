"""The chosen mistakes fit the code as it is, and their runner tells who was noticed from who was not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mutants import chosen
from tests.mutants.chosen import CHOSEN, Finding, Verdict, is_stale, judged, main, report
from tests.mutants.mistake import Mistake
from tests.support.paths import ROOT

CODE = "def add(a, b):\n    return a + b\n\n\ndef never(a):\n    return a\n"
TESTS = """\
import subprocess
import sys

from mainspring.sums import add


def test_two_and_three_are_five():
    assert add(2, 3) == 5


def test_a_process_adds_as_we_do():
    told = subprocess.run([sys.executable, "-c", "from mainspring.sums import add; print(add(2, 2))"], stdout=-1)
    assert told.stdout == b"4\\n"


def test_what_fails_in_any_case():
    assert add(0, 0) == 1
"""


def toy(name: str = "wrong", original: str = "a + b", replacement: str = "a - b", test: str = "") -> Mistake:
    return Mistake(name, "sums.py", original, replacement, (f"test_sums.py{test and '::'}{test}",))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A project of one module and its tests, in the place of mainspring."""
    package = tmp_path / "src" / "mainspring"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "sums.py").write_text(CODE)
    (tmp_path / "test_sums.py").write_text(TESTS)
    return tmp_path


@pytest.fixture(autouse=True)
def _no_plugin_of_mainspring(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]  by its mark
    # The package of the toy has the name of ours, and none of its modules.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def test_a_mistake_that_a_test_notices_is_killed_by_that_test_also_in_a_process_that_it_starts(tree: Path) -> None:
    finding = judged(toy(test="test_a_process_adds_as_we_do"), root=tree)
    assert (finding.verdict, finding.told) == ("killed", "test_sums.py::test_a_process_adds_as_we_do")


def test_a_mistake_that_no_test_notices_survives(tree: Path) -> None:
    mistake = toy(original="return a\n", replacement="return -a\n", test="test_two_and_three_are_five")
    assert judged(mistake, root=tree).verdict == "survived"


def test_a_test_that_fails_in_any_case_kills_nothing(tree: Path) -> None:
    finding = judged(toy(replacement="b + a", test="test_what_fails_in_any_case"), root=tree)
    assert finding.verdict == "broken"
    assert "fails without it too" in finding.told


def test_code_that_is_not_there_or_there_twice_is_stale(tree: Path) -> None:
    assert judged(toy(original="a / b"), root=tree).verdict == "stale"
    assert judged(toy(original="return a"), root=tree).verdict == "stale"


def test_what_takes_too_long_is_ended_and_told_apart(tree: Path) -> None:
    assert judged(toy(), seconds=0.01, root=tree).verdict == "hung"


def test_the_page_begins_with_the_score_and_with_what_nobody_noticed() -> None:
    lines = report([Finding(toy("a"), "killed", "t::x", 1), Finding(toy("b"), "survived", "all pass", 1)]).splitlines()
    assert lines[1] == "50.0% of 2 are noticed"
    assert lines[3] == "survived sums.py: b (1 s)"


def test_too_few_kills_or_a_stale_one_are_an_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    verdicts: Iterator[Verdict] = iter(("killed", "survived", "stale", "killed"))
    monkeypatch.setattr(chosen, "judged", lambda mistake, *_: Finding(mistake, next(verdicts), "", 0))
    assert [main(["--jobs", "1"], chosen=[toy()]) for _ in range(4)] == [0, 1, 1, 0]


def test_only_those_that_are_asked_for_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list", "--only", "early"], chosen=[toy("too early"), toy("too late")]) == 0
    assert capsys.readouterr().out == "sums.py: too early\n"


def test_there_are_sixty_with_names_of_their_own() -> None:
    assert len({mistake.name for mistake in CHOSEN}) == len(CHOSEN) >= 60


@pytest.mark.parametrize("mistake", CHOSEN, ids=lambda mistake: mistake.name)
def test_every_chosen_mistake_changes_code_that_is_there_once_and_names_tests_that_are_there(mistake: Mistake) -> None:
    assert mistake.original != mistake.replacement
    assert not is_stale(mistake)
    for named in mistake.tests:
        path, _, test = named.partition("::")
        assert (ROOT / path).exists()
        if test:
            assert f"def {test.partition('[')[0]}(" in (ROOT / path).read_text()
