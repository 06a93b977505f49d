"""Messages and states are records: frozen, for what is recorded must not change afterwards, with fields by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from typing import Any

from msgspec import Struct
from msgspec.structs import fields as msgspec_fields


def frozen_fix(cls: type[Any]) -> str | None:
    """Return how to freeze a record that can be changed, or None if it is frozen.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Order:
    ...     id: str
    >>> frozen_fix(Order)
    '@dataclass(frozen=True)'
    """
    if dataclasses.is_dataclass(cls):
        # Its own decorator counts: a plain subclass of a frozen dataclass would lose the fields that it adds.
        parameters: Any = vars(cls).get("__dataclass_params__")
        return None if parameters is not None and parameters.frozen else "@dataclass(frozen=True)"
    if issubclass(cls, Struct):
        return None if cls.__struct_config__.frozen else f"class {cls.__name__}(Struct, frozen=True)"
    if hasattr(cls, "model_config"):
        return None if cls.model_config.get("frozen") else "model_config = ConfigDict(frozen=True)"
    return "@dataclass(frozen=True)"


def required_fields(cls: Any, wanted: Collection[str], optional: Collection[str]) -> str | None:
    """Return what keeps a record from being made of these fields alone, or None if nothing does.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Joined:
    ...     results: tuple[int, ...]
    ...     count: int
    >>> required_fields(Joined, ("results", "failures"), ())
    'it has no field failures'
    >>> required_fields(Joined, ("results",), ())
    'nothing fills its field count'
    """
    if not isinstance(cls, type):
        return "it is no class"
    fields = _fields(cls)
    for name in wanted:
        if name not in fields:
            return f"it has no field {name}"
    unfilled = [name for name, required in fields.items() if required and name not in wanted and name not in optional]
    return f"nothing fills its field {unfilled[0]}" if unfilled else None


def field_names(cls: type[Any]) -> Collection[str]:
    """Return the names of a record's fields.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Order:
    ...     id: str
    >>> list(field_names(Order))
    ['id']
    """
    return _fields(cls).keys()


def _fields(cls: type[Any]) -> dict[str, bool]:
    """Return the fields of a record, each with whether it must be given."""
    if dataclasses.is_dataclass(cls):
        missing = dataclasses.MISSING
        return {
            f.name: f.default is missing and f.default_factory is missing for f in dataclasses.fields(cls) if f.init
        }
    if issubclass(cls, Struct):
        return {field.name: field.required for field in msgspec_fields(cls)}
    models: dict[str, Any] = getattr(cls, "model_fields", {})
    return {name: field.is_required() for name, field in models.items()}
