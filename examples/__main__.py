"""`python -m examples`: tell the examples' stories and show the streams that they make."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import pkgutil
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

import examples
from examples.stories import Story
from mainspring.core.story import table, tell
from mainspring.testing import Rehearsal

BOLD, DIM, RESET = "\x1b[1m", "\x1b[2m", "\x1b[0m"
COLOURS = {"input": "\x1b[36m", "output": "\x1b[33m", "": DIM}

DESCRIPTION = """\
Tell the stories of the examples. Each story sends some messages to one instance of a workflow, on the pure core: no
database, no clock, no network. What you see is the stream it makes, which is all that mainspring would store.
"""
HOW_TO_READ = """\
how to read a stream:
  position   the version of the event, 1, 2, 3 and so on; nothing is ever changed or left out
  kind       how the message was meant: a command, an event, a handler's result, a reply, a timer
  direction  an input came to the instance, an output was decided by it; neither: its beginning and its end
  event      what happened: Received is an input; Sent, Published, Replied, Scheduled record decisions
  message    what it said

  python -m examples                    all of them
  python -m examples group_checkout     one of them
  python -m examples | less             plain text, lines uncut
"""


@dataclass(frozen=True)
class Page:
    """What the stories are written on. `width` is None where lines are not to be cut."""

    out: TextIO
    coloured: bool
    width: int | None

    def write(self, text: str = "", style: str = "") -> None:
        if self.width is not None and len(text) > self.width:
            text = f"{text[: self.width - 1]}…"
        self.out.write(f"{style}{text}{RESET}\n" if self.coloured and style and text else f"{text}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Tell the stories that the arguments ask for, and return the exit code."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        # A terminal that cannot show a character shows a ? for it; that is no reason to stop.
        reconfigure(errors="replace")
    try:
        try:
            run(arguments)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader has seen enough. Python would complain once more when it flushes at exit, so let it flush nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def run(arguments: Sequence[str] | None) -> None:
    """Read the command line and tell what it asks for."""
    found = packages()
    asked = parse(arguments, found)
    names = list(dict.fromkeys(asked.examples)) or list(found)
    tell_all(names, page(sys.stdout, asked.colour, os.environ))


def packages() -> dict[str, str]:
    """Return the examples that have stories, each with the first line of its docstring."""
    found: dict[str, str] = {}
    for module in pkgutil.iter_modules(examples.__path__):
        name = f"{examples.__name__}.{module.name}"
        if module.ispkg and importlib.util.find_spec(f"{name}.story") is not None:
            found[module.name] = (importlib.import_module(name).__doc__ or "").partition("\n")[0]
    return found


def stories(package: str) -> list[Story]:
    """Return the stories of an example."""
    return importlib.import_module(f"{examples.__name__}.{package}.story").STORIES


def parse(arguments: Sequence[str] | None, found: Mapping[str, str]) -> Any:
    """Read the command line; on a mistake, say what would be right and exit with 2."""
    wide = max(map(len, found), default=0)
    listed = "\n".join(f"  {name:{wide}}  {summary}" for name, summary in found.items())
    parser = argparse.ArgumentParser(
        prog="python -m examples",
        description=DESCRIPTION,
        epilog=f"examples:\n{listed}\n\n{HOW_TO_READ}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("examples", nargs="*", metavar="example", help="the examples to tell; all when none is named")
    parser.add_argument(
        "--colour",
        choices=["auto", "always", "never"],
        default="auto",
        help="auto: on a terminal, unless NO_COLOR is set",
    )
    asked = parser.parse_args(arguments)
    for name in asked.examples:
        if name not in found:
            parser.error(f"there is no example named {name!r}; there are: {', '.join(found)}")
    return asked


def page(out: TextIO, colour: str, environment: Mapping[str, str]) -> Page:
    """Return a page that suits where it goes: coloured and cut on a terminal, plain and whole elsewhere."""
    terminal = out.isatty()
    coloured = colour == "always" or (colour == "auto" and terminal and not environment.get("NO_COLOR"))
    return Page(out, coloured, shutil.get_terminal_size().columns if terminal else None)


def tell_all(names: Sequence[str], page: Page) -> None:
    """Write every story of these examples, then how much that was."""
    told = [tell_one(name, story, page) for name in names for story in stories(name)]
    page.write(f"{counted(len(told), 'story', 'stories')}, {counted(sum(told), 'event', 'events')}", BOLD)


def tell_one(example: str, story: Story, page: Page) -> int:
    """Write one story: its title, its stream, its last state. Return how many events the stream has."""
    rehearsal = Rehearsal(story.workflow)
    for message, kind in story.inputs():
        rehearsal.take(message, kind=kind)
    rows = tell(rehearsal.entries)
    heading, *lines = table(rows).splitlines()
    page.write(f"{example}: {story.title}", BOLD)
    page.write(heading, DIM)
    for row, line in zip(rows, lines, strict=True):
        page.write(line, COLOURS[row.direction])
    page.write(f"state: {rehearsal.state!r}")
    page.write()
    return rehearsal.version


def counted(number: int, one: str, many: str) -> str:
    """Return a number with its noun."""
    return f"{number:,} {one if number == 1 else many}"


if __name__ == "__main__":
    sys.exit(main())
