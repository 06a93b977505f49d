"""What crosses the port when ended instances are purged."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

# Behind which ending the next page begins: its time, and the store's key of its instance.
PurgeCursor: TypeAlias = tuple[int, int]


class Purgeable(Struct, frozen=True, gc=False):
    """An ended instance that nothing keeps from being purged: no work of it waits, and no dead letter.

    `version` is what was seen: one that has moved since is left alone. `purged_us` is set where a purge was cut short:
    the instance is a tombstone already, and events are left that are no longer visible.

    >>> Purgeable(7, "Orders", "o-1", 5, 0).purged_us is None
    True
    """

    key: int
    workflow: str
    id: str
    version: int
    ended_us: int
    purged_us: int | None = None


class PurgePage(Struct, frozen=True, gc=False):
    """Instances to purge, in the order of their ends, and where to continue; None means that this was the last page.

    >>> PurgePage([], None).after is None
    True
    """

    found: list[Purgeable]
    after: PurgeCursor | None


class Purged(Struct, frozen=True, gc=False):
    """What one transaction of a purge did: how many became tombstones, how many events went, and whose are left."""

    tombstones: int
    events: int
    left: tuple[int, ...]
