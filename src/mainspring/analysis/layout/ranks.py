"""Ranks: which box stands above which. Lines that lead back are turned round first, so that there is no circle."""

from __future__ import annotations

from collections.abc import Sequence

from mainspring.analysis.layout.graph import Box, Line


def leads_back(boxes: Sequence[Box], lines: Sequence[Line]) -> frozenset[int]:
    """Return the places of the lines that lead back to a box on the way to their own source.

    The way begins at the first box, so what is drawn upwards is what a reader would call a way back.

    >>> leads_back([Box("A", 1, 1), Box("B", 1, 1)], [Line("A", "B"), Line("B", "A")])
    frozenset({1})
    """
    leaving: dict[str, list[int]] = {box.name: [] for box in boxes}
    for place, line in enumerate(lines):
        if line.source != line.target:
            leaving[line.source].append(place)
    back: set[int] = set()
    done: set[str] = set()
    for root, first in leaving.items():
        way: dict[str, list[int]] = {} if root in done else {root: [*first]}
        while way:
            here, open_lines = next(reversed(way.items()))
            if not open_lines:
                done.add(here)
                del way[here]
                continue
            place = open_lines.pop(0)
            target = lines[place].target
            if target in way:
                back.add(place)
            elif target not in done:
                way[target] = [*leaving[target]]
    return frozenset(back)


def ranks_of(boxes: Sequence[Box], lines: Sequence[Line], back: frozenset[int]) -> dict[str, int]:
    """Return the rank of each box, from 0 at the top: each line goes down, and is as short as the longest way allows.

    >>> three = [Box("A", 1, 1), Box("B", 1, 1), Box("C", 1, 1)]
    >>> ranks_of(three, [Line("A", "B"), Line("B", "C"), Line("A", "C")], frozenset())
    {'A': 0, 'B': 1, 'C': 2}
    """
    below: dict[str, list[str]] = {box.name: [] for box in boxes}
    above: dict[str, list[str]] = {box.name: [] for box in boxes}
    for place, line in enumerate(lines):
        upper, lower = (line.target, line.source) if place in back else (line.source, line.target)
        if upper != lower:
            below[upper].append(lower)
            above[lower].append(upper)
    ranks = dict.fromkeys(below, 0)
    ordered = _downwards(below, above)
    for name in ordered:
        ranks[name] = max((ranks[upper] + 1 for upper in above[name]), default=0)
    for name in reversed(ordered):
        # What nothing leads to stands right above what it leads to, not at the top of the page.
        if not above[name] and below[name]:
            ranks[name] = min(ranks[lower] for lower in below[name]) - 1
    first = min(ranks.values(), default=0)
    return {name: rank - first for name, rank in ranks.items()}


def _downwards(below: dict[str, list[str]], above: dict[str, list[str]]) -> list[str]:
    """Return the boxes, each behind all that lie above it."""
    waiting = {name: len(uppers) for name, uppers in above.items()}
    ready = [name for name, count in waiting.items() if count == 0]
    ordered: list[str] = []
    while ready:
        name = ready.pop(0)
        ordered.append(name)
        for lower in below[name]:
            waiting[lower] -= 1
            if waiting[lower] == 0:
                ready.append(lower)
    return ordered
