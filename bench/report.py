"""Results as people read them, and as one line of JSON."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from msgspec import json

from bench.measure import Figures, machine, median


def medians(rounds: Sequence[Figures]) -> Figures:
    """Return the median of each figure over the rounds."""
    return {key: round(median([figures[key] for figures in rounds]), 4) for key in rounds[0]}


def result(name: str, store: str, n: int, figure: str, rounds: Sequence[Figures]) -> Figures:
    """Return a result: medians, and every round's main figure to see how far they are apart."""
    return {
        "bench": name,
        "store": store,
        "n": n,
        **medians(rounds),
        "repeats": len(rounds),
        "rounds": [figures[figure] for figures in rounds],
    }


def emit(figures: Figures, *, as_json: bool) -> None:
    """Print a result with the machine's facts beside it."""
    text = json.encode({**figures, **machine()}).decode() if as_json else table(figures)
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def table(figures: Figures) -> str:
    """Return a result as lines of name and value.

    >>> print(table({"bench": "w1", "store": "sqlite", "n": 10, "instances_per_s": 3500.0, "rounds": [3400.0, 3500.0]}))
    w1 · sqlite · n = 10
      instances_per_s                3,500
      rounds                         3,400  3,500
    """
    shown = dict(figures)
    title = [str(shown.pop("bench"))]
    if "store" in shown:
        title.append(str(shown.pop("store")))
    if "n" in shown:
        title.append(f"n = {shown.pop('n'):,}")
    lines = [f"  {key:<30} {_cell(value)}" for key, value in shown.items()]
    return "\n".join([" · ".join(title), *lines])


def _cell(value: Any) -> str:
    match value:
        case list():
            return "  ".join(_cell(item) for item in value)  # pyright: ignore[reportUnknownVariableType]  a list of figures
        case float() if value >= 1_000 or value == int(value):
            return f"{value:,.0f}"
        case int() | float():
            return f"{value:,}"
        case _:
            return str(value)
