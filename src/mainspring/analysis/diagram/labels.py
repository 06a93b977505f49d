"""Words that every kind of picture has in common: cut to a length, with counts and times, and as names of nodes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Final

from mainspring.analysis.diagram.diagram import Node

_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"), (0.001, "ms"))
_WIDE: Final = frozenset("mwMW@%…—→×")
_NARROW: Final = frozenset("ijl.,:;'|!()[]{} fIrt·-/\\\"")


def cut(text: str, most_characters: int) -> str:
    """Return a text in one line, cut to a length.

    >>> cut("amount > limit", 9)
    'amount >…'
    """
    line = " ".join(text.split())
    return line if len(line) <= most_characters else f"{line[: most_characters - 1]}…"


def span_of(seconds: float) -> str:
    """Return a length of time in its largest unit.

    >>> span_of(90), span_of(0.25), span_of(0), span_of(172_800)
    ('1.5 min', '250 ms', '0 s', '2 d')
    """
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{_rounded(seconds / size)} {unit}"
    return "0 s" if seconds <= 0 else f"{_rounded(seconds * 1_000)} ms"


def _rounded(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0") if number < 10 else f"{number:,.0f}"


def dwell_of(node: Node) -> str:
    """Return how often a state was visited, how many are in it now, and how long it takes.

    >>> dwell_of(Node("Waiting", visits=1_204, now=3, dwell_seconds=90))
    '1,204 visits · 3 now · median 1.5 min'
    """
    if node.visits is None:
        return ""
    parts = [f"{node.visits:,} {'visit' if node.visits == 1 else 'visits'}"]
    if node.now:
        parts.append(f"{node.now:,} now")
    if node.dwell_seconds is not None:
        parts.append(f"median {span_of(node.dwell_seconds)}")
    return " · ".join(parts)


def names_of(nodes: Iterable[Node], reserved: Collection[str]) -> dict[str, str]:
    """Return a plain name for each node, by which it is known in a text: its own where that can be.

    >>> names_of([Node("Paid"), Node("shop.Paid"), Node("end")], {"end"})
    {'Paid': 'Paid', 'shop.Paid': 'shop_Paid', 'end': 'end_'}
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    for node in nodes:
        plain = re.sub(r"\W", "_", node.name, flags=re.ASCII).strip("_") or "state"
        plain = f"s{plain}" if plain[0].isdigit() else plain
        while plain in taken or plain.lower() in reserved:
            plain = f"{plain}_"
        taken.add(plain)
        names[node.name] = plain
    return names


def width_of(text: str, size: float, *, bold: bool = False) -> float:
    """Return how wide a text is at most, in pixels, in a usual sans-serif font. Rather too wide than too narrow.

    >>> width_of("ill", 10) < width_of("MMM", 10)
    True
    """
    ems = sum(_ems(character) for character in text)
    return ems * size * (1.08 if bold else 1.0)


def _ems(character: str) -> float:
    if character in _NARROW:
        return 0.4
    if character in _WIDE or ord(character) > 0x2E7F:
        return 1.0
    return 0.74 if character.isupper() else 0.6
