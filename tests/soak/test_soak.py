from pathlib import Path

import pytest

from tests.soak.parts import PARTS, Part
from tests.soak.run import Ran, page, run

GOOD = Part("good", "-c \"print('noise'); print('## Good'); print('3 rounds')\"", "-c \"print('## Good, short')\"")
BAD = Part("bad", "-c \"print('seed 7'); raise SystemExit(1)\"", "-c 1")


def ran(*parts: Part, short: bool = False) -> list[Ran]:
    return list(run(parts, short=short, tell=lambda _: None))


def test_the_page_has_what_a_part_closes_with() -> None:
    text = page(ran(GOOD))
    assert "All 1 parts held." in text
    assert "## Good\n3 rounds\n" in text
    assert "noise" not in text


def test_a_part_that_fails_is_told_with_its_last_lines_and_how_to_repeat_it_and_the_next_runs_all_the_same() -> None:
    text = page(ran(BAD, GOOD))
    assert "**1 of 2 parts failed.**" in text
    assert "## bad: FAILED (exit code 1)" in text
    assert "seed 7" in text
    assert "Again: `python -c" in text
    assert "## Good\n3 rounds\n" in text


def test_the_short_form_is_another_command() -> None:
    assert "## Good, short" in page(ran(GOOD, short=True))


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
@pytest.mark.parametrize("short", [False, True])
def test_every_part_is_a_module_of_this_tree(part: Part, short: bool) -> None:
    dash_m, module, *rest = part.command(short=short)
    assert dash_m == "-m"
    path = Path(*module.split("."))
    tests = [Path(each) for each in rest if each.startswith("tests/")]
    assert path.with_suffix(".py").exists() or (path / "__main__.py").exists() or (module == "pytest" and tests)
    assert [each for each in tests if not each.exists()] == []
