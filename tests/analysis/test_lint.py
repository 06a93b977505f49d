"""Lint: a corpus of small apps, good and bad, with what is to be found in each; and no false alarm on the examples."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from mainspring.analysis.lint import RULES, lint
from tests.analysis.example_apps import APPS

FOLDER = Path(__file__).parent / "lint_corpus"
CORPUS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in ("__init__", "common"))


def expected(name: str) -> list[str]:
    doc = import_module(f"tests.analysis.lint_corpus.{name}").__doc__ or ""
    codes = doc.strip().rpartition("expect: ")[2].split()
    return [] if codes == ["nothing"] else sorted(codes)


@pytest.mark.parametrize("name", CORPUS)
def test_lint_finds_what_is_to_be_found_and_nothing_else(name: str) -> None:
    report = lint(import_module(f"tests.analysis.lint_corpus.{name}").app)

    assert sorted(finding.code for finding in report.findings) == expected(name), "\n".join(map(str, report.findings))


def test_the_corpus_is_large_and_has_every_rule() -> None:
    assert len(CORPUS) >= 40
    assert {code for name in CORPUS for code in expected(name)} == set(RULES)


@pytest.mark.parametrize("example", APPS)
def test_the_examples_raise_no_alarm(example: str) -> None:
    assert lint(APPS[example]).findings == ()
