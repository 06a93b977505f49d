"""The ways through code: it is read once for each, and every way knows what was learnt on it.

Reading is like running, except where only a run knows an outcome: then the way forks. The first reading takes every
fork as true; each further one goes back to the last fork whose other side was not read yet.

Guards: the conditions of several ways to the same outcome, as one condition that is short and still true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias, TypeVar

from msgspec import Struct

from mainspring.analysis.reading.records import choices, class_of
from mainspring.analysis.reading.values import Symbol

MOST_WAYS: Final = 300
"""For one message in one state. Where there are more, only that is reported."""

T = TypeVar("T")


class Condition(Struct, frozen=True):
    """What was asked at a fork, in the author's words, and how it went. What a helper asked is not `shown` at first."""

    text: str
    negation: str
    holds: bool
    shown: bool = True

    def __str__(self) -> str:
        return self.text if self.holds else self.negation


class TooManyWaysError(Exception):
    """There are more ways than are read."""


class Way:
    """One way through the code."""

    def __init__(self, forks: list[bool]) -> None:
        self._forks = forks
        self.taken: list[bool] = []
        self.conditions: dict[str, Condition] = {}
        self._truths: dict[str, bool] = {}
        self._types: dict[str, tuple[Any, ...]] = {}
        self._values: dict[str, Any] = {}
        self._others: dict[str, list[Any]] = {}

    def inner(self, forks: list[bool]) -> Way:
        """Return a way that begins here and is not a part of this one."""
        way = Way(forks)
        way._truths, way._types = dict(self._truths), dict(self._types)
        way._values = dict(self._values)
        way._others = {path: list(values) for path, values in self._others.items()}
        return way

    def fork(self) -> bool:
        """Return which side to take where both are possible."""
        place = len(self.taken)
        holds = self._forks[place] if place < len(self._forks) else True
        self.taken.append(holds)
        return holds

    def note(self, text: str, negation: str, *, holds: bool, shown: bool) -> None:
        """Remember how a question was answered."""
        known = self.conditions.get(text)
        if known is None or (shown and not known.shown):
            self.conditions[text] = Condition(text, negation, holds, shown)

    # ---- what is known of a symbol

    def types(self, symbol: Symbol) -> tuple[Any, ...] | None:
        """Return the types that a symbol can still have."""
        return self._types.get(symbol.path, symbol.types)

    def value(self, symbol: Symbol) -> Any:
        """Return the only value that a symbol can have, as a tuple of one, or None."""
        left = (None,) if self.types(symbol) == (type(None),) else self.left(symbol)
        return left if left is not None and len(left) == 1 else None

    def narrow(self, symbol: Symbol, types: tuple[Any, ...]) -> None:
        """Know that a symbol has one of these types."""
        self._types[symbol.path] = types

    def has_learnt(self, symbol: Symbol) -> bool:
        """Return True if more is known of a symbol on this way than before it."""
        return any(symbol.path in known for known in (self._types, self._values, self._others))

    # ---- questions

    def truth(self, key: str) -> bool | None:
        """Return the answer to a question, if it is known."""
        return self._truths.get(key)

    def ask(self, key: str) -> bool:
        """Answer a question of which nothing else is known."""
        known = self._truths.get(key)
        if known is None:
            known = self._truths[key] = self.fork()
        return known

    def is_instance(self, symbol: Symbol, classes: tuple[type[Any], ...]) -> bool | None:
        """Return True if a symbol is of one of some classes, None if both can be."""
        types = self.types(symbol)
        if types is None:
            return self.truth(_question(symbol, classes))
        sure = [_is_a(member, classes) for member in types]
        if all(answer is True for answer in sure):
            return True
        if all(answer is False for answer in sure):
            return False
        return None

    def ask_instance(self, symbol: Symbol, classes: tuple[type[Any], ...]) -> bool:
        """Answer whether a symbol is of one of some classes, and know it from here on."""
        types = self.types(symbol)
        holds = self.ask(_question(symbol, classes))
        if types is None:
            if holds:
                self._types[symbol.path] = classes
            return holds
        answers = [(member, _is_a(member, classes)) for member in types]
        if holds:
            certain = [member for member, answer in answers if answer is True]
            self._types[symbol.path] = (*certain, *(classes if any(a is None for _, a in answers) else ()))
        else:
            self._types[symbol.path] = tuple(member for member, answer in answers if answer is not True)
        return holds

    def equals(self, symbol: Symbol, value: Any) -> bool | None:
        """Return True if a symbol has a value, None if both can be."""
        only = self.value(symbol)
        if only is not None:
            return bool(only[0] == value)
        if value in self._others.get(symbol.path, ()):
            return False
        types = self.types(symbol)
        if types is not None and all(_cannot_equal(member, value) for member in types):
            return False
        return None

    def ask_equal(self, symbol: Symbol, value: Any) -> bool:
        """Answer whether a symbol has a value, and know it from here on."""
        holds = self.fork()
        if holds:
            self._values[symbol.path] = value
        else:
            self.exclude(symbol, value)
        return holds

    def settle(self, symbol: Symbol, value: Any) -> None:
        """Know that a symbol has this value."""
        self._values[symbol.path] = value

    def exclude(self, symbol: Symbol, value: Any) -> None:
        """Know that a symbol has not this value."""
        self._others.setdefault(symbol.path, []).append(value)

    def left(self, symbol: Symbol) -> tuple[Any, ...] | None:
        """Return the values that a symbol can still have, if they can be counted."""
        if symbol.path in self._values:
            return (self._values[symbol.path],)
        types = self.types(symbol)
        if not types:
            return None
        left: list[Any] = []
        for member in types:
            some = (None,) if member is type(None) else choices(member)
            if some is None:
                return None
            left += [value for value in some if value not in self._others.get(symbol.path, ())]
        return tuple(left)


def ways(read: Callable[[Way], T], around: Way | None = None, most: int = MOST_WAYS) -> Iterator[tuple[Way, T]]:
    """Read code once for each way through it, and yield the way with what was found at its end.

    >>> [found for _, found in ways(lambda way: (way.ask("a"), way.ask("a")))]
    [(True, True), (False, False)]
    """
    forks: list[bool] = []
    for _ in range(most):
        way = Way(forks) if around is None else around.inner(forks)
        yield way, read(way)
        forks = list(way.taken)
        while forks and not forks[-1]:
            forks.pop()
        if not forks:
            return
        forks[-1] = False
    raise TooManyWaysError


def _question(symbol: Symbol, classes: tuple[type[Any], ...]) -> str:
    return f"{symbol.path} is {' | '.join(cls.__qualname__ for cls in classes)}"


def _is_a(member: Any, classes: tuple[type[Any], ...]) -> bool | None:
    """Return True if what has a type is of one of some classes, None if some of it may be."""
    cls = class_of(member)
    if cls is None or cls is object:
        return None
    try:
        if issubclass(cls, classes):
            return True
        return None if any(issubclass(other, cls) for other in classes) else False
    except TypeError:  # a protocol that is not checked at run time
        return None


def _cannot_equal(member: Any, value: Any) -> bool:
    some = choices(member)
    if some is not None:
        return value not in some
    cls = class_of(member)
    return (member is type(None) and value is not None) or (cls is not None and value is None and cls is not object)


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
    """Return True if no two groups can hold at once, as far as their conditions show."""
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
