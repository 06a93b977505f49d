"""Lists of instances, and by what they are found."""

from __future__ import annotations

from typing import Protocol

from mainspring.port.attributes import AttributeRow
from mainspring.port.records import InstanceFilter, InstanceRow, Ref, Tally
from mainspring.port.searches import AttributeName, Found


class Instances(Protocol):
    """Lists of instances, and by what they are found."""

    async def instances(self, where: InstanceFilter, limit: int, after: int = 0) -> list[InstanceRow]:
        """Return instances in the order of their beginning, behind the key `after`; no tombstones."""
        ...

    async def search(self, where: InstanceFilter, limit: int, after: int | None = None, newest: bool = False) -> Found:
        """Return instances by their beginning, the oldest or the newest first, behind the key `after`; no tombstones.

        It looks at `SEARCHED` of them at most, or finds few by an index: there may be more behind a page that is short.
        """
        ...

    async def attributes(self, ref: Ref) -> list[AttributeRow]:
        """Return the attributes of an instance, by name."""
        ...

    async def attribute_names(self) -> list[AttributeName]:
        """Return by which names and kinds instances can be found, sorted; `ATTRIBUTE_NAMES` at most."""
        ...

    async def tally(self) -> Tally:
        """Return how many instances there are by workflow and status; no tombstones, and none of `ENGINES_OWN`.

        It looks at all of them.
        """
        ...
