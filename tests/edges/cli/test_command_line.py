"""What holds for every command: help, exit codes, JSON, pipes, terminals, and the page that documents them."""

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from mainspring.cli.group import COMMANDS, commands
from tests.edges.cli.conftest import Run, Start, order
from tests.support.paths import ROOT

PAGE = ROOT / "docs/reference/cli.md"


def walk(command: click.Command, path: str = "mainspring") -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from walk(found, f"{path} {name}")


ALL = dict(walk(commands))
LEAVES = {path: command for path, command in ALL.items() if not isinstance(command, click.Group)}


def section(path: str) -> str:
    found = re.search(rf"^##+ `{path}`$(.*?)(?=^##+ |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert found, f"{path} has no section in {PAGE.name}"
    return found[1]


# ---- the page


@pytest.mark.parametrize("path", ALL)
def test_the_page_documents_every_command_with_all_its_options(path: str) -> None:
    cells = re.findall(r"^\| (`-[^|]*) \|", section(path), re.MULTILINE)
    written = {option for cell in cells for option in re.findall(r"`(--?[a-z][a-z-]*)`", cell)}

    assert written == {option for p in ALL[path].params if isinstance(p, click.Option) for option in p.opts}


@pytest.mark.parametrize("path", LEAVES)
def test_the_page_documents_every_argument(path: str) -> None:
    arguments = [
        p.make_metavar(click.Context(LEAVES[path])) for p in LEAVES[path].params if isinstance(p, click.Argument)
    ]

    for argument in arguments:
        assert argument in section(path)


def test_the_page_documents_every_field_of_the_json(run: Run) -> None:
    run("send", "PlaceOrder", order("o-1", 5))
    run("send", "PlaceOrder", order("o-2", -1))
    run("send", "CardCharged", '{"order_id": "o-9"}')
    for path, arguments in {
        "mainspring send": ["send", "PlaceOrder", order("o-3", 5), "--json"],
        "mainspring ls": ["ls", "--limit", "1", "--json"],
        "mainspring show": ["show", "o-1", "--json"],
        "mainspring state": ["state", "o-1", "--json"],
        "mainspring timers": ["timers", "o-1", "--json"],
        "mainspring dead-letters show": ["dead-letters", "show", "1", "--json"],
        "mainspring dead-letters retry": ["dead-letters", "retry", "1", "--json"],
        "mainspring doctor": ["doctor", "--json"],
    }.items():
        document = run(*arguments).document
        nested = [row for value in document.values() if isinstance(value, list) and value for row in value[:1]]
        names: set[str] = set(document).union(*nested) if path != "mainspring doctor" else set(document)
        documented = set(re.findall(r"`(\w+)`", section(path)))
        if path == "mainspring show":
            documented |= set(re.findall(r"`(\w+)`", section("mainspring ls") + section("mainspring timers")))

        assert names - documented == set(), path


# ---- help


@pytest.mark.parametrize("path", LEAVES)
def test_every_commands_help_has_an_example_of_it(run: Run, path: str) -> None:
    ran = run(*path.split()[1:], "--help")

    assert ran.code == 0
    assert re.search(rf"Examples:\n +{path}\b", ran.out)
    assert "\\b" not in ran.out, "click's mark for lines that stay as they are is a character"


@pytest.mark.parametrize("path", LEAVES)
def test_every_command_can_write_json(path: str) -> None:
    assert any("--json" in parameter.opts for parameter in LEAVES[path].params)


def test_the_list_of_commands_says_what_each_commands_own_help_says() -> None:
    for name, listed in COMMANDS.items():
        assert listed.summary == (ALL[f"mainspring {name}"].help or "").partition("\n")[0]


def test_the_help_explains_exit_codes_and_environment(run: Run) -> None:
    ran = run("--help")

    assert ran.code == 0
    for word in ("Exit codes:", "MAINSPRING_APP", "MAINSPRING_DEBUG", "NO_COLOR", *COMMANDS):
        assert word in ran.out


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603  ours


def test_without_click_it_says_what_to_install(folder: Path) -> None:
    code = "import sys; sys.modules['click'] = None; from mainspring.cli import main; main()"
    ran = python(code)

    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == "The command line needs click, which is not installed: pip install 'mainspring[cli]'\n"


def test_the_version_is_the_packages(run: Run) -> None:
    assert re.fullmatch(r"mainspring, version \d+\.\d+\.\d+\S*\n", run("--version").out)


def test_an_unknown_command_is_a_usage_error(run: Run) -> None:
    ran = run("lst")

    assert ran.code == 2
    assert "No such command 'lst'" in ran.err


@pytest.mark.parametrize("number", ["nan", "inf", "-1"])
def test_what_is_no_number_within_its_limits_is_a_usage_error(run: Run, number: str) -> None:
    for command in (["worker", "--drain", number], ["counterfactual", "o-1", "--at", "2", "--drop", "--ahead", number]):
        assert run(*command).code == 2


# ---- where it is written to


def test_a_reader_that_has_seen_enough_ends_it_silently(run: Run, start: Start) -> None:
    run("send", "PlaceOrder", order("o-1", 5))
    process = start("show", "o-1", stdout=subprocess.PIPE)
    assert process.popen.stdout is not None

    process.popen.stdout.close()

    assert (process.end(), process.log) == (0, "")


def read_terminal(ours: int) -> str:
    written = b""
    try:
        while chunk := os.read(ours, 65536):
            written += chunk
    except OSError:  # this is how a terminal says that everybody has left
        pass
    finally:
        os.close(ours)
    return written.decode()


def on_a_terminal(start: Start, *arguments: str, **env: str) -> str:
    ours, theirs = pty.openpty()
    process = start(*arguments, stdout=theirs, TERM="xterm-256color", COLUMNS="200", **env)
    os.close(theirs)
    written = read_terminal(ours)
    assert process.end() == 0, process.log
    return written


def test_a_terminal_gets_colours_and_a_pipe_does_not(run: Run, start: Start) -> None:
    run("send", "PlaceOrder", order("o-1", 5))

    terminal = on_a_terminal(start, "show", "o-1")

    assert "\x1b[36m" in terminal
    assert "PlaceOrder(order_id='o-1', amount=5)" in terminal
    assert "\x1b" not in run("show", "o-1").out


def test_no_color_is_honoured(run: Run, start: Start) -> None:
    run("send", "PlaceOrder", order("o-1", -1))

    terminal = on_a_terminal(start, "show", "o-1", NO_COLOR="1")

    assert "suspended: ValueError" in terminal
    assert re.findall(r"\x1b\[[0-9;]*3\d", terminal) == []


def test_what_could_move_a_cursor_is_escaped(run: Run) -> None:
    run("send", "OpenTicket", '{"ticket": "t-1"}')
    run("suspend", "t-1", "--reason", "a\x1b[2Jb c\nd [red]e[/red]")

    shown = run("show", "t-1").out

    assert r"a\x1b[2Jb c\nd [red]e[/red]" in shown


def test_an_export_shows_its_progress_on_the_terminal_and_nothing_of_it_in_the_file(
    run: Run, start: Start, folder: Path
) -> None:
    run("send", "OpenTicket", '{"ticket": "t-1"}')
    ours, theirs = pty.openpty()

    with (folder / "export.jsonl").open("w") as export:
        process = start("ls", "--all", "--json", stdout=export.fileno(), stderr=theirs, TERM="xterm-256color")
    os.close(theirs)

    assert "100%" in read_terminal(ours)
    assert process.popen.wait(20) == 0
    assert json.loads((folder / "export.jsonl").read_text())["id"] == "t-1"


# ---- the demo


def test_the_demo_tells_its_story_and_leaves_nothing(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(folder))

    ran = run("demo")

    assert ran.code == 0
    assert "result: CountedThrice(counter='c-1')" in ran.out
    events: list[Any] = run("demo", "--json").document["stream"]
    assert [event["event"] for event in events] == ["Began", "InitiatedBy", "Received", "Received", "Completed"]
    assert [path.name for path in folder.iterdir()] == ["shop.py"]


@pytest.mark.parametrize("command", ["lint", "what-if", "stats", "stuck", "doctor"])
def test_an_app_as_a_whole_is_named_with_or_without_the_option(
    command: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_environment = run(command)
    monkeypatch.delenv("MAINSPRING_APP")
    assert run(command, "shop:app").code == run(command, "--app", "shop:app").code == by_environment.code
    both = run(command, "shop:app", "--app", "other:app")
    assert both.code == 2
    assert "Which app, shop:app or other:app?" in both.err
