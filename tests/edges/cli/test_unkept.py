"""Instances without history on the command line."""

from pathlib import Path

import pytest

from tests.edges.cli.conftest import Run

APP = """
from mainspring import Mainspring
from tests.engine.coordination.meters import StateMeter, metering

app = metering(Mainspring("sqlite:///meters.db"), StateMeter())
"""


@pytest.fixture
def run(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command line, after a meter was installed and read twice."""
    (folder / "metered.py").write_text(APP)
    monkeypatch.setenv("MAINSPRING_APP", "metered:app")
    run("send", "Install", '{"meter": "m-1"}', "--id", "i-1")
    for number in (1, 2):
        run("send", "Read", f'{{"meter": "m-1", "units": {number}}}', "--id", f"r-{number}")
    return run


def test_show_says_that_the_history_is_not_kept(run: Run) -> None:
    shown = run("show", "m-1")
    assert "InitiatedBy  NotKept(type='Install')" in shown.out
    assert "Its history is not kept" in shown.out
    assert "state: Reading(total=3, open=3, billed=0)" in shown.out
    document = run("show", "m-1", "--json").document
    assert [
        (event["type"], event["message"], event["message_id"]) for event in document["stream"] if event["kind"]
    ] == [
        ("Install", None, "i-1"),
        ("Reminder", {"meter": "m-1"}, "StateMeter/m-1/3"),
        ("Read", None, "r-1"),
        ("Read", None, "r-2"),
    ]


@pytest.mark.parametrize("command", ["show", "state"])
def test_an_earlier_version_cannot_be_shown(run: Run, command: str) -> None:
    shown = run(command, "m-1", "--at", "4")
    assert shown.code == 1
    assert "StateMeter/m-1 cannot be shown at position 4: its history is not kept" in shown.err


def test_the_log_tells_what_it_took(run: Run) -> None:
    lines = run("log", "m-1").out.splitlines()
    assert [name for line in lines for name in ("Install", "Read") if name in line.split()] == [
        "Install",
        "Read",
        "Read",
    ]
