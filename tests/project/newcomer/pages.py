"""The chapters, as what a reader does with them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.support.paths import ROOT

CHAPTERS = sorted((ROOT / "docs/tutorial").glob("[1-9]-*.md"))
FENCE = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEAD = re.compile(r"# (?P<name>[\w.]+\.py)(?P<changed>: new or changed)?\n+")
PROMPT = "$ "


@dataclass(frozen=True)
class Written:
    """A file, or with `changed` parts of one."""

    name: str
    text: str
    changed: bool


@dataclass(frozen=True)
class Typed:
    """A command, and what the page says that it prints. `place` is where that stands on the page."""

    command: str
    printed: str
    place: tuple[int, int]


Block = Written | Typed


def blocks(page: str) -> Iterator[Block]:
    """Return what a reader of a page does, in order."""
    for found in FENCE.finditer(page):
        kind, text = found.groups()
        if kind == "python":
            head = HEAD.match(text)
            assert head is not None, f"a block of the tutorial begins with its file's name:\n{text}"
            yield Written(head["name"], text[head.end() :], head["changed"] is not None)
        else:
            yield from _typed(text, found.start(2))


def _typed(text: str, start: int) -> Iterator[Typed]:
    assert text.startswith(PROMPT), f"a block of commands begins with one:\n{text}"
    place = start
    for part in re.split(r"(?m)^(?=\$ )", text)[1:]:
        command, _, printed = part.partition("\n")
        begin = place + len(command) + 1
        yield Typed(command.removeprefix(PROMPT), printed, (begin, begin + len(printed)))
        place += len(part)
