"""Guards: the conditions of several ways to the same outcome, as one condition that is short and still true."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from mainspring.analysis.reading.ways import Condition

MOST_TERMS: Final = 200
"""More than that are not made shorter: the guard names the first few."""
SHOWN_TERMS: Final = 4

Literal: TypeAlias = tuple[str, bool]
Term: TypeAlias = frozenset[Literal]


def simplified(terms: Iterable[Term]) -> list[Term]:
    """Return fewer and shorter terms that hold together exactly when the given ones do.

    >>> simplified([frozenset({("a", True), ("b", True)}), frozenset({("a", True), ("b", False)})])
    [frozenset({('a', True)})]
    """
    left = list(dict.fromkeys(terms))
    changed = len(left) <= MOST_TERMS
    while changed:
        changed = False
        for place, term in enumerate(left):
            shorter = _shortened(term, [*left[:place], *left[place + 1 :]])
            if shorter != term:
                left[place] = shorter
                left = _without_special_cases(left)
                changed = True
                break
        else:
            fewer = _without_special_cases(left)
            changed, left = len(fewer) < len(left), fewer
    return left


def exclude_each_other(groups: Sequence[list[Term]]) -> bool:
    """Tell whether no two groups can hold at once, as far as their conditions show."""
    return all(
        any((text, not holds) in other for text, holds in term)
        for place, group in enumerate(groups)
        for others in groups[place + 1 :]
        for term in group
        for other in others
    )


def guard_text(terms: Sequence[Term], words: dict[Literal, str], order: Sequence[str]) -> str:
    """Return a guard as a text, its conditions in the order in which they are asked.

    >>> guard_text([frozenset({("a", True), ("b", False)})], {("a", True): "a", ("b", False): "not b"}, ["a", "b"])
    'a and not b'
    """
    rank = {text: place for place, text in enumerate(order)}
    parts = [
        " and ".join(words[literal] for literal in sorted(term, key=lambda each: rank.get(each[0], 0)))
        for term in sorted(terms, key=lambda term: sorted(rank.get(text, 0) for text, _ in term))
    ]
    if not parts or "" in parts:
        return ""
    more = f" or {len(parts) - SHOWN_TERMS} more" if len(parts) > SHOWN_TERMS else ""
    shown = parts[:SHOWN_TERMS]
    return " or ".join(f"({part})" if len(parts) > 1 and " and " in part else part for part in shown) + more


def term_of(conditions: Iterable[Condition], *, all_of_them: bool) -> Term:
    """Return the conditions of one way as a term."""
    return frozenset((each.text, each.holds) for each in conditions if each.shown or all_of_them)


def _shortened(term: Term, others: Sequence[Term]) -> Term:
    """Leave out of a term what another one makes superfluous: `a or (not a and b)` is `a or b`."""
    for literal in sorted(term):
        text, holds = literal
        rest = term - {literal}
        if any((text, not holds) in other and other - {(text, not holds)} <= rest for other in others):
            return rest
    return term


def _without_special_cases(terms: Sequence[Term]) -> list[Term]:
    found = list(dict.fromkeys(terms))
    return [term for term in found if not any(other < term for other in found)]
