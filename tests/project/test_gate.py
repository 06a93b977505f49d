"""What gates a change is what CONTRIBUTING tells a person to run."""

import re

from tests.support.paths import ROOT

RULES = {
    target: (needs.split(), recipe)
    for target, needs, recipe in re.findall(
        r"^(\w+): ([^#\n]*)(?:##.*)?\n((?:\t.*\n)*)", (ROOT / "Makefile").read_text(), re.MULTILINE
    )
}


def test_ci_runs_what_a_contributor_is_told_to_run() -> None:
    commands = [line for line in (ROOT / ".ci/run").read_text().splitlines() if line.startswith("make ")]
    assert commands == ["make browser", "make poolers", "make check"]
    assert (ROOT / "CONTRIBUTING.md").read_text().splitlines()[2].startswith("`make check` is the whole gate")


def test_the_gate_has_format_lint_types_rings_page_and_tests() -> None:
    assert RULES["check"][0] == ["lint", "test"]
    lint = RULES["lint"][1]
    wanted = ("ruff format --check .", "ruff check .", "basedpyright", "lint-imports", "make_page.py --check")
    assert [tool for tool in wanted if tool not in lint] == []
    assert "-m pytest --numprocesses auto" in RULES["test"][1]
