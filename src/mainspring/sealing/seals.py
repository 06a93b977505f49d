"""What a seal is, and several of them as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol, runtime_checkable

from msgspec import Struct

# What is read in place of a body whose key was destroyed.
ERASED: Final = b'{"$erased":true}'


class About(Struct, frozen=True, gc=False):
    """Whose body it is."""

    workflow: str
    instance: str
    type: str | None = None


class Seal(Protocol):
    """Turns a body into what is stored, and back.

    `close` must give the same bytes for the same body: by them a store recognises a duplicate. `open` gets what any
    seal made, or none, and returns what is not its own as it is. It returns ERASED for what can no longer be read.

    One that hides nothing says so by an attribute, `secret = False`: then errors are stored and logged as they are.
    """

    def close(self, body: bytes, about: About) -> bytes:
        """Return what is to be stored."""
        ...

    def open(self, stored: bytes, about: About) -> bytes:
        """Return the body."""
        ...


@runtime_checkable
class RenewingSeal(Protocol):
    """A seal that knows which keys took the place of destroyed ones, and counts them as it meets them.

    A store then writes nothing from a worker's memory of what was erased. Where a seal does not say it, an instance has
    to be suspended before its key is destroyed.
    """

    renewals: int
    """How many such keys it has closed bodies with so far."""

    def renewal_of(self, stored: bytes) -> int:
        """Return the number under which the key of what it has just closed was met, or 0 if that is none of these."""
        ...


def is_secret(seal: Seal) -> bool:
    """Return True if what a seal makes cannot be read without its keys; a seal that does not say counts as secret.

    >>> from mainspring.sealing import Compressed
    >>> is_secret(Compressed())
    False
    """
    return getattr(seal, "secret", True)


class Seals:
    """Several seals, put on in their order and taken off in the reverse one.

    >>> from mainspring.sealing import Compressed
    >>> seals = Seals([Compressed(least_bytes=10)])
    >>> about = About("OrderFulfilment", "o-1", "PlaceOrder")
    >>> seals.open(seals.close(b'{"order_id":"o-1"}', about), about)
    b'{"order_id":"o-1"}'
    """

    def __init__(self, seals: Sequence[Seal]) -> None:
        self.seals = tuple(seals)
        """The seals, in the order in which they are put on."""
        self.secret = any(map(is_secret, self.seals))
        """Whether one of them keeps bodies secret."""

    def close(self, body: bytes, about: About) -> bytes:
        for seal in self.seals:
            body = seal.close(body, about)
        return body

    def open(self, stored: bytes, about: About) -> bytes:
        for seal in reversed(self.seals):
            stored = seal.open(stored, about)
        return stored
