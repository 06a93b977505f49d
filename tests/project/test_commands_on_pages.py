"""Every command that a page tells to type exists, and takes the options and the words that it has there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from mainspring.cli.group import commands
from tests.project.test_docs import PAGES, ROOT, named

STARTER = ROOT / "src/mainspring/cli/starter/README.md.txt"
SPAN = re.compile(r"`(mainspring [^`]+)`")
FENCE = re.compile(r"^```(?:sh|console|text)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINE = re.compile(r"^(?:\$ )?(?:[A-Z_]+=\S+ )*(mainspring [a-z-].*)$", re.MULTILINE)
# What ends a command within a line.
END = re.compile(r" (?:[|&;<>]|#|… )|  ")
OPTION = re.compile(r"(?<=\s)--?[a-z][a-z-]*")


def typed(page: Path) -> Iterator[str]:
    """Return the commands on a page: in code within a line, and in blocks for a terminal."""
    text = page.read_text()
    for found in SPAN.finditer(text):
        yield END.split(found[1])[0]
    for block in FENCE.finditer(text):
        yield from (END.split(found[1])[0] for found in LINE.finditer(block[1]))


def resolved(line: str) -> tuple[click.Command, list[str]]:
    """Return the command that a line names, and the words behind it."""
    command: click.Command = commands
    words = shlex.split(line)[1:]
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        named_here = [(name, command.get_command(click.Context(command), name)) for name in words[0].split("|")]
        missing = [name for name, found in named_here if found is None]
        assert not missing, f"there is no `{missing[0]}` in `{line}`"
        command, words = next(found for _, found in named_here if found), words[1:]
    return command, words


def options_of(command: click.Command) -> set[str]:
    return {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)} | {"--help"}


def too_many(command: click.Command, words: list[str]) -> list[str]:
    """Return the words that a command does not take; none where an option is only named, without its value."""
    try:
        _, left, _ = command.make_parser(click.Context(command)).parse_args(words)
    except click.BadOptionUsage:
        return []
    return left


@pytest.mark.parametrize("page", [page for page in (*PAGES, STARTER) if any(typed(page))], ids=named)
def test_commands_options_and_words_on_a_page_are_taken(page: Path) -> None:
    for line in typed(page):
        command, words = resolved(line)
        unknown = set(OPTION.findall(line)) - options_of(command) - options_of(commands)
        assert unknown == set(), f"`{line}` has options that do not exist"
        if not isinstance(command, click.Group):
            assert too_many(command, words) == [], f"`{line}` has words that are not taken"


def test_a_command_that_does_not_exist_is_found() -> None:
    with pytest.raises(AssertionError, match="no `dance`"):
        resolved("mainspring dance --fast")

    command, words = resolved("mainspring tasks list --role 'the manager' now")
    assert command.name == "list"
    assert "--dance" not in options_of(command)
    assert too_many(command, words) == ["now"]
