"""Pages into a directory: each is written whole or not at all, and none is left that is not true any more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from mainspring.analysis.documentation import html, markdown
from mainspring.analysis.documentation.blocks import Page
from mainspring.analysis.files import write_whole

Format: TypeAlias = Literal["md", "html"]

_WRITERS: Final[dict[Format, tuple[Callable[[Page], str], str, str]]] = {
    "md": (markdown.to_markdown, markdown.ENDING, markdown.MARK),
    "html": (html.to_html, html.ENDING, html.MARK),
}


class Written(Struct, frozen=True):
    """What was done: the files that were written, and those of workflows that are gone, which were removed.

    >>> Written((), ()).removed
    ()
    """

    written: tuple[str, ...]
    removed: tuple[str, ...]


def write_pages(directory: Path, pages: Sequence[Page], format: Format) -> Written:
    """Write pages. Only files that were written by this very function before are ever removed."""
    write, ending, mark = _WRITERS[format]
    directory.mkdir(parents=True, exist_ok=True)
    names = [f"{page.name}{ending}" for page in pages]
    for name, page in zip(names, pages, strict=True):
        write_whole(directory / name, write(page))
    stale = [path for path in sorted(directory.glob(f"*{ending}")) if path.name not in names and _ours(path, mark)]
    for path in stale:
        path.unlink()
    return Written(tuple(names), tuple(path.name for path in stale))


def _ours(path: Path, mark: str) -> bool:
    with path.open(encoding="utf-8", errors="replace") as file:
        return mark in file.read(1_000)
