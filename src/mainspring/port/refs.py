"""What instances and their outputs are called."""

from __future__ import annotations

from msgspec import Struct


class Ref(Struct, frozen=True, gc=False):
    """An instance's identity.

    >>> str(Ref("OrderFulfilment", "o-1"))
    'OrderFulfilment/o-1'
    """

    workflow: str
    id: str

    def __str__(self) -> str:
        return f"{self.workflow}/{self.id}"


class OutputKey(Struct, frozen=True, gc=False):
    """Where an output stands: the store's key of its instance, and the version. Never used twice."""

    instance: int
    version: int
