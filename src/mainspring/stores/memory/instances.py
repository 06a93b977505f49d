"""Lists of instances, looked for one by one."""

from __future__ import annotations

from collections import Counter
from itertools import islice

from mainspring.port.attributes import AttributeRow
from mainspring.port.records import ENGINES_OWN, InstanceFilter, InstanceRow, Ref, Tally
from mainspring.port.searches import ATTRIBUTE_NAMES, SEARCHED, AttributeName, Found
from mainspring.stores.memory.tables import Verbs


class InstanceVerbs(Verbs):
    """The verbs of instances."""

    async def instances(self, where: InstanceFilter, limit: int, after: int = 0) -> list[InstanceRow]:
        begun = (self._tables.at(ref) for ref in self._tables.begun[after:])
        return list(islice((i.row for i in begun if i.row and matches(where, i.row, i.attributes)), limit))

    async def search(self, where: InstanceFilter, limit: int, after: int | None = None, newest: bool = False) -> Found:
        last = len(self._tables.begun)
        oldest_first = range(1 if after is None else after + 1, last + 1)
        keys = range(last if after is None else min(after - 1, last), 0, -1) if newest else oldest_first
        rows: list[InstanceRow] = []
        for key in keys[:SEARCHED]:
            instance = self._tables.keyed(key)
            if instance.row is not None and matches(where, instance.row, instance.attributes):
                rows.append(instance.row)
                if len(rows) == limit:
                    return Found(rows, key)
        return Found(rows, keys[SEARCHED - 1] if len(keys) > SEARCHED else None)

    async def attributes(self, ref: Ref) -> list[AttributeRow]:
        return list(self._tables.at(ref).attributes)

    async def attribute_names(self) -> list[AttributeName]:
        instances = self._tables.instances.values()
        names: set[AttributeName] = {(row.name, row.kind) for instance in instances for row in instance.attributes}
        return sorted(names)[:ATTRIBUTE_NAMES]

    async def tally(self) -> Tally:
        rows = (row for ref in self._tables.begun if (row := self._tables.at(ref).row))
        own = (row for row in rows if row.purged_us is None and not row.workflow.startswith(ENGINES_OWN))
        return dict(Counter((row.workflow, row.status) for row in own))


def matches(where: InstanceFilter, row: InstanceRow, attributes: tuple[AttributeRow, ...]) -> bool:
    """Return True if an instance is to be listed; a tombstone never is."""
    return (
        row.purged_us is None
        and where.workflow in (None, row.workflow)
        and where.status in (None, row.status)
        and where.state in (None, row.state)
        and where.workflow_version in (None, row.definition_version)
        and row.id.startswith(where.id_prefix or "")
        and (where.error is None or where.error in (row.error or ""))
        and _within(row.created_us, where.created_from_us, where.created_to_us)
        and _within(row.updated_us, where.updated_from_us, where.updated_to_us)
        and all(any(wanted.finds(attribute) for attribute in attributes) for wanted in where.attributes)
    )


def _within(time_us: int, from_us: int | None, to_us: int | None) -> bool:
    return (from_us is None or time_us >= from_us) and (to_us is None or time_us < to_us)
