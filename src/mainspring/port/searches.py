"""A search among instances that looks at so many of them at once and no more, however many there are."""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from mainspring.port.attributes import AttributeKind
from mainspring.port.records import InstanceRow

SEARCHED: Final = 10_000
"""How many instances one look reads at most: a search for what is rare takes several looks, and none of them long."""
ATTRIBUTE_NAMES: Final = 1_000

AttributeName: TypeAlias = tuple[str, AttributeKind]


class Found(NamedTuple):
    """What one look has found, and behind which key the next one begins; None: there is nothing behind it."""

    rows: list[InstanceRow]
    next: int | None


def prefix_end(prefix: str) -> str | None:
    """Return the first text, as databases sort them, behind all that begin with a prefix; None: there is none.

    >>> prefix_end("o-1"), prefix_end("a\U0010ffff"), prefix_end("\U0010ffff"), prefix_end("\ud7ff") == "\ue000"
    ('o-2', 'b', None, True)
    """
    for place in range(len(prefix) - 1, -1, -1):
        code = ord(prefix[place])
        if code < _LAST:
            return prefix[:place] + chr(_BEHIND_SURROGATES if code == _BEFORE_SURROGATES else code + 1)
    return None


_LAST: Final = 0x10FFFF
# Between these two no text has a character that can be stored.
_BEFORE_SURROGATES: Final = 0xD7FF
_BEHIND_SURROGATES: Final = 0xE000
