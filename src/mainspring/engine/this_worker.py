"""This process as a worker: written by the engine alone, and read by the stations that work under its key."""

from __future__ import annotations


class ThisWorker:
    """`key` is what the store knows it by: 0 before it has registered, and another one after it was relieved.

    `pools` are those whose handlers it runs, None for all; `closing` says that it takes nothing more.

    >>> ThisWorker().serves("gpu")
    True
    """

    __slots__ = ("closing", "key", "name", "pools")

    def __init__(self) -> None:
        self.key = 0
        self.name = ""
        self.pools: frozenset[str] | None = None
        self.closing = False

    def serves(self, pool: str) -> bool:
        """Return True if it runs the handlers of a pool."""
        return self.pools is None or pool in self.pools
