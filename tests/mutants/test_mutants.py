"""The tool on a toy: a package of one module whose mutants are known, with tests that notice some of them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutants.equivalents import equivalents, stale
from tests.mutants.mutations import Mutant, module_at, mutants_of, sampled
from tests.mutants.report import Report
from tests.mutants.run import Tried
from tests.support.paths import ROOT

TOY = """\
LIMIT = 3


def fits(count: int) -> bool:
    \"\"\"Tell whether so many fit.\"\"\"
    if count < 0:
        raise ValueError("less than nothing")
    return count <= LIMIT


def halved(count: int) -> int:
    while count > 1:
        count //= 2
    return count


def unused() -> int:
    return 7
"""
TESTS = """\
import warnings

import pytest
from toy_package.toy import fits, halved


@pytest.mark.filterwarnings("error")
def test_its_marks_hold():
    with pytest.raises(UserWarning):
        warnings.warn("of the toy")


def test_fits():
    assert fits(3)
    assert not fits(5)
    with pytest.raises(ValueError):
        fits(-2)


def test_halved():
    assert halved(9) == 1
"""
FAILS_ALONE = """\
from toy_package import toy


def test_limit(request):
    # In a session of its own the folder is named, in a process of their own the files.
    assert toy.LIMIT == 3 and not request.config.args[0].endswith(".py")
"""
SAME = """\
[[mutant]]
module = "toy_package.toy"
function = "{}"
before = "if count < 0:"
after = "if (count <= 0):"
reason = "for this test"
"""


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    package = tmp_path / "toy_package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "toy.py").write_text(TOY)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_toy.py").write_text(TESTS)
    return tmp_path


def run(toy: Path, same: str = "") -> subprocess.CompletedProcess[str]:
    (toy / "same.toml").write_text(same)
    options = ["--source", toy / "toy_package", "--tests", toy / "tests", "--equivalents", toy / "same.toml"]
    options += ["--least-seconds", "0.5"]  # many times what its tests take
    return subprocess.run(  # noqa: S603  our own
        [sys.executable, "-m", "tests.mutants", *map(str, options)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(toy)},
        check=False,
    )


def changes(mutants: list[Mutant]) -> list[tuple[str, str]]:
    return [mutant.change for mutant in mutants]


def test_what_the_tests_do_not_notice_is_told_with_the_score_and_what_they_notice_is_not(toy: Path) -> None:
    done = run(toy, SAME.format("fits"))

    survived = set(re.findall(r"\n- (.*)\n\+ (.*)", done.stdout))
    assert survived == {
        ("LIMIT = 3", "LIMIT = 4"),
        ("if count < 0:", "if count < 1:"),
        ("count //= 2", "count //= 3"),
        ("return 7", "return None"),
        ("return 7", "return 8"),
    }
    assert "not reached: toy_package.toy:18 in unused" in done.stdout
    # halved, in which nothing is halved, never ends.
    assert re.search(r"toy_package\.toy +\d+ +\d+ +1 +1 +5 ", done.stdout)
    assert done.returncode == 1


def test_tests_that_fail_without_a_mutant_in_a_process_of_their_own_are_told(toy: Path) -> None:
    (toy / "toy_package" / "toy.py").write_text("LIMIT = 3\n")
    (toy / "tests" / "test_toy.py").write_text(FAILS_ALONE)
    done = run(toy)

    assert "fail in a process of their own, without any mutant" in done.stderr
    assert (done.returncode, done.stdout) == (1, "")


def test_a_run_is_good_only_when_every_survivor_is_listed_and_nothing_listed_is_killed(toy: Path) -> None:
    (toy / "same.toml").write_text(SAME.format("fits"))
    listed = equivalents(toy / "same.toml")
    mutants = mutants_of(module_at(toy / "toy_package" / "toy.py"))
    same = next(mutant for mutant in mutants if mutant.key in listed)
    others = [Tried(mutant, "killed") for mutant in mutants if mutant is not same]

    assert Report([*others, Tried(same, "survived")], listed, [], 1.0).is_good
    assert Report([*others, Tried(same, "timed out")], listed, [], 1.0).is_good
    assert not Report([*others, Tried(same, "killed")], listed, [], 1.0).is_good
    assert not Report([*others, Tried(same, "survived")], {}, [], 1.0).is_good
    assert not Report(others, {}, list(listed.values()), 1.0).is_good


def test_an_equivalent_that_no_longer_exists_is_told(toy: Path) -> None:
    module = module_at(toy / "toy_package" / "toy.py")
    for function, told in (("fits", []), ("fitted", ["fitted"])):
        (toy / "same.toml").write_text(SAME.format(function))
        found = stale(equivalents(toy / "same.toml").values(), mutants_of(module))
        assert [each.function for each in found] == told


def test_what_only_people_read_is_left_as_it_is(toy: Path) -> None:
    module = module_at(toy / "toy_package" / "toy.py")
    assert not [after for _, after in changes(mutants_of(module)) if "less" in after or "Tell" in after]


def test_every_mutant_can_be_compiled_and_is_another() -> None:
    path = ROOT / "src" / "mainspring" / "core" / "saga.py"
    mutants = mutants_of(module_at(path))
    for mutant in mutants:
        compile(mutant.source, str(path), "exec")
    assert len({mutant.source for mutant in mutants} - {path.read_bytes()}) == len(mutants) > 100


def test_a_sample_is_the_same_for_the_same_seed() -> None:
    mutants = mutants_of(module_at(ROOT / "src" / "mainspring" / "core" / "saga.py"))
    assert sampled(mutants, 0.1, 1) == sampled(mutants, 0.1, 1) != sampled(mutants, 0.1, 2)
    assert len(sampled(mutants, 0.1, 1)) == round(len(mutants) / 10)


def test_every_listed_equivalent_is_a_mutant_of_today_and_has_its_reason() -> None:
    listed = equivalents()
    modules = {each.module for each in listed.values()}
    paths = [ROOT / "src" / Path(*name.split(".")).with_suffix(".py") for name in modules]
    assert stale(listed.values(), [mutant for path in paths for mutant in mutants_of(module_at(path))]) == []
    assert all(len(each.reason) > 20 for each in listed.values())
