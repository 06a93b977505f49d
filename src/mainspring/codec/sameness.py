"""Checks that what was read back is what was written, types and all, where the tests alone do not show it."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from functools import cache
from typing import Any, Final

from msgspec import Struct

from mainspring.codec.hints import class_of, is_record
from mainspring.codec.limits import SHOWN_CHARACTERS
from mainspring.errors import shown

_PLAIN: Final[frozenset[type[Any]]] = frozenset({type(None), bool, int, float, str, bytes})


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
    if kind in _PLAIN:
        return None if before == after else _told(before, after, place)
    if issubclass(kind, (list, tuple)):
        return _among([*enumerate(before)], [*enumerate(after)], place)
    if issubclass(kind, dict):
        # As lists of pairs: the order is a part of it.
        return _among(list(before.items()), list(after.items()), place)
    if _has_fields(kind):
        return _among(_fields(before), _fields(after), f"{place}.")
    return None if _is_same(before, after) else _told(before, after, place)


@cache
def _has_fields(kind: type[Any]) -> bool:
    return is_record(kind)


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
        if name is not other_name and (found := difference(name, other_name, f"{place}'s key")) is not None:
            return found
        if one is not other and (found := difference(one, other, _inside(place, name))) is not None:
            return found
    return None


def _fields(value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, Struct):
        return [(name, getattr(value, name)) for name in value.__struct_fields__]
    if dataclasses.is_dataclass(value):
        return [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
    return list(value)


def _inside(place: str, name: Any) -> str:
    return f"{place}{name}" if place.endswith(".") else f"{place}[{shown(name, SHOWN_CHARACTERS)}]"


def _told(before: Any, after: Any, place: str) -> str:
    where = place.removeprefix(".") or "the value"
    one, other = (f"{type(value).__name__} {shown(value, SHOWN_CHARACTERS)}" for value in (before, after))
    return f"{where} is {one} and would come back as {other}"
