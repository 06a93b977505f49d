"""A project to start from, whose own tests pass."""

from __future__ import annotations

import keyword
import shlex
import sys
from collections.abc import Iterator
from importlib import metadata, resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

import click

from mainspring.cli.failures import MisuseError, writing
from mainspring.cli.options import examples, json_option
from mainspring.cli.output import write_json

NAME_CHARACTERS: Final = 50
SUFFIX: Final = ".txt"
# What the starter has as decide and evolve, and not as a flow.
STATE_MACHINE: Final = ("package/handlers.py", "package/workflow.py", "tests/test_workflow.py")
# What Python, the project and its tests import; the project's own folder is looked into first.
TAKEN: Final = sys.stdlib_module_names | {"fastapi", "httpx", "mainspring", "pytest", "test", "tests", "uvicorn"}
# A file of the starter that could not have its own name there.
RENAMED: Final = {"gitignore": ".gitignore"}


@click.command(
    epilog=examples("mainspring new leave", "mainspring new leave --into services/leave", "mainspring new leave --flow")
)
@click.argument("name")
@click.option("--into", type=click.Path(path_type=Path), help="The folder to make.  [default: ./NAME]")
@click.option("--flow", is_flag=True, help="Write the process as a flow, an async function.")
@json_option
def new(name: str, into: Path | None, flow: bool, as_json: bool) -> None:
    """Make a project to start from: a workflow, handlers, tests, an API, a compose file.

    NAME is that of the Python package, as `leave` or `group_checkout`. Nothing that exists is written over.
    """
    folder = into or Path(name)
    with writing(folder):
        files = write_project(checked_name(name), folder, flow=flow)
    if as_json:
        write_json({"folder": str(folder), "files": files})
        return
    click.echo(f"{folder} is made. Next:\n")
    served = ("mainspring", "studio", f"{name}.app:app", "--work")
    for words in (("cd", str(folder)), ("pip", "install", "-e", ".[dev]"), ("pytest",), served):
        click.echo(f"  {shlex.join(words)}")
    click.echo(f"\n{folder / 'README.md'} tells the rest.")


def checked_name(name: str) -> str:
    """Return a name that a package can have.

    >>> checked_name("group_checkout")
    'group_checkout'
    """
    if name in TAKEN:
        raise MisuseError(f"{name} is the name of another package, which the project would hide: choose another.")
    if not name.isidentifier() or keyword.iskeyword(name) or len(name) > NAME_CHARACTERS:
        raise MisuseError(
            f"{name!r} cannot name a package: use letters, digits and underscores, {NAME_CHARACTERS} at most, as "
            "in group_checkout."
        )
    return name


def write_project(name: str, folder: Path, *, flow: bool = False) -> list[str]:
    """Write the starter into a folder, which must be new or empty. Return the files' names."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise MisuseError(f"{folder} is there already: name another folder with --into, or empty it.")
    words = {
        "__NAME__": name,
        "__TITLE__": name.replace("_", " ").capitalize(),
        "__VERSION__": metadata.version("mainspring"),
    }
    files = dict(_files(resources.files("mainspring.cli") / "starter", ""))
    if flow:
        files |= dict(_files(resources.files("mainspring.cli") / "starter_flow", ""))
        files = {place: text for place, text in files.items() if place not in STATE_MACHINE}
    written: list[str] = []
    for place, text in files.items():
        for word, value in words.items():
            text = text.replace(word, value)  # noqa: PLW2901  all words, one after the other
        written.append(place.replace("package/", f"{name}/", 1))
        path = folder / written[-1]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return written


def _files(folder: Traversable, place: str) -> Iterator[tuple[str, str]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _files(entry, f"{place}{entry.name}/")
        elif entry.name.endswith(SUFFIX):
            name = entry.name.removesuffix(SUFFIX)
            yield f"{place}{RENAMED.get(name, name)}", entry.read_text(encoding="utf-8")
