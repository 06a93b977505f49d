"""Lint: a corpus of small apps, good and bad, with what is to be found in each; and no false alarm on the examples."""

from __future__ import annotations

import json
import re
import sys
from importlib import import_module
from itertools import permutations
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mainspring.analysis.lint.check import lint, once
from mainspring.analysis.lint.rules import RULES, Finding, Report, finding
from mainspring.analysis.reading.model import Place
from mainspring.cli.group import commands
from tests.support.paths import ROOT
from tests.unit.analysis.approved import approved
from tests.unit.analysis.example_apps import APPS

FOLDER = Path(__file__).parent / "lint_corpus"
CORPUS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in ("__init__", "common"))


def expected(name: str) -> list[str]:
    doc = import_module(f"tests.unit.analysis.lint_corpus.{name}").__doc__ or ""
    codes = doc.strip().rpartition("expect: ")[2].split()
    return [] if codes == ["nothing"] else sorted(codes)


@pytest.mark.parametrize("name", CORPUS)
def test_lint_finds_what_is_to_be_found_and_nothing_else(name: str) -> None:
    report = lint(import_module(f"tests.unit.analysis.lint_corpus.{name}").app)

    assert sorted(finding.code for finding in report.findings) == expected(name), "\n".join(map(str, report.findings))


def test_the_corpus_is_large_and_has_every_rule() -> None:
    assert len(CORPUS) >= 40
    assert {code for name in CORPUS for code in expected(name)} == set(RULES)


@pytest.mark.parametrize("example", APPS)
def test_the_examples_raise_no_alarm(example: str) -> None:
    assert lint(APPS[example]).findings == ()


def test_what_is_intended_is_told_with_its_reason() -> None:
    (intended,) = lint(APPS["credit_limit"]).intended

    assert intended.finding.name == "waits-without-timeout"
    assert intended.reason.startswith("the answer is late, not lost")


@pytest.mark.parametrize("workflow", ["OrderOnCredit", "CustomerCredit"])
def test_one_workflow_alone_is_not_blamed_for_comments_on_its_neighbour(workflow: str) -> None:
    assert lint(APPS["credit_limit"], workflow).findings == ()


def test_a_finding_names_the_line_where_something_can_be_done() -> None:
    (found,) = lint(import_module("tests.unit.analysis.lint_corpus.ms202_forgotten_end").app).findings

    line = Path(found.place.file).read_text().splitlines()[found.place.line - 1]
    assert line.strip() == "case Paid(), Paying():"


def witness(name: str) -> list[tuple[str, ...] | None]:
    return [found.witness for found in lint(import_module(f"tests.unit.analysis.lint_corpus.{name}").app).findings]


@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("ms101_beginning", [("Place",)]),
        ("ms101_late_result", [("Place", "TimedOut", "Paid")]),
        ("ms101_send_failed", [("Place", "Paid", "SendFailed")]),
        ("ms102_second_beginning", [("Place", "Place")]),
        ("ms202_forgotten_end", [("Place", "Paid")]),
        ("ms203_refused_beginning", [("Place",)]),
        ("ms305_timer_left", [("Place", "Paid")]),
        ("ms103_unused_input", [None]),
        ("ms901_opaque", [None]),
    ],
)
def test_a_finding_names_the_fewest_inputs_that_lead_there(name: str, inputs: list[tuple[str, ...] | None]) -> None:
    assert witness(name) == inputs


@pytest.mark.parametrize("unknown", [(), None])
def test_inputs_that_are_known_to_lead_there_stay_beside_unknown_ones(unknown: tuple[str, ...] | None) -> None:
    long, short, none = (
        finding("MS203", "Shop", Place("shop.py", 1), "it waits", "Paying", witness=inputs)
        for inputs in (("Place", "Place"), ("Place",), unknown)
    )
    for found in permutations((long, short, none)):
        assert [each.witness for each in once(found)] == [("Place",)]


def test_every_finding_about_a_state_has_a_witness() -> None:
    for name in CORPUS:
        report = lint(import_module(f"tests.unit.analysis.lint_corpus.{name}").app)
        for found in report.findings:
            if found.code in ("MS101", "MS102", "MS202", "MS203", "MS302", "MS305") and found.about != ("RunTask",):
                assert found.witness, f"{name}: {found}"


