"""What a seal is, and several of them as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from msgspec import Struct

# What is read in place of a body whose key was destroyed.
ERASED: Final = b'{"$erased":true}'


class About(Struct, frozen=True, gc=False):
    """Whose body it is.

    >>> About("OrderFulfilment", "o-1", "PlaceOrder").instance
    'o-1'
    """

    workflow: str
    instance: str
    type: str | None = None


class Seal(Protocol):
    """Turns a body into what is stored, and back.

    `close` must give the same bytes for the same body: by them a store knows a repeated message from another one.
    `open` gets what any seal made, or none, and returns what is not its own as it is. It returns ERASED for what nobody
    can read any more.
    """

    def close(self, body: bytes, about: About) -> bytes:
        """Return what is to be stored."""
        ...

    def open(self, stored: bytes, about: About) -> bytes:
        """Return the body."""
        ...


class Seals:
    """Several seals, put on in their order and taken off in the reverse one.

    >>> from mainspring.sealing import Compressed
    >>> seals = Seals([Compressed(least_bytes=10)])
    >>> about = About("OrderFulfilment", "o-1", "PlaceOrder")
    >>> seals.open(seals.close(b'{"order_id":"o-1"}', about), about)
    b'{"order_id":"o-1"}'
    """

    def __init__(self, seals: Sequence[Seal]) -> None:
        self._seals = tuple(seals)

    def close(self, body: bytes, about: About) -> bytes:
        for seal in self._seals:
            body = seal.close(body, about)
        return body

    def open(self, stored: bytes, about: About) -> bytes:
        for seal in reversed(self._seals):
            stored = seal.open(stored, about)
        return stored
