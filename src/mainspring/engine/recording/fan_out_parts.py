"""What a fan-out is made of: its parts as they are sent, and each part's end as it returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from mainspring.codec import Codec, Encoded
from mainspring.core.failures import ChildFailed
from mainspring.core.messages import message

Stored: TypeAlias = tuple[str, int, str]
"""A message of any type: the name and version of its type, and its JSON as text."""


@message(name="mainspring.Parts")
@dataclass(frozen=True)
class Parts:
    """Messages of a fan-out: all of them, or some of `total`. `into` names the type of the input that joins them.

    >>> Parts((("Square", 1, '{"n":2}'),), 1, "PartsDone", "squares").total
    1
    """

    messages: tuple[Stored, ...]
    total: int
    into: str
    key: str


@message(name="mainspring.PartDone")
@dataclass(frozen=True)
class PartDone:
    """How one part of a fan-out ended: with results, none, one or several; or with a failure.

    >>> PartDone().failure is None
    True
    """

    results: tuple[Stored, ...] = ()
    failure: ChildFailed | None = None


def stored(encoded: Encoded) -> Stored:
    """Return an encoded message as part of another one.

    >>> stored(Encoded("Square", 1, b'{"n":2}'))
    ('Square', 1, '{"n":2}')
    """
    return encoded.name, encoded.version, encoded.body.decode()


def restored(codec: Codec, messages: Sequence[Stored]) -> tuple[Any, ...]:
    """Return stored messages as what they were.

    >>> from mainspring.testing.samples import Count
    >>> codec = Codec()
    >>> codec.register(Count)
    >>> restored(codec, [stored(codec.encode(Count("c-1")))])
    (Count(counter='c-1'),)
    """
    return tuple(codec.decode(name, version, body.encode()) for name, version, body in messages)
