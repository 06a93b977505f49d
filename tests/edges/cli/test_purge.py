import json
import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.edges.cli.conftest import SECONDS, Run, order


@pytest.fixture
def run(run: Run) -> Run:
    """The command line, after one instance was cancelled and another began."""
    for id in ("o-1", "o-2"):
        run("send", "PlaceOrder", order(id, 1))
    run("cancel", "o-1")
    return run


def on_terminal(answer: str, *arguments: str) -> tuple[int, str, str]:
    """Call the command line on a terminal. Return its exit code, its output, and what the terminal shows."""
    master, terminal = pty.openpty()
    process = subprocess.Popen(  # noqa: S603  our own command
        [sys.executable, "-m", "mainspring.cli", *arguments],
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=terminal,
        text=True,
    )
    os.close(terminal)
    with os.fdopen(master, "r+b", buffering=0) as screen:
        screen.write(f"{answer}\n".encode())
        out, _ = process.communicate(timeout=SECONDS)
        shown = b""
        # Where nobody has the terminal open any more, it is an error to read beyond the end.
        with suppress(OSError):
            while piece := screen.read(65_536):
                shown += piece
    return process.returncode, out, shown.decode()


def test_a_dry_run_counts_and_changes_nothing(run: Run) -> None:
    assert run("purge", "--older-than", "0s", "--dry-run").out == "would purge 1 instance with 5 events\n"
    assert run("show", "o-1").code == 0


def test_what_is_young_stays(run: Run) -> None:
    assert run("purge", "--older-than", "30d").out == "purged 0 instances with 0 events\n"


def test_what_was_purged_is_told_and_gone_from_lists(run: Run) -> None:
    assert run("purge", "--older-than", "0s").out == "purged 1 instance with 5 events\n"
    assert [row["id"] for row in run("ls", "--json").documents] == ["o-2"]
    for command in ("show", "state", "cancel"):
        ran = run(command, "o-1")
        assert (ran.code, ran.out) == (3, "")
        assert ran.err.startswith("Error: Orders/o-1 ended (cancelled) and was purged on ")


def test_a_message_for_what_was_purged_is_kept_as_a_dead_letter(run: Run) -> None:
    run("purge", "--older-than", "0s")

    assert run("send", "PlaceOrder", order("o-1", 1)).code == 1
    (letter,) = run("dead-letters", "list", "--json").documents
    assert letter["reason"].startswith("Orders/o-1 ended (cancelled) and was purged on ")


def test_the_streams_are_archived_before(run: Run, folder: Path) -> None:
    ran = run("purge", "--older-than", "0s", "--archive", "streams.jsonl")

    assert ran.out == "purged 1 instance with 5 events, 5 events archived\n"
    archived = [json.loads(line) for line in (folder / "streams.jsonl").read_text().splitlines()]
    assert [(line["instance"], line["version"]) for line in archived] == [("o-1", n) for n in range(1, 6)]


def test_an_archive_that_cannot_be_written_keeps_all(run: Run) -> None:
    ran = run("purge", "--older-than", "0s", "--archive", "nowhere/streams.jsonl")

    assert ran.code == 1
    assert ran.err.startswith("Error: The archive nowhere/streams.jsonl cannot be written")
    assert run("show", "o-1").code == 0


def test_programs_get_a_document(run: Run) -> None:
    would = {"dry_run": True, "instances": 1, "events": 5, "archived": 0}

    assert run("purge", "--older-than", "0s", "--dry-run", "--json").document == would
    assert run("purge", "--older-than", "0s", "--workflow", "Tickets", "--json").document["instances"] == 0


@pytest.mark.parametrize("age", ["30", "d", "-1d", "1y", "1.5h", "1000000d"])
def test_an_age_that_is_none_is_refused(run: Run, age: str) -> None:
    ran = run("purge", "--older-than", age)

    assert ran.code == 2
    assert "Write 30d" in ran.err


def test_a_purge_without_an_age_is_refused(run: Run) -> None:
    assert run("purge").code == 2


def test_a_terminal_is_asked_and_a_no_changes_nothing(run: Run) -> None:
    code, out, text = on_terminal("n", "purge", "--older-than", "0s")

    assert (code, out) == (1, "")
    assert "Remove 1 instance with 5 events from sqlite:///orders.db, without an archive? [y/N]" in text
    assert run("show", "o-1").code == 0


def test_a_terminal_that_says_yes_sees_how_far_it_has_come(run: Run) -> None:
    code, out, text = on_terminal("y", "purge", "--older-than", "0s")

    assert (code, out) == (0, "purged 1 instance with 5 events\n")
    assert "\r1 instance with 5 events\x1b[K" in text


def test_a_terminal_is_not_asked_after_yes(run: Run) -> None:
    code, _, text = on_terminal("", "purge", "--older-than", "0s", "--yes")

    assert code == 0
    assert "Remove" not in text
