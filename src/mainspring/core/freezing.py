"""Messages and states are values: what is recorded must not change afterwards."""

from __future__ import annotations

import dataclasses
from typing import Any

from msgspec import Struct


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
