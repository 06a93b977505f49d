"""Searching among instances: a bounded look at a time, and by an index where that finds few."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias, cast

import apsw
from msgspec.structs import astuple

from mainspring.errors import DamagedRecordError
from mainspring.logs import logger
from mainspring.port.attributes import AttributeFilter
from mainspring.port.records import InstanceFilter, InstanceRow, OutputClaim
from mainspring.port.searching import ATTRIBUTE_NAMES, SEARCHED, AttributeName, Found, prefix_end
from mainspring.stores.commit.rows import read_instance
from mainspring.stores.sqlite.outputs import checked_output
from mainspring.stores.sqlite.sql import NEWEST, QUERIES, execute, packed, rows, savepoint, scalar

FEW: Final = 1_000
"""So many an index may find for the others not to be looked at; of more, enough lie close together."""

# Behind all texts, as SQLite compares.
_BEHIND_TEXTS: Final = b""
LAST_KEY: Final = 2**63 - 1

Row: TypeAlias = tuple[Any, ...]

_log = logger(__name__)


def search(connection: apsw.Connection, where: InstanceFilter, limit: int, after: int | None, newest: bool) -> Found:
    """Return what one look finds, all as of one moment."""
    with savepoint(connection):
        begin = _begin(connection, after, newest)
        few = few_of(connection, where)
        if few is not None:
            return _found(of_few(connection, few, where, limit, begin, newest), limit, None)
        text = next((wanted for wanted in where.attributes if wanted.text is not None), None)
        if text is None:
            until = _until(connection, begin, newest)
            values = (begin, *where.plain, limit, _bound(until, newest), _conditions(where.attributes))
            return _found(_ask(connection, "search", newest, values), limit, until)
        spot = _ask(connection, "nth_by_text", newest, (begin, SEARCHED - 1, text.name, text.text))
        until = spot[0][0] if spot else None
        others = _conditions([wanted for wanted in where.attributes if wanted is not text])
        values = (begin, *where.plain, limit, _bound(until, newest), others, text.name, text.text)
        return _found(_ask(connection, "search_by_text", newest, values), limit, until)


def few_of(connection: apsw.Connection, where: InstanceFilter) -> list[int] | None:
    """Return the keys of all instances that can match, if an index says that they are few."""
    return next((keys for keys in _narrowed(connection, where) if len(keys) <= FEW), None)


def of_few(
    connection: apsw.Connection, few: list[int], where: InstanceFilter, limit: int, after: int, newest: bool = False
) -> list[Row]:
    """Return those of a few instances that match, behind a key."""
    values = (after, *where.plain, limit, packed(few), _conditions(where.attributes))
    return _ask(connection, "search_keys", newest, values)


def attribute_names(connection: apsw.Connection) -> list[AttributeName]:
    """Return by what instances can be found."""
    return cast("list[AttributeName]", rows(connection, "attribute_names", ATTRIBUTE_NAMES))


def timers(connection: apsw.Connection, limit: int) -> list[OutputClaim]:
    """Return timers that nobody holds; a damaged one is told and left out."""
    with savepoint(connection):
        found = rows(connection, "claimed_outputs", packed(rows(connection, "free_timers", limit)))
    return [claim for row in found if (claim := _readable(row)) is not None]


def _begin(connection: apsw.Connection, after: int | None, newest: bool) -> int:
    """Return the key behind which a look begins."""
    if not newest:
        return after or 0
    last: int = scalar(connection, "last_instance")
    return last + 1 if after is None else min(after, last + 1)


def _until(connection: apsw.Connection, begin: int, newest: bool) -> int | None:
    """Return the last key of a look at all instances, if there are more behind it. Keys have no gaps."""
    if newest:
        return begin - SEARCHED if begin - SEARCHED > 1 else None
    last: int = scalar(connection, "last_instance")
    return begin + SEARCHED if begin + SEARCHED < last else None


def _bound(until: int | None, newest: bool) -> int:
    return until if until is not None else 0 if newest else LAST_KEY


def _narrowed(connection: apsw.Connection, where: InstanceFilter) -> Iterator[list[int]]:
    """Yield the keys of all that one word of the search can find by an index, or one more than FEW."""
    most = FEW + 1
    asked: list[Row] = []
    if where.id_prefix:
        end = prefix_end(where.id_prefix)
        asked.append(("keys_by_prefix", where.workflow, where.id_prefix, _BEHIND_TEXTS if end is None else end, most))
    if where.status not in (None, "running", "completed"):
        asked.append(("keys_by_status", where.status, most))
    if where.error is not None:
        asked.append(("keys_by_error", most))
    asked += [
        ("keys_by_number", wanted.name, wanted.kind, wanted.low, wanted.high, most)
        for wanted in where.attributes
        if wanted.text is None
    ]
    for query, *values in asked:
        yield [key for (key,) in rows(connection, query, *values)]


def _conditions(attributes: Any) -> str:
    return packed([astuple(cast("AttributeFilter", wanted)) for wanted in attributes])


def _ask(connection: apsw.Connection, query: str, newest: bool, values: Row) -> list[Row]:
    return execute(connection, (NEWEST if newest else QUERIES)[query], values).fetchall()


def _found(found: list[Row], limit: int, until: int | None) -> Found:
    """Return the rows that can be read. Behind a full page, the next look begins at its end."""
    read = [row for each in found if (row := _instance(each)) is not None]
    return Found(read, found[-1][0] if len(found) == limit else until)


def _instance(row: Row) -> InstanceRow | None:
    try:
        return read_instance(row)
    except DamagedRecordError as error:
        _log.error("left out of a search: %s", error)
        return None


def _readable(row: Row) -> OutputClaim | None:
    try:
        return checked_output(row)
    except DamagedRecordError as error:
        _log.error("left out of a list: %s", error)
        return None
