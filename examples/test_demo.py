from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from examples.__main__ import INSTANCES, main, packages, stories
from examples.demo.check import Click, Feed, check
from examples.demo.page import COLOURS, DIM, RESET, Page, page
from examples.demo.scenes import scenes
from examples.demo.screen import CLEAR, AnsiScreen, Progress
from examples.group_checkout.workflow import GroupCheckout, InitiateGroupCheckout
from examples.stories import Story, Taken
from mainspring import Kind, Received
from mainspring.port.records import EventRow, Ref
from mainspring.testing import envelope

ROOT = Path(__file__).parent.parent
ESCAPE = "\x1b"
# For so many instances: tasks that people answered, clicks that came second, and by a maker; who waits; inputs.
SUMS = {40: (10, 2, 2, 12, 62), 320: (80, 16, 16, 33, 433)}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


# It bounds a hang, on the busiest machine too: the demo's own patience ends before.
PATIENCE_SECONDS = 600


def demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603  our own interpreter and our own module
        [sys.executable, "-m", "examples", *arguments],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        env=os.environ | {"PYTHONIOENCODING": "utf-8", "COLUMNS": "40"},
        timeout=PATIENCE_SECONDS,
        check=False,
    )


def told_to_a_pipe(
    arguments: Sequence[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> str:
    monkeypatch.setenv("COLUMNS", "40")
    assert main(arguments) == 0
    told = capsys.readouterr()
    assert told.err == ""
    return told.out


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
    taken = [event for event in story.rehearse().events if isinstance(event, Received)]
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
    assert story.inputs() == [Taken(message), Taken(message, Kind.EVENT)]


def test_a_story_may_say_who_acts() -> None:
    message = InitiateGroupCheckout("g-1", ())
    story = Story("", GroupCheckout(), ((message, "ann"), envelope(message, kind=Kind.EVENT, actor="bob")))
    assert story.inputs() == [Taken(message, None, "ann"), Taken(message, Kind.EVENT, "bob")]


def test_the_actors_of_a_story_reach_decide(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = told_to_a_pipe(["stories", "document_approval"], monkeypatch, capsys)
    assert "Asked        'Check prices-2.pdf by ann' for checker (review)" in told
    assert "Completed    DocumentApproved(document_id='d-1', maker='ann', checker='bob')" in told
    assert "state: Archived(maker='ann', checker='bob', archive_number='archive-d-1')" in told


def test_a_pipe_gets_plain_text_with_whole_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = told_to_a_pipe(["stories", "group_checkout"], monkeypatch, capsys)
    assert ESCAPE not in told
    assert "…" not in told
    assert "group_checkout: A group checks out; one guest has not paid" in told
    assert "8         result   input      Received     GuestCheckoutFailed(group_id='g-2'," in told
    assert "state: Finished()" in told


def test_all_examples_are_told_unless_some_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stories"]) == 0
    told = capsys.readouterr().out
    for name in packages():
        assert f"{name}: {stories(name)[0].title}" in told


def test_the_last_line_says_how_much_was_told_and_an_example_named_twice_is_told_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(["stories", "traffic_fine", "traffic_fine"])
    assert capsys.readouterr().out.endswith("\n3 stories, 27 events\n")


def test_colour_can_be_forced_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    main(["stories", "traffic_fine", "--colour", "always"])
    told = capsys.readouterr().out
    lines = told.splitlines()
    assert any(line.startswith(COLOURS["input"]) and "InitiatedBy" in line for line in lines)
    assert any(line.startswith(COLOURS["output"]) and "Sent" in line for line in lines)
    assert any(line.startswith(DIM) and "Began" in line for line in lines)
    assert told.count(RESET) == sum(line.startswith(ESCAPE) for line in lines)


def test_a_terminal_gets_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ESCAPE in told_on_a_terminal(["stories", "traffic_fine"], monkeypatch)


def test_no_color_is_honoured_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ESCAPE not in told_on_a_terminal(["stories", "traffic_fine"], monkeypatch, no_color="1")


def test_a_terminal_can_be_told_to_do_without_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ESCAPE not in told_on_a_terminal(["stories", "traffic_fine", "--colour=never"], monkeypatch)


def test_lines_are_cut_to_the_width_of_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = told_on_a_terminal(["stories", "traffic_fine"], monkeypatch, columns=60, no_color="1").splitlines()
    assert max(map(len, lines)) == 60
    assert any(line.endswith("…") for line in lines)


def test_an_unknown_name_is_answered_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        main(["stories", "trafic_fine"])
    told = capsys.readouterr()
    assert (exit.value.code, told.out) == (2, "")
    assert "there is no example named 'trafic_fine'" in told.err
    assert "traffic_fine" in told.err.splitlines()[-1]


def test_help_teaches_how_to_read_a_stream(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        main(["--help"])
    assert exit.value.code == 0
    help = capsys.readouterr().out
    assert "how to read a stream" in help
    listed = {name: summary for line in help.splitlines() for name, _, summary in [line.strip().partition(" ")]}
    assert listed["group_checkout"].strip() == "A hotel checks out a whole group at once."


@pytest.mark.parametrize("arguments", [["stories"], ["--help"]])
def test_a_reader_who_leaves_early_is_no_error(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as nobody_reads:
        monkeypatch.setattr(sys, "stdout", nobody_reads)
        try:
            code: str | int | None = main(arguments)
        except SystemExit as end:  # argparse ends the program behind its help
            code = end.code
        nobody_reads.write("what is written afterwards is no error either, as at the end of the program")
    assert code == 0


def test_a_reader_who_leaves_the_demo_early_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as nobody_reads:
        told = subprocess.run(
            [sys.executable, "-m", "examples", "--instances", "8"],
            cwd=ROOT,
            stdout=nobody_reads,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            timeout=PATIENCE_SECONDS,
            check=False,
        )
    assert (told.returncode, told.stderr) == (0, "")


def test_a_page_that_is_no_terminal_is_never_cut() -> None:
    assert page(io.StringIO(), "auto", {}).width is None


@pytest.mark.parametrize(
    ("instances", "sums"), [(40, SUMS[40]), pytest.param(320, SUMS[320], marks=pytest.mark.soak)], ids=["40", "320"]
)
def test_the_demo_kills_its_worker_loses_nothing_and_keeps_its_files_where_it_is_told(
    instances: int, sums: tuple[int, int, int, int, int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks, second, refused, waiting, inputs = sums
    folder = tmp_path / "kept"
    told = demo("--folder", str(folder), *([] if instances == INSTANCES else ["--instances", str(instances)]))
    assert (told.returncode, told.stderr) == (0, "")
    assert ESCAPE not in told.stdout
    lines = told.stdout.splitlines()
    assert lines[0].startswith(f"{instances} instances of eight examples, on ")
    assert any("is killed with SIGKILL" in line for line in lines)
    assert any(line.startswith("worker 2 is started") for line in lines)
    assert any(line.endswith("which lived through it:") for line in lines)
    assert any("the worker is killed, another takes over" in line for line in lines)
    assert lines[-4] == (
        f"people answered {tasks} tasks; {second} clicks came second and got the first one's outcome, "
        f"{refused} by a document's own maker were refused"
    )
    assert lines[-3] == f"{waiting} still wait for a person or a timer, as they should"
    assert lines[-2].startswith(f"0 lost, 0 doubled, of {inputs} inputs and ")
    assert re.fullmatch(r"the studio knows \d+ instances, and its (page answers|API answers; .*)", lines[-1])
    assert {"demo.db", "effects.jsonl"} <= {file.name for file in folder.iterdir()}
    assert main(["--folder", str(folder)]) == 2
    assert "is not empty" in capsys.readouterr().out


def test_the_demo_uses_all_examples_but_those_that_tell_what_another_tells() -> None:
    assert {scene.example for scene in scenes(8)} == set(packages()) - {"both_styles"}


def test_a_terminal_without_rich_gets_a_line_that_rewrites_itself() -> None:
    terminal = Terminal()
    screen = AnsiScreen(Page(terminal, coloured=False, width=200))
    with screen.live():
        screen.show(Progress(ended=1, to_end=2, waiting=3, owed=4))
        screen.note("the worker is killed")
    half = "━" * 15 + "╌" * 15
    assert terminal.getvalue() == (
        f"{CLEAR}  {half}  1 of 2 ended, 3 under way or waiting, 4 owed{CLEAR}the worker is killed\n{CLEAR}"
    )


# A command that was carried out, in a stream with all its versions, and the input that began it all.
STREAM: Feed = [
    (Ref("Shop", "o-1"), EventRow(1, "Began", 0)),
    (Ref("Shop", "o-1"), EventRow(2, "InitiatedBy", 0, "Place", kind="command", message_id="m-1")),
    (Ref("Shop", "o-1"), EventRow(3, "Sent", 0, "Charge")),
    (Ref("Shop", "o-1"), EventRow(4, "Received", 0, "Charged", kind="result", cause=3)),
]
TOLD = {"m-1": "Shop/o-1"}
DONE = [{"called": "Shop/o-1/3"}, {"effect": "Shop/o-1/3"}]
HANDLED = frozenset({"Charge"})


def test_the_demos_check_finds_nothing_where_all_is_well() -> None:
    verdict = check(TOLD, STREAM, [], [], DONE, HANDLED)
    assert (verdict.good, verdict.inputs, verdict.commands, verdict.called_again) == (True, 1, 1, 0)


def test_the_demos_check_finds_what_is_lost() -> None:
    assert check(TOLD | {"m-2": "Shop/o-1"}, STREAM, [], [], DONE, HANDLED).lost == ("the input m-2 of Shop/o-1",)
    assert check(TOLD, STREAM, [], [], [], HANDLED).lost == ("the command Shop/o-1/3",)
    assert check(TOLD, STREAM[:2] + STREAM[3:], [], [], [], HANDLED).lost == ("version 3 of Shop/o-1",)


def test_the_demos_check_finds_what_is_doubled() -> None:
    twice = [*STREAM, (Ref("Shop", "o-1"), EventRow(5, "Received", 0, "Place", kind="command", message_id="m-1"))]
    assert check(TOLD, twice, [], [], DONE, HANDLED).doubled == ("the input m-1 of Shop/o-1",)
    assert check(TOLD, STREAM, [], [], [*DONE, DONE[1]], HANDLED).doubled == ("the effect of Shop/o-1/3",)
    again = [*STREAM, (Ref("Shop", "o-1"), EventRow(5, "Kept", 0, "Charged", kind="result", cause=3))]
    assert check(TOLD, again, [], [], DONE, HANDLED).doubled == ("the result of Shop/o-1/3",)
    invented = check(TOLD, STREAM, [], [], [*DONE, {"effect": "Shop/o-9/3"}], HANDLED)
    assert invented.doubled == ("the effect of Shop/o-9/3, which nobody recorded",)


ANSWERED: Feed = [
    *STREAM,
    (Ref("Shop", "o-1"), EventRow(5, "Asked", 0)),
    (
        Ref("Shop", "o-1"),
        EventRow(6, "Received", 0, "Approve", kind="answer", message_id="Shop/o-1/5/answer", actor="bob"),
    ),
]
TASK = "Shop/o-1/5"


def test_the_demos_check_agrees_with_people_who_were_told_what_happened() -> None:
    clicks = [Click(TASK, "bob", first=True, winner="bob"), Click(TASK, "cho", winner="bob")]
    maker = Click(TASK, "ann", may=False, refused="excluded")
    assert check(TOLD, ANSWERED, [], [], DONE, HANDLED, [*clicks, maker]).good


@pytest.mark.parametrize(
    "click",
    [
        Click(TASK, "cho", first=True, winner="cho"),
        Click(TASK, "bob", winner="cho"),
        Click(TASK, "bob", may=False, first=True, winner="bob"),
        Click(TASK, "bob", may=False, refused="excluded"),
        Click(TASK, "cho", refused="not asked"),
        Click("Shop/o-1/3", "bob", first=True, winner="bob"),
    ],
    ids=["another won", "another outcome", "let the maker", "recorded the maker", "refused a checker", "no answer"],
)
def test_the_demos_check_finds_people_who_were_misled(click: Click) -> None:
    (lost,) = check(TOLD, ANSWERED, [], [], DONE, HANDLED, [click]).lost
    assert lost.startswith(f"the word given to {click.person} about {click.task}")


def test_the_demos_check_finds_a_task_that_two_people_won() -> None:
    both = [Click(TASK, "bob", first=True, winner="bob")] * 2
    assert check(TOLD, ANSWERED, [], [], DONE, HANDLED, both).doubled == (f"the answer to {TASK}",)
