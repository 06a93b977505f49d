"""A page as self-contained HTML: its styles and pictures are inside, and it loads nothing."""

from __future__ import annotations

import re
from typing import Final

from mainspring.analysis.diagram.svg import to_svg
from mainspring.analysis.documentation.blocks import (
    INDEX,
    Block,
    Cell,
    Code,
    Heading,
    Items,
    Link,
    Page,
    Picture,
    Table,
    Text,
)
from mainspring.analysis.texts import escape

ENDING: Final = ".html"
MARK: Final = "<!-- Written by mainspring docs: changes made here are lost. -->"

STYLE: Final = """\
:root { color-scheme: light dark; --ink: #1f2937; --soft: #4b5563; --paper: #ffffff; --faint: #f3f4f6; --rule: #d1d5db;
  --link: #4338ca }
@media screen and (prefers-color-scheme: dark) { :root { --ink: #e5e7eb; --soft: #9ca3af; --paper: #111827;
  --faint: #1f2937; --rule: #374151; --link: #a5b4fc } }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 72rem; padding: 1.5rem; color: var(--ink); background: var(--paper);
  font: 16px/1.55 system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif }
h1 { font-size: 1.9rem; margin: 0.5rem 0 } h2 { margin-top: 2.2rem; border-bottom: 1px solid var(--rule) }
a { color: var(--link) } nav { font-size: 0.95rem }
code { font: 0.88em/1.4 ui-monospace, 'SF Mono', Menlo, Consolas, monospace; background: var(--faint);
  padding: 0.08em 0.3em; border-radius: 4px; overflow-wrap: break-word }
figure { margin: 0 } .wide { overflow-x: auto } .wide svg { max-width: 100%; height: auto }
table { border-collapse: collapse; width: 100%; font-size: 0.92rem }
th, td { text-align: left; vertical-align: top; padding: 0.4rem 0.6rem; border-bottom: 1px solid var(--rule) }
th { color: var(--soft); font-weight: 600 }
caption { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%) }
@media print { body { max-width: none; padding: 0; font-size: 11px } nav { display: none } h2 { break-after: avoid }
  tr, svg { break-inside: avoid } .wide { overflow: visible } }"""


def to_html(page: Page) -> str:
    """Return a page as an HTML document.

    >>> to_html(Page("Door", "Door", (Heading("Door", 1),))).splitlines()[0]
    '<!doctype html>'
    """
    home = (
        ""
        if page.name == INDEX
        else f'<nav aria-label="Documentation"><a href="{INDEX}{ENDING}">All workflows</a></nav>\n'
    )
    body = "\n".join(_block(block) for block in page.blocks)
    return (
        f'<!doctype html>\n{MARK}\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        # What stands in a docstring or in a message cannot make the page ask for anything, or run anything.
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{escape(page.title)}</title>\n<style>\n{STYLE}\n</style>\n</head>\n<body>\n{home}<main>\n{body}\n"
        "</main>\n</body>\n</html>\n"
    )


def anchor_of(text: str) -> str:
    """Return the name under which a heading is found, as GitHub makes it.

    >>> anchor_of("What it takes")
    'what-it-takes'
    """
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def _block(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f'<h{level} id="{escape(anchor_of(text))}">{escape(text)}</h{level}>'
        case Text(pieces):
            return f"<p>{_cell(pieces)}</p>"
        case Items(items):
            return "<ul>\n" + "\n".join(f"<li>{_cell(item)}</li>" for item in items) + "\n</ul>"
        case Table():
            return _table(block)
        case Picture(diagram):
            return f'<figure class="wide" tabindex="0">\n{to_svg(diagram)}</figure>'


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in table.columns)
    rows = "\n".join(f"<tr>{''.join(f'<td>{_cell(cell)}</td>' for cell in row)}</tr>" for row in table.rows)
    return (
        f'<div class="wide" tabindex="0"><table>\n<caption>{escape(table.caption)}</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table></div>"
    )


def _cell(cell: Cell) -> str:
    return "".join(_piece(piece) for piece in cell)


def _piece(piece: str | Code | Link) -> str:
    match piece:
        case Code(text):
            return f"<code>{escape(text)}</code>" if text else ""
        case Link(text, page, anchor):
            return f'<a href="{escape(page)}{ENDING}{"#" if anchor else ""}{escape(anchor)}">{escape(text)}</a>'
        case _:
            return escape(piece)
