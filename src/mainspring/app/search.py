"""Which instances are looked for: the words that lists and operations on many share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, TypedDict, Unpack

from mainspring.engine.registry import is_internal
from mainspring.errors import OperationError
from mainspring.port.attributes import Condition, Value, conditions_of
from mainspring.port.records import InstanceFilter, InstanceRow, Status
from mainspring.port.store import Store

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class Search(TypedDict, total=False):
    """What to look for; every word narrows.

    `attributes` are equal values, `{"customer": "c-7"}`, or comparisons, `[("amount", ">=", 1000)]`. `error` is a part
    of the error's text. Times begin with `from` and end before `to`.
    """

    workflow: str | None
    status: Status | None
    state: str | None
    id_prefix: str | None
    attributes: Mapping[str, Value] | Sequence[Condition] | None
    error: str | None
    created_from: datetime | None
    created_to: datetime | None
    updated_from: datetime | None
    updated_to: datetime | None


def filter_of(**search: Unpack[Search]) -> InstanceFilter:
    """Return a search as a store takes it.

    >>> filter_of(status="suspended", attributes={"customer": "c-7"}).attributes[0].text
    'c-7'
    """
    return InstanceFilter(
        search.get("workflow"),
        search.get("status"),
        search.get("state"),
        search.get("id_prefix"),
        search.get("error"),
        _microseconds(search.get("created_from")),
        _microseconds(search.get("created_to")),
        _microseconds(search.get("updated_from")),
        _microseconds(search.get("updated_to")),
        conditions_of(search.get("attributes")),
    )


async def found(store: Store, where: InstanceFilter, limit: int, after: int = 0) -> list[InstanceRow]:
    """Return the instances that a search finds. The engine's own are found only by the name of their workflow."""
    rows: list[InstanceRow] = []
    while len(rows) < limit:
        page = await store.instances(where, limit, after)
        rows += [row for row in page if where.workflow is not None or not is_internal(row.workflow)]
        if len(page) < limit:
            break
        after = page[-1].key
    return rows[:limit]


def _microseconds(time: datetime | None) -> int | None:
    if time is None:
        return None
    if time.tzinfo is None:
        raise OperationError(f"The time {time}", "has no zone", "Use datetime(…, tzinfo=UTC).")
    return (time - _EPOCH) // _MICROSECOND
