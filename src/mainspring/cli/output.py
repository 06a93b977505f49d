"""Tables for people, JSON for programs. Rich is imported only when a table goes to a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import click
from msgspec import Raw, json

from mainspring.core.story import duration
from mainspring.errors import visible

STATUS_STYLES: Final = {
    "suspended": "red",
    "compensating": "yellow",
    "failed": "red",
    "completed": "green",
    "cancelled": "dim",
    "terminated": "dim",
}
GAP: Final = "  "


def write_json(document: Any) -> None:
    """Write one JSON document in one line, as UTF-8 whatever the terminal speaks."""
    click.echo(json.encode(document))


def write_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], styles: Sequence[str] = (), *, heading: bool = True
) -> None:
    """Write a table: drawn by rich on a terminal, in plain columns and uncut elsewhere."""
    cells = [[visible(cell) for cell in row] for row in rows]
    if not sys.stdout.isatty() or not _write_rich(columns, cells, styles, heading=heading):
        click.echo("\n".join(plain(columns, cells, heading=heading)))


def plain(columns: Sequence[str], rows: Sequence[Sequence[str]], *, heading: bool = True) -> list[str]:
    """Return a table as lines of text.

    >>> plain(["instance", "status"], [["Counter/c-1", "running"]])
    ['instance     status', 'Counter/c-1  running']
    """
    lines = [columns, *rows] if heading else [*rows]
    widths = [max(len(line[index]) for line in lines) for index in range(len(columns))]
    return [GAP.join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines]


def _write_rich(columns: Sequence[str], rows: Sequence[Sequence[str]], styles: Sequence[str], *, heading: bool) -> bool:
    try:
        from rich.console import Console  # noqa: PLC0415  40 ms that only a table on a terminal is worth
        from rich.table import Table  # noqa: PLC0415  as above
        from rich.text import Text  # noqa: PLC0415  as above
    except ImportError:
        return False
    table = Table(box=None, show_header=heading, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns[:-1]:
        table.add_column(column, no_wrap=True)
    table.add_column(columns[-1], overflow="fold")
    for index, row in enumerate(rows):
        # Text, for square brackets in a user's data are no markup.
        table.add_row(*(Text(cell) for cell in row), style=styles[index] if styles else "")
    Console().print(table)
    return True


def text_of(message: Raw) -> str:
    """Return a message's JSON as a text."""
    return bytes(message).decode(errors="backslashreplace")


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun.

    >>> counted(1, "timer"), counted(2_000, "timer"), counted(0, "entry", "entries")
    ('1 timer', '2,000 timers', '0 entries')
    """
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def clock(time: datetime) -> str:
    """Return a time as people read it, in UTC.

    >>> clock(datetime(1970, 1, 1, 0, 0, 1, 500_000))
    '1970-01-01 00:00:01.500'
    """
    return time.isoformat(" ", "milliseconds").removesuffix("+00:00")


def distance(time: datetime, now: datetime) -> str:
    """Return how far a time lies ahead or behind, in whole seconds.

    >>> now = datetime(2026, 1, 1)
    >>> distance(now + timedelta(minutes=1), now), distance(now, now + timedelta(seconds=3)), distance(now, now)
    ('in 1 min', '3 s ago', 'now')
    """
    seconds = round((time - now).total_seconds())
    span = duration(timedelta(seconds=abs(seconds)))
    return "now" if seconds == 0 else f"in {span}" if seconds > 0 else f"{span} ago"


def write_lines(documents: Iterable[Any]) -> None:
    """Write JSON lines."""
    for document in documents:
        write_json(document)
