"""A page of results, made of sections that are measured apart: one is written anew while the others stay."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from bench.measure import Figures, machine

TITLE = "# Results\n"


def put(page: Path, name: str, section: str) -> None:
    """Write a section into a page: in the place of the one with this name, else at the end."""
    page.parent.mkdir(parents=True, exist_ok=True)
    text = page.read_text() if page.exists() else TITLE
    page.write_text(with_section(text, name, section))


def with_section(text: str, name: str, section: str) -> str:
    r"""Return a page with a section in it.

    >>> once = with_section("# Results\n", "speed", "## Speed\nfast")
    >>> print(with_section(once, "speed", "## Speed\nfaster"))
    # Results
    <BLANKLINE>
    <!-- speed: begin -->
    ## Speed
    faster
    <!-- speed: end -->
    <BLANKLINE>
    """
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    marked = f"{begin}\n{section.strip()}\n{end}\n"
    there = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}\n", re.DOTALL)
    if there.search(text):
        return there.sub(lambda _: marked, text, count=1)
    return f"{text.rstrip()}\n\n{marked}"


def put_result(
    page: Path, figures: Figures, section: Callable[[Figures], str], plot: Callable[[Figures], str] | None = None
) -> None:
    """Write what a measurement found into a page, with the day and the machine, and its picture beside the page."""
    name = f"{figures['bench']}-{figures['store']}"
    parts = [section(figures)]
    if plot is not None:
        picture = page.with_name(f"{name}.svg")
        picture.write_text(plot(figures))
        parts.append(f"![the same as curves]({picture.name})")
    facts = machine()
    parts.append(f"{datetime.now(UTC):%Y-%m-%d}, {facts['cores']} cores, {facts['machine']}, Python {facts['python']}.")
    put(page, name, "\n\n".join(parts))
