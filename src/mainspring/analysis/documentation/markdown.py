r"""A page as Markdown, as GitHub reads it: tables, and Mermaid for diagrams."""

from __future__ import annotations

import re
from typing import Final

from mainspring.analysis.diagram.diagram import Diagram
from mainspring.analysis.diagram.mermaid import to_mermaid
from mainspring.analysis.documentation.blocks import Block, Cell, Code, Heading, Items, Link, Page, Picture, Table, Text

ENDING: Final = ".md"
MARK: Final = "<!-- Written by `mainspring docs`: changes made here are lost. -->"

_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>#|~$!&])")


def to_markdown(page: Page) -> str:
    """Return a page as Markdown.

    >>> print(to_markdown(Page("Door", "Door", (Heading("Door", 1), Text(("Opens and shuts.",))))))
    <!-- Written by `mainspring docs`: changes made here are lost. -->
    <BLANKLINE>
    # Door
    <BLANKLINE>
    Opens and shuts.
    <BLANKLINE>
    """
    return "\n\n".join([MARK, *(_block(block) for block in page.blocks)]) + "\n"


def _block(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"{'#' * level} {_escaped(text)}"
        case Text(pieces):
            return _line_start(_cell(pieces))
        case Items(items):
            return "\n".join(f"- {_cell(item)}" for item in items)
        case Table():
            return _table(block)
        case Picture(diagram):
            return _picture(diagram)


def _picture(diagram: Diagram) -> str:
    notes = "".join(f"\n- {_escaped(note)}" for note in diagram.notes)
    return f"```mermaid\n{to_mermaid(diagram)}```{chr(10) if notes else ''}{notes}"


def _table(table: Table) -> str:
    lines = [table.columns, tuple("---" for _ in table.columns)]
    lines += [tuple(_cell(cell) for cell in row) for row in table.rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(cell: Cell) -> str:
    return "".join(_piece(piece) for piece in cell)


def _piece(piece: str | Code | Link) -> str:
    match piece:
        case Code(text):
            return _code(text)
        case Link(text, page, anchor):
            return f"[{_escaped(text)}]({page}{ENDING}{'#' if anchor else ''}{anchor})"
        case _:
            return _escaped(piece)


def _code(text: str) -> str:
    r"""Return a piece of code in as many backticks as it takes. A bar would end the cell of a table even there.

    >>> _code("a | b"), _code("`a`")
    ('`a \\| b`', '`` `a` ``')
    """
    line = " ".join(text.split()).replace("|", "\\|")
    longest = max((len(run) for run in re.findall(r"`+", line)), default=0)
    ticks = "`" * (longest + 1)
    space = " " if longest else ""
    return f"{ticks}{space}{line}{space}{ticks}" if line else ""


def _escaped(text: str) -> str:
    r"""Return a text in which Markdown sees nothing but a text.

    >>> _escaped("a_b | <c>")
    'a\\_b \\| \\<c\\>'
    """
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()) if "\n" in text else text)


def _line_start(text: str) -> str:
    """Return a paragraph that does not begin as a list, a number of a list or a quotation would."""
    return re.sub(r"^(\s*)([-+=]|\d+(?=[.)]))", r"\1\\\2", text)
