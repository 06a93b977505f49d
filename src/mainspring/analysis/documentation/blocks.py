"""What a page is made of. Both ways to write one, Markdown and HTML, write these and nothing else."""

from __future__ import annotations

from typing import Final, TypeAlias

from msgspec import Struct

from mainspring.analysis.diagram.diagram import Diagram


class Code(Struct, frozen=True, tag=True):
    """A piece of text that is a name or a piece of code."""

    text: str


class Link(Struct, frozen=True, tag=True):
    """The name of another page of the same documentation, and where it lies; `page` has no ending."""

    text: str
    page: str
    anchor: str = ""


INDEX: Final = "index"


def page_name(workflow: str) -> str:
    """Return the name of a workflow's page, which is its own unless the index has it.

    >>> page_name("Door"), page_name("Index")
    ('Door', 'Index_')
    """
    return f"{workflow}_" if workflow.lower() == INDEX else workflow


def link_to(workflow: str) -> Link:
    """Return a link to the page of a workflow.

    >>> link_to("Door").page
    'Door'
    """
    return Link(workflow, page_name(workflow))


Piece: TypeAlias = str | Code | Link
Cell: TypeAlias = tuple[Piece, ...]
"""A text in pieces."""


class Heading(Struct, frozen=True, tag=True):
    """A heading: level 1 is the page's own."""

    text: str
    level: int


class Text(Struct, frozen=True, tag=True):
    """A paragraph.

    >>> Text(("Begins with ", Code("PlaceOrder"), ".")).pieces[0]
    'Begins with '
    """

    pieces: Cell


class Items(Struct, frozen=True, tag=True):
    """A list.

    >>> Items((("one",), ("two",))).items[1]
    ('two',)
    """

    items: tuple[Cell, ...]


class Table(Struct, frozen=True, tag=True):
    """A table. `caption` says to those who cannot see it what it is about."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


class Picture(Struct, frozen=True, tag=True):
    """A diagram.

    >>> Picture(Diagram("Door", "code", (), ())).diagram.workflow
    'Door'
    """

    diagram: Diagram


Block: TypeAlias = Heading | Text | Items | Table | Picture


class Page(Struct, frozen=True):
    """A page. `name` is that of its file, without an ending."""

    name: str
    title: str
    blocks: tuple[Block, ...]


def without_empty_columns(table: Table) -> Table:
    """Return a table without the columns in which nothing stands.

    >>> without_empty_columns(Table("States", ("state", "meaning"), ((("New",), ()),))).columns
    ('state',)
    """
    used = [place for place, _ in enumerate(table.columns) if any(any(row[place]) for row in table.rows)]
    rows = tuple(tuple(row[place] for place in used) for row in table.rows)
    return Table(table.caption, tuple(table.columns[place] for place in used), rows)


def listed(pieces: list[Piece], between: str = ", ") -> Cell:
    """Return pieces one after the other, with something between them.

    >>> listed([Code("A"), Code("B")])
    (Code(text='A'), ', ', Code(text='B'))
    """
    cell: list[Piece] = []
    for piece in pieces:
        cell += [between, piece] if cell else [piece]
    return tuple(cell)
