"""Which dead letters are alike: those of one cause, which one fix mends together."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Final

from mainspring.port.records import EDGE, DeadLetter

ERROR_CHARACTERS: Final = 200
READ_CHARACTERS: Final = 2_000
"""How much of an error is looked at: more than is kept, for ids in it may be long."""
KIND_BYTES: Final = 12

_QUOTED: Final = re.compile(r"'[^']*'|\"[^\"]*\"")
# Each is looked at for a digit by itself: an expression that looked for one would begin again at each letter.
_WORD: Final = re.compile(r"[\w-]+")


def alike(error: str, instance: str = "") -> str:
    """Return an error without what differs between errors of one kind: ids, numbers, and texts in quotes.

    >>> alike("order o-17 of 'ann' was refused after 3 s")
    "order # of '…' was refused after # s"
    >>> alike("Orders/ann/b has completed already", "ann/b")
    'Orders/# has completed already'
    """
    error = error[:READ_CHARACTERS]
    if instance:
        # Whatever it looks like; but only as a word of its own, for it may be as short as an "a".
        error = re.sub(rf"(?<![\w-]){re.escape(instance)}(?![\w-])", "#", error)
    return _WORD.sub(_without_number, _QUOTED.sub("'…'", error))[:ERROR_CHARACTERS]


def _without_number(word: re.Match[str]) -> str:
    """Return a word, unless it is a number or has one in it, such as most ids."""
    return "#" if any(map(str.isdecimal, word[0])) else word[0]


def kind_of(letter: DeadLetter) -> str:
    """Return a name for all dead letters like this one: of one workflow and type, with one reason and like errors."""
    instance = letter.instance if letter.workflow != EDGE else ""
    parts = (letter.workflow, letter.type, alike(letter.reason, instance), alike(letter.error or "", instance))
    return blake2b("\0".join(parts).encode(errors="surrogatepass"), digest_size=KIND_BYTES).hexdigest()
