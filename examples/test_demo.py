from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from examples.__main__ import COLOURS, DIM, RESET, main, packages, page, stories
from examples.group_checkout.workflow import GroupCheckout, InitiateGroupCheckout
from examples.stories import Story
from mainspring import Kind
from mainspring.testing import Rehearsal

ROOT = Path(__file__).parent.parent
ESCAPE = "\x1b"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603  our own interpreter and our own module
        [sys.executable, "-m", "examples", *arguments],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        env=os.environ | {"PYTHONIOENCODING": "utf-8", "COLUMNS": "40"},
        timeout=60,
        check=False,
    )


def every_story() -> list[object]:
    return [pytest.param(story, id=f"{name}: {story.title}") for name in packages() for story in stories(name)]


def told_on_a_terminal(
    arguments: Sequence[str], monkeypatch: pytest.MonkeyPatch, columns: int = 200, no_color: str = ""
) -> str:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", no_color)
    assert main(arguments) == 0
    return terminal.getvalue()


@pytest.mark.parametrize("story", every_story())
def test_a_story_reaches_the_end_of_its_messages(story: Story) -> None:
    rehearsal = Rehearsal(story.workflow)
    for message, kind in story.inputs():
        rehearsal.take(message, kind=kind)
    taken = [event for event in rehearsal.events if event.direction == "input"]
    assert len(taken) == len(story.messages)


@pytest.mark.parametrize("name", packages())
def test_an_example_says_what_it_is_and_has_a_story(name: str) -> None:
    assert packages()[name].endswith(".")
    assert stories(name)


def test_the_examples_of_the_tutorial_are_found() -> None:
    assert {"traffic_fine", "order_processing", "group_checkout", "order_inventory"} <= set(packages())


def test_a_bare_message_leaves_its_kind_to_the_rehearsal() -> None:
    message = InitiateGroupCheckout("g-1", ())
    story = Story("", GroupCheckout(), (message, (message, Kind.EVENT)))
    assert story.inputs() == [(message, None), (message, Kind.EVENT)]


def test_a_pipe_gets_plain_text_with_whole_lines() -> None:
    told = demo("group_checkout")
    assert told.returncode == 0
    assert told.stderr == ""
    assert ESCAPE not in told.stdout
    assert "…" not in told.stdout
    assert "group_checkout: A group checks out; one guest has not paid" in told.stdout
    assert "8         result   input      Received     GuestCheckoutFailed(group_id='g-2'," in told.stdout
    assert "state: Finished()" in told.stdout


def test_all_examples_are_told_unless_some_are_named() -> None:
    told = demo()
    assert told.returncode == 0
    for name in packages():
        assert f"{name}: {stories(name)[0].title}" in told.stdout


def test_the_last_line_says_how_much_was_told() -> None:
    assert demo("traffic_fine").stdout.splitlines()[-1] == "3 stories, 27 events"


def test_an_example_named_twice_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    main(["traffic_fine", "traffic_fine"])
    assert capsys.readouterr().out.endswith("\n3 stories, 27 events\n")


def test_colour_can_be_forced_into_a_pipe() -> None:
    told = demo("traffic_fine", "--colour", "always").stdout
    lines = told.splitlines()
    assert any(line.startswith(COLOURS["input"]) and "InitiatedBy" in line for line in lines)
    assert any(line.startswith(COLOURS["output"]) and "Sent" in line for line in lines)
    assert any(line.startswith(DIM) and "Began" in line for line in lines)
    assert told.count(RESET) == sum(line.startswith(ESCAPE) for line in lines)


def test_a_terminal_gets_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ESCAPE in told_on_a_terminal(["traffic_fine"], monkeypatch)


def test_no_color_is_honoured_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ESCAPE not in told_on_a_terminal(["traffic_fine"], monkeypatch, no_color="1")


def test_a_terminal_can_be_told_to_do_without_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ESCAPE not in told_on_a_terminal(["traffic_fine", "--colour=never"], monkeypatch)


def test_lines_are_cut_to_the_width_of_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = told_on_a_terminal(["traffic_fine"], monkeypatch, columns=60, no_color="1").splitlines()
    assert max(map(len, lines)) == 60
    assert any(line.endswith("…") for line in lines)


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    told = demo("trafic_fine")
    assert told.returncode == 2
    assert told.stdout == ""
    assert "there is no example named 'trafic_fine'" in told.stderr
    assert "traffic_fine" in told.stderr.splitlines()[-1]


def test_help_teaches_how_to_read_a_stream(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        main(["--help"])
    assert exit.value.code == 0
    help = capsys.readouterr().out
    assert "how to read a stream" in help
    assert "group_checkout    A hotel checks out a whole group at once." in help


@pytest.mark.parametrize("arguments", [[], ["--help"]])
def test_a_reader_who_leaves_early_is_no_error(arguments: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as nobody_reads:
        told = subprocess.run(  # noqa: S603  our own interpreter and our own module
            [sys.executable, "-m", "examples", *arguments],
            cwd=ROOT,
            stdout=nobody_reads,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            timeout=60,
            check=False,
        )
    assert (told.returncode, told.stderr) == (0, "")


def test_a_page_that_is_no_terminal_is_never_cut() -> None:
    assert page(io.StringIO(), "auto", {}).width is None
