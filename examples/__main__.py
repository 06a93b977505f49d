"""`python -m examples`: run all examples on a file, kill their worker in the middle, and show that nothing is lost.

`python -m examples stories`: tell the examples' stories in the pure core and show the streams that they make.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import importlib.util
import os
import pkgutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import examples
from examples.demo.drive import PATIENCE_SECONDS, demo
from examples.demo.page import BOLD, Page, counted, page
from examples.demo.show import show
from examples.stories import Story

INSTANCES = 320

DESCRIPTION = """\
Without a command: run all examples on a SQLite file with a worker process, kill that process in the middle, start
another, and show that nothing was lost and nothing was done twice. On a terminal it ends by serving the studio.
"""
STORIES = """\
Tell the stories of the examples. Each story sends some messages to one instance of a workflow, on the pure core: no
database, no clock, no network. What you see is the stream it makes, which is all that mainspring would store.
"""
HOW_TO_READ = """\
how to read a stream:
  position   the version of the event, 1, 2, 3 and so on; nothing is ever changed or left out
  kind       how the message was meant: a command, an event, a handler's result, a reply, a timer, a task, its answer
  direction  an input came to the instance, an output was decided by it; neither: its beginning and its end
  event      what happened: Received is an input; Sent, Published, Replied, Scheduled, Asked record decisions
  message    what it said

  python -m examples                            run them all, durably
  python -m examples stories                    tell all stories
  python -m examples stories group_checkout     tell those of one example
  python -m examples stories | less             plain text, lines uncut
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the arguments ask for, and return the exit code."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        # A terminal that cannot show a character shows a ? for it; that is no reason to stop.
        reconfigure(errors="replace")
    try:
        try:
            return run(arguments)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader has seen enough. Python would complain once more when it flushes at exit, so let it flush nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130


def run(arguments: Sequence[str] | None) -> int:
    """Read the command line and do what it asks for."""
    found = packages()
    asked = parse(arguments, found)
    paper = page(sys.stdout, asked.colour, os.environ)
    if asked.command == "stories":
        tell_all(list(dict.fromkeys(asked.examples)) or list(found), paper)
        return 0
    if asked.folder is not None:
        return run_demo(Path(asked.folder), asked.instances, paper)
    with tempfile.TemporaryDirectory(prefix="mainspring-demo-", ignore_cleanup_errors=True) as folder:
        return run_demo(Path(folder), asked.instances, paper)


def run_demo(folder: Path, instances: int, paper: Page) -> int:
    """Run the durable demo in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        paper.say(f"{folder} is not empty: name a new folder, so that the demo counts what is its own")
        return 2
    try:
        code = asyncio.run(demo(folder, instances, paper))
        if code:
            return code
        # Somebody who looks at a terminal wants to look at this too; a script only wants to know that it works.
        return asyncio.run(show(folder, paper, stay=sys.stdin.isatty() and sys.stdout.isatty()))
    except TimeoutError:
        paper.say(f"It did not become quiet in {PATIENCE_SECONDS:.0f} s. Run it again with --folder to look into it.")
        return 1


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
    found: list[Story] = importlib.import_module(f"{examples.__name__}.{package}.story").STORIES
    return found


def parse(arguments: Sequence[str] | None, found: Mapping[str, str]) -> argparse.Namespace:
    """Read the command line; on a mistake, say what would be right and exit with 2."""
    wide = max(map(len, found), default=0)
    listed = "\n".join(f"  {name:{wide}}  {summary}" for name, summary in found.items())
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument(
        "--colour",
        choices=["auto", "always", "never"],
        default="auto",
        help="auto: on a terminal, unless NO_COLOR is set",
    )
    parser = argparse.ArgumentParser(
        prog="python -m examples",
        description=DESCRIPTION,
        epilog=f"examples:\n{listed}\n\n{HOW_TO_READ}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[shared],
    )
    parser.add_argument("--instances", type=int, default=INSTANCES, help=f"how many are sent, {INSTANCES} by default")
    parser.add_argument("--folder", help="keep the database and the handlers' file in this new folder")
    commands = parser.add_subparsers(dest="command", metavar="command")
    telling = commands.add_parser(
        "stories",
        help="tell the examples' stories in the pure core",
        description=STORIES,
        epilog=f"examples:\n{listed}\n\n{HOW_TO_READ}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[shared],
    )
    telling.add_argument("examples", nargs="*", metavar="example", help="the examples to tell; all when none is named")
    asked = parser.parse_args(arguments)
    for name in getattr(asked, "examples", ()):
        if name not in found:
            telling.error(f"there is no example named {name!r}; there are: {', '.join(found)}")
    if asked.instances < 1:
        parser.error("--instances needs a number from 1")
    return asked


def tell_all(names: Sequence[str], paper: Page) -> None:
    """Write every story of these examples, then how much that was."""
    told = [tell_one(name, story, paper) for name in names for story in stories(name)]
    paper.write(f"{counted(len(told), 'story', 'stories')}, {counted(sum(told), 'event', 'events')}", BOLD)


def tell_one(example: str, story: Story, paper: Page) -> int:
    """Write one story: its title, its stream, its last state. Return how many events the stream has."""
    rehearsal = story.rehearse()
    paper.write(f"{example}: {story.title}", BOLD)
    paper.stream(rehearsal.entries)
    paper.write(f"state: {rehearsal.state!r}")
    paper.write()
    return rehearsal.position


if __name__ == "__main__":
    sys.exit(main())
