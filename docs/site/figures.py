"""The figures that pages show, from bench/RESULTS.md: copied, never typed."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
RESULTS = ROOT / "bench/RESULTS.md"
PAGES = [ROOT / "README.md", ROOT / "docs/concepts/comparison.md", ROOT / "docs/operations/sizing.md"]
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
WHO = {
    "mainspring, SQLite, best": "mainspring, SQLite",
    "mainspring, PostgreSQL, best": "mainspring, PostgreSQL",
    "DBOS, SQLite, best": "DBOS, SQLite",
    "DBOS, PostgreSQL, best": "DBOS, PostgreSQL",
    "Restate, best": "Restate",
}
WHAT = {
    "W1 instances/s": "orders of four steps, a second",
    "W2 p50 ms": "one order at a time, median ms",
    "W2 p99 ms": "… 99th percentile, ms",
    "W4 s": "fan out to 1,000 and join, s",
    "W5 s": "1,000 orders through a `kill -9`, s",
    "disk bytes each": "disk for an order, bytes",
}


def filled(page: str) -> str:
    """Return a page with today's figures between its marks.

    >>> filled("no marks")
    'no marks'
    """
    return re.sub(f"{BEGIN}\n.*?{END}", lambda _: f"{BEGIN}\n{table()}{END}", page, flags=re.DOTALL)


def table() -> str:
    """Return the figures of the comparison as a table of its own, at everybody's best durable setting."""
    rows = _rows(RESULTS.read_text())
    lines = [f"| | {' | '.join(WHAT.values())} |", f"|---|{'---:|' * len(WHAT)}"]
    for name, shown in WHO.items():
        lines.append(f"| {shown} | {' | '.join(_median(rows[name][column]) for column in WHAT)} |")
    return "\n".join(lines) + "\n"


def _rows(results: str) -> dict[str, dict[str, str]]:
    begin = results.index("<!-- comparison: begin -->")
    lines = [line for line in results[begin:].splitlines() if line.startswith("|")]
    head = [cell.strip() for cell in lines[0].split("|")[1:-1]]
    rows: dict[str, dict[str, str]] = {}
    for line in lines[2:]:
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) != len(head):
            break
        rows[cells[0]] = dict(zip(head, cells, strict=True))
    return rows


def _median(cell: str) -> str:
    """Return a cell without the spread that stands behind it in brackets."""
    return re.split(r"\s*[(\[]", cell)[0]
