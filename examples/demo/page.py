"""What is written on: coloured and cut on a terminal, plain and whole elsewhere."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TextIO

from mainspring.core.story import Entry, table, tell

BOLD, DIM, RESET = "\x1b[1m", "\x1b[2m", "\x1b[0m"
COLOURS = {"input": "\x1b[36m", "output": "\x1b[33m", "": DIM}


@dataclass(frozen=True)
class Page:
    """A place for lines. `width` is None where they are not to be cut."""

    out: TextIO
    coloured: bool
    width: int | None

    def write(self, text: str = "", style: str = "") -> None:
        if self.width is not None and len(text) > self.width:
            text = f"{text[: self.width - 1]}…"
        self.out.write(f"{style}{text}{RESET}\n" if self.coloured and style and text else f"{text}\n")

    def say(self, text: str, style: str = "") -> None:
        """Write a sentence: wrapped where a line of a table would be cut."""
        for line in [text] if self.width is None else textwrap.wrap(text, self.width):
            self.write(line, style)

    def stream(self, entries: Sequence[Entry], marks: Mapping[int, str] | None = None) -> None:
        """Write a stream as a table; `marks` are lines to come behind an entry."""
        rows = tell(entries)
        heading, *lines = table(rows).splitlines()
        self.write(heading, DIM)
        for entry, row, line in zip(entries, rows, lines, strict=True):
            self.write(line, COLOURS[row.direction])
            if marks and entry.position in marks:
                self.write(marks[entry.position], BOLD)


def page(out: TextIO, colour: str, environment: Mapping[str, str]) -> Page:
    """Return a page that suits where it goes."""
    terminal = out.isatty()
    coloured = colour == "always" or (colour == "auto" and terminal and not environment.get("NO_COLOR"))
    return Page(out, coloured, shutil.get_terminal_size().columns if terminal else None)


def counted(number: int, one: str, many: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "story", "stories"), counted(1_200, "story", "stories")
    ('1 story', '1,200 stories')
    """
    return f"{number:,} {one if number == 1 else many}"
