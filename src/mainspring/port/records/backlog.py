"""How much waits, and for how long."""

from __future__ import annotations

from msgspec import Struct


class Waiting(Struct, frozen=True, gc=False):
    """How many inputs of a type and version wait for instances of a workflow, and since when the oldest does.

    >>> Waiting("Orders", "Charged", 2, 3, 0).count
    3
    """

    workflow: str
    type: str
    type_version: int
    count: int
    oldest_us: int


class Stats(Struct, frozen=True, gc=False):
    """Depths and ages, for people and for scaling.

    >>> Stats({}, 0, 0, 0, 0, None, 0).inbox
    0
    """

    instances: dict[str, int]
    inbox: int
    outbox: int
    timers: int
    dead_letters: int
    oldest_due_us: int | None
    workers: int
