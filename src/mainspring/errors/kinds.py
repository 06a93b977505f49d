"""The kind of an error: what is known of it without any value: its class, the rule that it broke, and names.

An error's text may quote a message, a state, or whatever an author put into it. Its kind quotes nothing, so that it can
be stored, logged and shown where the text may not. It is read out of the text itself, for that is what is kept of an
error: a word counts as its class only where a class of errors has that name, and what follows only where this library
wrote it.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

from mainspring.errors.base import told

_NAME: Final = r"[^\W\d][\w.-]*"
_NAMES: Final = rf"{_NAME}(?:, {_NAME})*"
# What an error's class can stand behind. Ids and names are readable by design; nothing else is in these.
_PLACES: Final = re.compile(
    rf"{_NAME} failed for good: "
    r"|its child \S+ has (?:failed|cancelled|terminated|refused)(?=: )"
    # The first of each two is how an earlier release said it: what stopped a read model is stored.
    rf"|{_NAME}/[^\n]{{1,2000}}? (?:version|position) \d+ \(\w+(?: {_NAME})?\) at (?:position \d+|\d+ of the feed): "
)
UNTOLD: Final = " (what it says "
"""So begins what stands behind a kind whose text cannot be read any more."""
_CLASS: Final = re.compile(rf"(?:^|(?<=: ))[^\W\d]\w*(?=:|$|{re.escape(UNTOLD)})")
# What follows a class and quotes nothing, in this library's own words: others may have classes of the same names.
_RULES: Final = re.compile(
    rf"(?:UnknownTransitionError: {_NAME} has no transition for {_NAME} in state {_NAME}"
    rf"|UndeclaredInputError: {_NAME} does not take {_NAME}: its inputs are {_NAMES}"
    rf"|CannotBeginError: {_NAME} cannot begin with {_NAME}: it begins with {_NAMES}"
    rf"|TooManyOutputsError: {_NAME} decided [\d,]+ things in one step; the limit is [\d,]+"
    rf"|LeftError: {_NAME} left (?:decide|evolve|attributes) by {_NAME})"
    rf"\.(?=\n  message: |$|{re.escape(UNTOLD)})"
)
CANDIDATES: Final = 8
"""How many words of a text are checked for a class name: an author's text may have thousands of them."""
_classes: Final[set[str]] = set()


def kind_of(error: BaseException) -> str:
    """Return the kind of an error.

    >>> kind_of(ValueError("4111 was refused"))
    'ValueError'
    """
    return kind_in(told(error)) or type(error).__name__


def kind_in(text: str) -> str:
    """Return the kind of an error from what it says; nothing, where no more is known of it.

    >>> kind_in("Charge failed for good: TimeoutError: 4111")
    'Charge failed for good: TimeoutError'
    >>> kind_in("4111: out of stock")
    ''
    """
    place = _PLACES.match(text)
    behind = "" if place is None else place[0]
    candidates = list(islice(_CLASS.finditer(text, len(behind)), CANDIDATES))
    if candidates and candidates[0][0] not in _classes:
        _learn()  # once, whatever the text says: there are thousands of classes
    for found in candidates:
        if found[0] in _classes:
            rule = _RULES.match(text, found.start())
            return f"{behind.removesuffix(': ')}{behind and ': '}{found[0] if rule is None else rule[0]}"
    # Without a class behind it, this was written by something that is no error.
    return behind if behind.startswith("its child ") else ""


def _learn() -> None:
    """Learn the names of all classes of errors that there are by now: what has such a name is no value."""
    waiting: list[type[BaseException]] = [BaseException]
    while waiting:
        several = waiting.pop().__subclasses__()
        _classes.update(each.__name__ for each in several)
        waiting += several
