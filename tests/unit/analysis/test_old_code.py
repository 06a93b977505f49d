"""Old code beside today's: long streams in parts, several processes, and a process that fails."""

from __future__ import annotations

import functools
import shutil
from pathlib import Path

import pytest

from mainspring import Mainspring
from mainspring.analysis.processes import Sharing
from mainspring.analysis.what_if import check as checking
from mainspring.analysis.what_if import old_code
from mainspring.analysis.what_if.check import check
from mainspring.analysis.what_if.old_code import OldCode, OldStates
from mainspring.analysis.what_if.report import Report
from mainspring.errors import OperationError
from tests.unit.analysis.quiet import quiet
from tests.unit.analysis.refunds import Note, refunds, running

HALF = """
from tests.unit.analysis.refunds import Refund, refunds

app = refunds("sqlite:///nowhere.db")
Refund.weight = 7
"""


@pytest.fixture
def url(refunds_database: Path, tmp_path: Path) -> str:
    """A database with six claims in it."""
    return f"sqlite:///{shutil.copy(refunds_database, tmp_path)}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with old code, in which a note weighs 7; the current one is another."""
    here, old = tmp_path / "here", tmp_path / "old"
    here.mkdir()
    old.mkdir()
    (old / "old_refunds.py").write_text(HALF)
    monkeypatch.chdir(here)
    return old


def beside(url: str, folder: Path, sharing: Sharing | None = None) -> Report:
    with old_code.old_code(str(folder), "old_refunds:app") as old:
        return running(refunds(url), lambda app: check(app, against=old, sharing=sharing))


def test_every_state_is_compared_and_old_code_opens_no_database(url: str, folder: Path) -> None:
    report = beside(url, folder)

    (difference,) = report.differences
    assert difference.what == "the state InReview behind a step in InReview differs in notes"
    assert (difference.instances, difference.steps) == (1, 4)
    assert difference.examples[0].lines == ("~ InReview: notes: expected 7, is 1",)
    assert report.compared.states == report.compared.states_passed == 11
    assert (report.against, list(folder.iterdir())) == (str(folder), [folder / "old_refunds.py"])


def test_a_long_stream_is_compared_in_parts_and_to_its_end(
    url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(old_code, "EVENTS_PER_QUESTION", 2)
    monkeypatch.setattr(checking, "EVENTS_PER_QUESTION", 2)

    async def add(app: Mainspring) -> None:
        for number in range(3):
            await app.send(Note("noted", f"more {number}"))
        await quiet(app)

    running(refunds(url), add, work=True)
    report = beside(url, folder)

    (difference,) = report.differences
    assert difference.steps == 7
    assert report.compared.states == report.compared.states_passed == 14


def test_several_processes_find_what_one_finds(url: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "INSTANCES_PER_CHUNK", 1)
    monkeypatch.setattr(checking, "CHUNKS_ALONE", 1)
    sharing = Sharing(functools.partial(refunds, url), 2)

    assert beside(url, folder, sharing) == beside(url, folder)


def test_old_code_that_ends_its_process_is_told_as_such(folder: Path) -> None:
    (folder / "old_refunds.py").write_text("import os\nos._exit(3)\n")

    with pytest.raises(OperationError, match="its process ended without an answer"), beside_code(folder):
        pass


def beside_code(folder: Path) -> OldStates:
    return OldStates(OldCode("before", str(folder), "old_refunds:app", (str(folder),), "/nowhere"))


def test_old_code_that_never_answers_is_ended(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(old_code, "ANSWER_SECONDS", 0.0)
    (folder / "old_refunds.py").write_text("import signal\nsignal.pause()\n")

    with pytest.raises(OperationError, match="its process has not answered within 0 s"), beside_code(folder):
        pass


def test_old_code_that_imports_from_today_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "here" / "rules.py").write_text("LIMIT = 3\n")
    (folder / "old_refunds.py").write_text(
        f"import sys\nsys.path.insert(0, {str(tmp_path / 'here')!r})\nimport rules\n{HALF}"
    )

    with (
        pytest.raises(OperationError, match="rules was imported from today's code"),
        old_code.old_code(str(folder), "old_refunds:app"),
    ):
        pass