def test_a_second_beginning_that_is_refused_is_not_waited_for() -> None:
    (found,) = lint(import_module("tests.unit.analysis.lint_corpus.ms203_refused_beginning").app).findings

    assert found.what == "in Paying, after Place, an instance waits for Paid without a timeout"


def test_in_the_history_style_lint_says_which_rules_do_not_apply() -> None:
    report = lint(import_module("tests.unit.analysis.lint_corpus.ms302_history").app)

    found = {each.code: each for each in report.findings}
    assert "Greeting is in the history style and has no states to distinguish: MS101, MS102," in found["MS901"].what
    assert found["MS901"].what.endswith("do not apply")
    assert not {"MS302", "MS401", "MS902"} & set(re.findall(r"MS\d+", found["MS901"].what))
    line = Path(found["MS302"].place.file).read_text().splitlines()[found["MS302"].place.line - 1]
    assert line.strip() == 'return [ScheduleTask("greet-1", "greet", name)]'


def test_every_rule_is_documented() -> None:
    page = (ROOT / "docs/reference/lint.md").read_text()
    sections = dict(re.findall(r"^## (MS\d+ [\w-]+)\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL))

    assert list(sections) == [f"{rule.code} {rule.name}" for rule in RULES.values()]
    for rule in RULES.values():
        text = sections[f"{rule.code} {rule.name}"]
        assert rule.why in text
        assert f"**Fix:** {rule.fix}" in text
        assert f"| `{rule.name}` | {rule.level} |" in page


# ---- the command


def run(*arguments: str) -> Result:
    return CliRunner().invoke(commands, ["lint", *arguments])


def corpus(name: str) -> str:
    return f"tests.unit.analysis.lint_corpus.{name}:app"


@pytest.mark.parametrize(
    "name", ["ms101_late_result", "ms305_timer_left", "ms901_opaque", "ms902_no_reason", "good_intended"]
)
def test_the_command_tells_what_was_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER)

    approved(f"lint/{name}.txt", run("--app", corpus(name)).output)


def test_where_no_inputs_are_known_the_command_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Finding(Place("shop.py", 3), "MS202", "Orders", ("Done",), "Done is a dead end", "Complete.", ())
    monkeypatch.setattr("mainspring.cli.lint.lint_app", lambda *_: Report(("Orders",), (found,), ()))

    assert "  Which inputs lead there is not known.\n" in run("--app", corpus("good_handler")).output
    document = json.loads(run("--app", corpus("good_handler"), "--json").output)
    assert document["findings"][0]["witness"] == []


@pytest.mark.parametrize(
    ("name", "strict", "code"),
    [
        ("good_handler", True, 0),
        ("ms101_outside", False, 1),
        ("ms203_external", False, 1),
        ("ms305_timer_left", False, 0),
        ("ms305_timer_left", True, 1),
    ],
)
def test_the_exit_code_says_whether_something_is_wrong(name: str, strict: bool, code: int) -> None:
    assert run("--app", corpus(name), *(["--strict"] if strict else [])).exit_code == code


def test_programs_get_the_same_as_json() -> None:
    document = json.loads(run("--app", corpus("ms202_forgotten_end"), "--json").output)

    assert document["ok"] is False
    assert document["workflows"] == ["Orders"]
    assert document["intended"] == []
    (found,) = document["findings"]
    assert (found["level"], found["code"], found["rule"]) == ("error", "MS202", "dead-end")
    assert found["about"] == ["Done"]
    assert found["witness"] == ["Place", "Paid"]
    assert Path(found["file"]).name == "ms202_forgotten_end.py"


def test_one_workflow_may_be_chosen_and_must_exist() -> None:
    assert json.loads(run("--app", corpus("good_reply"), "-w", "Bank", "--json").output)["workflows"] == ["Bank"]

    missing = run("--app", corpus("good_reply"), "-w", "Banks")
    assert missing.exit_code == 2
    assert "has no workflow Banks. It has Bank, Orders." in missing.output


def test_the_pages_transcript_is_what_the_command_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs/how-to/lint.md").read_text()
    code = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[0]
    transcript = re.search(r"^\$ mainspring lint --app shop:app\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert transcript is not None
    (tmp_path / "shop.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "shop", raising=False)
    try:
        assert run("--app", "shop:app").output == transcript[1]
    finally:
        sys.modules.pop("shop", None)
