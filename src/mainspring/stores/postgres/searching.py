"""Searching among instances: a bounded look at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from msgspec.structs import astuple

from mainspring.errors import DamagedRecordError
from mainspring.logs import logger
from mainspring.port.attributes import AttributeFilter
from mainspring.port.records import InstanceFilter, InstanceRow, OutputClaim
from mainspring.port.searching import ATTRIBUTE_NAMES, SEARCHED, AttributeName, Found
from mainspring.stores.commit.rows import read_output
from mainspring.stores.postgres.reads import LAST_KEY, Ask
from mainspring.stores.postgres.session import Row
from mainspring.stores.postgres.sql import NEWEST, packed

_log = logger(__name__)


async def search(ask: Ask, where: InstanceFilter, limit: int, after: int | None, newest: bool) -> Found:
    """Return what one look finds."""
    last = next((key for (key,) in await ask("last_key")), 0)
    # Rows with a negative key are no instances.
    begin = (last + 1 if after is None else min(after, last + 1)) if newest else max(after or 0, 0)
    text = next((wanted for wanted in where.attributes if wanted.text is not None), None)
    if text is None:
        until = _until(begin, last, newest)
        values = (begin, *where.plain, limit, _bound(until, newest), _conditions(where.attributes))
        found = await ask(_named("search", newest), *values)
    else:
        spot = await ask(_named("nth_by_text", newest), begin, SEARCHED - 1, text.name, text.text)
        until = spot[0][0] if spot else None
        others = _conditions(wanted for wanted in where.attributes if wanted is not text)
        values = (begin, *where.plain, limit, _bound(until, newest), others, text.name, text.text)
        found = await ask(_named("search_by_text", newest), *values)
    return Found([InstanceRow(*row) for row in found], found[-1][0] if len(found) == limit else until)


async def attribute_names(ask: Ask) -> list[AttributeName]:
    """Return by what instances can be found."""
    return cast("list[AttributeName]", [(name, kind) for name, kind in await ask("attribute_names", ATTRIBUTE_NAMES)])


async def timers(ask: Ask, limit: int) -> list[OutputClaim]:
    """Return timers that nobody holds; a damaged one is told and left out."""
    spots = await ask("free_timers", limit)
    rows = await ask("outputs", [spot[0] for spot in spots], [spot[1] for spot in spots]) if spots else []
    return [claim for row in rows if (claim := _readable(row)) is not None]


def _named(query: str, newest: bool) -> str:
    return NEWEST[query] if newest else query


def _until(begin: int, last: int, newest: bool) -> int | None:
    """Return the last key of a look at all instances, if there are more behind it."""
    if newest:
        return begin - SEARCHED if begin - SEARCHED > 1 else None
    return begin + SEARCHED if begin + SEARCHED < last else None


def _bound(until: int | None, newest: bool) -> int:
    # No instance has the key 0.
    return until if until is not None else 1 if newest else LAST_KEY


def _conditions(attributes: Iterable[AttributeFilter]) -> str:
    return packed([astuple(wanted) for wanted in attributes])


def _readable(row: Row) -> OutputClaim | None:
    try:
        return read_output(row)
    except DamagedRecordError as error:
        _log.error("left out of a list: %s", error)
        return None
