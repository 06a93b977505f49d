"""Which instances are looked for: the words that lists and operations on many share."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, TypedDict, Unpack, get_args

from mainspring.app.given import LARGEST, optional_text
from mainspring.engine.recording.stored_values import time_us_of
from mainspring.engine.registry import is_internal
from mainspring.errors import SettingError
from mainspring.port.attributes import Condition, Value, conditions_of
from mainspring.port.pages import Page
from mainspring.port.records import InstanceFilter, InstanceRow, Status
from mainspring.port.searches import Found
from mainspring.port.store import Store

_CONDITION: Final = re.compile(r"(.+?)(>=|<=|=|>|<)(.*)", re.DOTALL)


class Search(TypedDict, total=False):
    """What to look for; every word narrows.

    `workflow_version` is the version of the workflow under which an instance runs. `attributes` are equal values,
    `{"customer": "c-7"}`, or comparisons, `[("amount", ">=", 1000)]`. `error` is a part of the error's text. Times
    begin with `from` and end before `to`.
    """

    workflow: str | None
    workflow_version: int | None
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
    known = Search.__annotations__
    if strange := sorted(word for word in search if word not in known):
        # A word that is misspelt would narrow nothing, and an operation on many would hit all of them.
        raise SettingError("The search", strange, f"Use some of {', '.join(known)}.")
    status = search.get("status")
    if status is not None and status not in get_args(Status):
        raise SettingError("status", status, f"Use one of {', '.join(get_args(Status))}.")
    return InstanceFilter(
        optional_text("workflow", search.get("workflow")),
        status,
        optional_text("state", search.get("state")),
        optional_text("id_prefix", search.get("id_prefix")),
        optional_text("error", search.get("error")),
        microseconds("created_from", search.get("created_from")),
        microseconds("created_to", search.get("created_to")),
        microseconds("updated_from", search.get("updated_from")),
        microseconds("updated_to", search.get("updated_to")),
        conditions_of(search.get("attributes")),
        workflow_version(search.get("workflow_version")),
    )


def workflow_version(given: object) -> int | None:
    """Return the version of a workflow that is looked for, checked.

    >>> workflow_version(2), workflow_version(None)
    (2, None)
    """
    if given is not None and (type(given) is not int or not 1 <= given <= LARGEST):
        raise SettingError("workflow_version", given, "Use a whole number from 1.")
    return given


async def found(store: Store, where: InstanceFilter, limit: int, after: int = 0) -> list[InstanceRow]:
    """Return the instances that a search finds. The engine's own are found only by the name of their workflow."""
    named = where.workflow is not None
    page = Page[InstanceRow, InstanceRow](limit, lambda row: row if named or not is_internal(row.workflow) else None)
    while page.wants:
        page.take(await store.instances(where, page.wants, page.last.key if page.last else after))
    return page.records


async def searched(store: Store, where: InstanceFilter, limit: int, after: int | None, *, newest: bool) -> Found:
    """Return what one look finds of the same: a bounded part of the instances, and where the next look begins."""
    named = where.workflow is not None
    rows, behind = await store.search(where, limit, after, newest)
    return Found([row for row in rows if named or not is_internal(row.workflow)], behind)


def read_condition(text: str) -> Condition:
    """Return a comparison of an attribute as people write it.

    >>> read_condition("amount>=1000"), read_condition("zip='0815'"), read_condition("vip=true")
    (('amount', '>=', 1000), ('zip', '=', '0815'), ('vip', '=', True))
    """
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise SettingError("A comparison of an attribute", text, "Write it as customer=c-7 or amount>=1000.")
    name, comparison, value = found.groups()
    return name, comparison, _value(value)


def read_moment(text: str) -> datetime:
    """Return a time as people write it, in UTC unless it says otherwise; a ValueError if it is none.

    >>> read_moment("2026-01-31T09:00Z")
    datetime.datetime(2026, 1, 31, 9, 0, tzinfo=datetime.timezone.utc)
    """
    if "-" not in text[1:] or not text[:4].isdigit():
        raise ValueError(text)
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _value(text: str) -> Value:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float, read_moment):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def microseconds(name: str, time: object) -> int | None:
    """Return a time as stores have it; the `name` is that of the setting, for the error where it is none.

    >>> microseconds("since", datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))
    1000000
    """
    if time is None:
        return None
    if not isinstance(time, datetime) or time.tzinfo is None:
        raise SettingError(name, time, "Use a datetime with a time zone, as in datetime(2026, 1, 1, tzinfo=UTC).")
    try:
        return time_us_of(time.astimezone(UTC))
    except OverflowError:
        raise SettingError(name, time.isoformat(), "Use a time of the years 1 to 9999, in UTC as well.") from None
