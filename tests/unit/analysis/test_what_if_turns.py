"""What-if on instances that were reset, or began anew: what is left behind does not count."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import astuple

from mainspring import Mainspring
from mainspring.analysis.what_if import comparison
from mainspring.analysis.what_if.check import check
from mainspring.analysis.what_if.comparison import Comparison
from mainspring.analysis.what_if.report import Report
from mainspring.app.internals import internals_of
from mainspring.core.events import Reset
from mainspring.port.records import EventRow, Ref
from tests.unit.analysis.refunds import Claim, Note, Refund, refunds, running


@pytest.fixture
def url(refunds_database: Path, tmp_path: Path) -> str:
    """A database with six claims in it."""
    return f"sqlite:///{shutil.copy(refunds_database, tmp_path)}"


def checked(url: str) -> Report:
    return running(refunds(url), check)


def test_a_reset_and_a_new_beginning_are_followed(url: str) -> None:
    async def operate(app: Mainspring) -> None:
        noted = app.instance(Refund, "noted")
        await noted.reset(6, reason="a note too many", actor="ann")
        await app.send(Note("noted", "again"))
        await app.send(Claim("small-1", 700))
        await app.send(Note("small-1", "more"))
        await app.instance(Refund, "waits-1").suspend("wait", actor="ann")

    running(refunds(url), operate, work=True)
    report = checked(url)

    assert report.safe
    assert (report.in_flight, report.compared.decisions) == (4, 14)


@pytest.mark.parametrize("planted", [{"decide_raises": KeyError}, {"evolve_raises": ValueError}, {"limit": 25}])
def test_what_was_left_behind_is_no_difference(
    url: str, planted: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def operate(app: Mainspring) -> None:
        await app.instance(Refund, "noted").reset(4, reason="wrong notes", actor="ann")
        await app.send(Claim("small-2", 700))

    for name, value in planted.items():
        monkeypatch.setattr(Refund, name, value)
    assert checked(url).differing == 1
    monkeypatch.undo()
    running(refunds(url), operate, work=True)
    for name, value in planted.items():
        monkeypatch.setattr(Refund, name, value)

    report = checked(url)

    assert (report.differences, report.unchecked) == ((), ())


def test_of_a_difference_only_the_steps_that_count_are_counted(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def reset(app: Mainspring) -> None:
        await app.instance(Refund, "noted").reset(6, reason="two notes too many", actor="ann")

    running(refunds(url), reset, work=True)
    monkeypatch.setattr(Refund, "decide_raises", KeyError)

    (difference,) = checked(url).differences
    assert difference.steps == 2


def test_a_reset_further_back_than_states_are_kept_is_told(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def reset(app: Mainspring) -> None:
        await app.instance(Refund, "noted").reset(4, reason="all notes", actor="ann")

    running(refunds(url), reset, work=True)
    assert checked(url).unchecked == ()

    monkeypatch.setattr(comparison, "STATES_KEPT", 2)
    (unchecked,) = checked(url).unchecked
    assert unchecked.why.startswith("it was reset to a version more than")


def test_a_reset_right_behind_a_step_that_cannot_be_read_leaves_it_behind(url: str) -> None:
    entry = internals_of(refunds(url)).registry.workflows["Refund"]
    rows = [
        EventRow(1, "Began", 0),
        EventRow(2, "InitiatedBy", 0, *astuple(entry.recorder.encoded(Claim("c", 700)))),
        EventRow(3, "Received", 0, "Gone", 1, b"{}"),
        entry.recorder.row(Reset(2, "a step too many"), 4, 0),
    ]
    walk = Comparison(entry, Ref("Refund", "c"))

    walk.take(rows[:3])
    walk.end()
    assert "unreadable" in [kind for kind, _ in walk.found]
    walk = Comparison(entry, Ref("Refund", "c"))
    walk.take(rows)
    walk.end()

    assert "unreadable" not in [kind for kind, _ in walk.found]
