"""Tells whether what was read back is what was written, types and all, where the tests alone do not show it."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import Any

from msgspec import Struct, structs

from mainspring.codec.hints import class_of, is_model
from mainspring.errors import shown


def difference(before: Any, after: Any, place: str = "") -> str | None:
    """Return the first difference between two values as a sentence, or None if there is none.

    >>> difference([1, True], [1, True]) is None
    True
    >>> difference([1, True], [1, 1])
    '[1] is bool True and would come back as int 1'
    """
    kind = class_of(before)
    if kind is not type(after):
        return _told(before, after, place)
    if issubclass(kind, (list, tuple)):
        return _among([*enumerate(before)], [*enumerate(after)], place)
    if issubclass(kind, dict):
        # As lists of pairs: the order is a part of it.
        return _among(list(before.items()), list(after.items()), place)
    if dataclasses.is_dataclass(kind) or issubclass(kind, Struct) or is_model(kind):
        return _among(_fields(before), _fields(after), place)
    return None if _is_same(before, after) else _told(before, after, place)


def _is_same(before: Any, after: Any) -> bool:
    if isinstance(before, (set, frozenset)):
        return _typed(before) == _typed(after)
    if isinstance(before, datetime) and before.tzinfo is not None and after.tzinfo is not None:
        # In the hour that a clock change repeats, == between zones says no to the same moment.
        return before.utcoffset() == after.utcoffset() and before.replace(tzinfo=None) == after.replace(tzinfo=None)
    return before == after


def _typed(values: Any) -> set[tuple[type[Any], Any]]:
    return {(class_of(value), value) for value in values}


def _among(before: list[tuple[Any, Any]], after: list[tuple[Any, Any]], place: str) -> str | None:
    if len(before) != len(after):
        return f"{place.removeprefix('.') or 'it'} has {len(before)} parts and would come back with {len(after)}"
    for (name, one), (other_name, other) in zip(before, after, strict=True):
        found = difference(name, other_name, f"{place}'s key") or difference(one, other, f"{place}{_step(name)}")
        if found is not None:
            return found
    return None


def _fields(value: Any) -> list[tuple[Any, Any]]:
    if not isinstance(value, Struct) and not dataclasses.is_dataclass(value):
        return [(f".{name}", field) for name, field in value]
    fields: Any = structs.fields(value) if isinstance(value, Struct) else dataclasses.fields(value)
    return [(f".{field.name}", getattr(value, field.name)) for field in fields]


def _step(name: Any) -> str:
    return name if isinstance(name, str) and name.startswith(".") else f"[{shown(name, 80)}]"


def _told(before: Any, after: Any, place: str) -> str:
    where = place.removeprefix(".") or "the value"
    one, other = (f"{type(value).__name__} {shown(value, 80)}" for value in (before, after))
    return f"{where} is {one} and would come back as {other}"
