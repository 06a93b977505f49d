"""pydantic models: pydantic writes and reads them, and every body is read back before it counts.

A model may do anything on its way in and out, so nothing less than reading back and comparing shows that it survives.
pydantic itself is never imported here.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from msgspec import json

from mainspring.codec.hints import class_of
from mainspring.codec.limits import INTEGER_MAX, INTEGER_MIN, NESTING_LEVELS, SHOWN_CHARACTERS
from mainspring.codec.sameness import difference
from mainspring.errors import DecodeError, EncodeError, shown

_encode = json.Encoder().encode


def dumper(cls: type[Any], name: str) -> Callable[[Any], bytes]:
    """Return a function that writes a model and refuses one that would not come back.

    >>> dumper(int, "Order").__name__
    'dump'
    """
    load = loader(cls, name)

    def dump(value: Any) -> bytes:
        try:
            plain = value.model_dump(round_trip=True)
            body = _written(value, plain)
            problem = difference(value, load(body)) or _unsound(plain)
        except DecodeError as error:
            raise EncodeError(name, f"would not come back: {error.problem}", error.fix) from error
        except (TypeError, ValueError) as error:
            raise EncodeError(name, f"pydantic cannot write it: {error}", "Change the value or the model.") from error
        if problem is not None:
            raise EncodeError(
                name,
                problem,
                "Give the field a precise type, a datetime its zone, and a union a Field(discriminator=…).",
            )
        return body

    return dump


def loader(cls: type[Any], name: str) -> Callable[[bytes], Any]:
    """Return a function that reads a model.

    >>> loader(int, "Order").__name__
    'load'
    """

    def load(body: bytes) -> Any:
        try:
            return cls.model_validate_json(body)
        except ValueError as error:
            problem = f"the body does not fit: {_short(error)}"
            raise DecodeError(name, problem, "Correct the data, or add an upcaster.") from error

    return load


def _short(error: Any) -> str:
    """Return the first of pydantic's complaints in one line."""
    if not hasattr(error, "errors"):
        return str(error)
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"]))
    return f"{place}: {first['msg']}" if place else first["msg"]


def _written(value: Any, plain: Any) -> bytes:
    if not _holds_set(plain):
        return value.model_dump_json(round_trip=True, by_alias=True).encode()
    return _encode(_ordered(plain, value.model_dump(mode="json", round_trip=True, by_alias=True)))


def _holds_set(value: Any) -> bool:
    if isinstance(value, (set, frozenset)):
        return True
    return any(_holds_set(part) for part in _parts(value))


def _ordered(plain: Any, dumped: Any) -> Any:
    """Put the lists that were sets into a fixed order."""
    if isinstance(plain, (set, frozenset)):
        if any(_holds_set(part) for part in _parts(plain)):
            raise TypeError("a set within a set has no fixed order")
        return sorted(dumped, key=_encode)
    parts = _parts(plain)
    if isinstance(dumped, dict):
        items: Any = dumped.items()  # pyright: ignore[reportUnknownVariableType]  of any kind
        return {key: _ordered(part, item) for part, (key, item) in zip(parts, items, strict=True)}
    if isinstance(dumped, list):
        return [_ordered(part, item) for part, item in zip(parts, dumped, strict=True)]  # pyright: ignore[reportUnknownArgumentType,reportUnknownVariableType]
    return dumped


def _unsound(value: Any, levels: int = NESTING_LEVELS) -> str | None:
    """Return what is wrong with a value although it comes back."""
    kind = class_of(value)
    if kind is int and not INTEGER_MIN <= value <= INTEGER_MAX:
        return f"holds {shown(value, SHOWN_CHARACTERS)}, which needs more than 64 bits"
    if kind is datetime and value.tzinfo is None:
        return f"holds {shown(value, SHOWN_CHARACTERS)}, a datetime without a time zone"
    if kind is dict or kind is list or kind is tuple or kind is set or kind is frozenset:
        if levels == 0:
            return f"nests deeper than {NESTING_LEVELS} levels"
        return next((found for part in _parts(value) if (found := _unsound(part, levels - 1))), None)
    return None


def _parts(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())  # pyright: ignore[reportUnknownArgumentType]  of any kind
    return list(value) if isinstance(value, (list, tuple, set, frozenset)) else []  # pyright: ignore[reportUnknownArgumentType]
