"""Kinds of states: each state class is one, or one for each value of the field that says how far it has come.

Many write a single class with a `status` for their states. Told apart by that field, such a workflow has states to draw
and to check; its streams know only the name of the class.
"""

from __future__ import annotations

import enum
from typing import Any, Final

from msgspec import Struct

from mainspring.analysis.reading.records import choices, hints, members
from mainspring.core.definition import Definition

STATUS_NAMES: Final = frozenset({"status", "state", "phase", "stage", "step"})
MOST_VALUES: Final = 30


class Kind(Struct, frozen=True):
    """A kind of state: its class, and the field and value that make it this one, if it is told apart by a field."""

    name: str
    cls: Any
    field: str | None = None
    value: Any = None


def kinds_of(definition: Definition, *, by_status: bool) -> dict[str, Kind]:
    """Return the kinds of a workflow's states, by their names."""
    found: list[Kind] = []
    for cls, name in definition.states.items():
        field, values = _status(cls) if by_status else (None, ())
        if field is None:
            found.append(Kind(name, cls))
        else:
            found += [Kind(f"{name}[{_shown(value)}]", cls, field, value) for value in values]
    return {kind.name: kind for kind in found}


def _status(cls: type[Any]) -> tuple[str | None, tuple[Any, ...]]:
    """Return the field that says how far a state has come, and its values."""
    for name, hint in hints(cls).items():
        found = members(hint) or ()
        values = [choices(member) for member in found if member is not bool]
        if name in STATUS_NAMES and values and all(each is not None for each in values):
            flat = tuple(value for each in values for value in each or ())
            if len(flat) <= MOST_VALUES:
                return name, flat
    return None, ()


def _shown(value: Any) -> str:
    return value.name if isinstance(value, enum.Enum) else str(value)
