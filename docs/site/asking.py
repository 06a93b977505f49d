"""What in a built page would make a browser ask somebody else for something."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ELSEWHERE = r"=\s*[\"']?(?:https?:)?//"
# What a browser fetches by itself: an <a href> is followed by people only.
FETCHED = re.compile(
    rf"<(?:script|img|iframe|source|audio|video|embed|object)\b[^>]*\b(?:src|srcset|data){ELSEWHERE}[^>]*",
    re.IGNORECASE,
)
LINKED = re.compile(rf"<link\b[^>]*\bhref{ELSEWHERE}[^>]*", re.IGNORECASE)
STYLED = re.compile(r"@import\s+(?:url\()?[\"']?(?:https?:)?//|url\(\s*[\"']?(?:https?:)?//", re.IGNORECASE)
KINDS = {".html": (FETCHED, LINKED, STYLED), ".svg": (FETCHED, STYLED), ".css": (STYLED,)}


def asking(site: Path) -> Iterator[str]:
    """Return what asks, as file and place."""
    for path in sorted(site.rglob("*")):
        if path.suffix in KINDS:
            yield from (f"{path.relative_to(site)}: {found}" for found in asking_in(path.read_text(), path.suffix))


def asking_in(text: str, kind: str = ".html") -> Iterator[str]:
    """Return what asks in one text.

    >>> list(asking_in('<a href="https://a.example"><img src="b.png"><img src="https://c.example/d.png">'))
    ['<img src="https://c.example/d.png"']
    """
    for pattern in KINDS[kind]:
        yield from (found[0] for found in pattern.finditer(text))
