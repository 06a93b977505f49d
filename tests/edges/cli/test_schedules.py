import asyncio
from pathlib import Path

import pytest

from tests.edges.cli.conftest import Run

APP = """
from dataclasses import dataclass
from mainspring import Mainspring

@dataclass(frozen=True)
class CloseBooks:
    day: str

app = Mainspring("sqlite:///books.db")

@app.handler
async def close_books(command: CloseBooks) -> None: ...

app.schedules.add("nightly", cron="0 3 * * *", message=CloseBooks("today"), catch_up="skip")
"""


@pytest.fixture
def books(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    (folder / "books.py").write_text(APP)
    monkeypatch.setenv("MAINSPRING_APP", "books:app")
    return run


def work() -> None:
    """Let a worker start and stop."""

    async def start_and_stop() -> None:
        from books import app  # noqa: PLC0415  # pyright: ignore[reportMissingImports]  it is written by the fixture

        async with app:
            pass

    asyncio.run(start_and_stop())


def test_schedules_are_listed_and_operated(books: Run) -> None:
    assert books("schedules", "list", "--json").document["status"] == "not started"
    assert books("schedules", "pause", "nightly").code == 1
    work()

    listed = books("schedules", "list", "--json").document
    paused = books("schedules", "pause", "nightly")
    times = books("schedules", "next", "nightly", "-n", "3", "--json").documents

    assert (listed["calendar"], listed["catch_up"], listed["message"], listed["status"]) == (
        "0 3 * * *",
        "skip",
        "CloseBooks",
        "active",
    )
    assert listed["next"].endswith("T03:00:00Z")
    assert (paused.code, paused.out) == (0, "nightly is paused\n")
    assert [time["time"][10:] for time in times] == ["T03:00:00Z"] * 3
    assert books("schedules", "run", "nightly").out == "nightly is paused\n"
    assert books("schedules", "remove", "nightly", "--json").document["status"] == "removed"
    assert books("schedules", "resume", "nightly").out.startswith("nightly is active, next at ")
    assert "nightly  0 3 * * *  skip      CloseBooks  active" in books("schedules", "list").out
    stream = books("show", "mainspring.Schedule.nightly/nightly", "--json").document["stream"]
    assert [entry["type"] for entry in stream if entry["event"] == "Sent"] == ["CloseBooks"]
    assert {entry["actor"] for entry in stream if entry["type"] == "mainspring.Pause"} == {"ann"}


def test_a_schedule_that_is_not_declared_is_named(books: Run) -> None:
    ran = books("schedules", "next", "weekly")

    assert ran.code == 3
    assert "This app declares nightly" in ran.err


def test_an_app_without_schedules_says_so(run: Run) -> None:
    assert run("schedules", "list").err == "This app declares no schedules.\n"
