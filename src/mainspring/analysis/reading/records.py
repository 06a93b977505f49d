"""Records: the fields of a message's, a state's or a decision's class, with their types and defaults.

Kinds of states: each state class is one, or one for each value of the field that says how far it has come.

Many write a single class with a `status` for their states. Told apart by that field, such a workflow has states to draw
and to check; its streams know only the name of the class.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import types
from functools import cache, lru_cache
from typing import Any, Final, Literal, Never, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, Struct
from msgspec.structs import fields as struct_fields

from mainspring.core.definition import Definition
from mainspring.core.type_parameters import unwrapped

NO_DEFAULT: Final = object()
HINTS_KEPT: Final = 5_000


def class_of_value(value: Any) -> type[Any]:
    """Return the class of an object, of whose parameters nothing is known.

    >>> class_of_value([])
    <class 'list'>
    """
    return cast("type[Any]", type(value))


@cache
def field_names(cls: type[Any]) -> tuple[str, ...] | None:
    """Return the names of a record's fields in the order of its constructor, or None for what is no record.

    >>> from mainspring.core.decisions import Send
    >>> field_names(Send), field_names(int)
    (('message', 'compensate'), None)
    """
    if dataclasses.is_dataclass(cls):
        return tuple(field.name for field in dataclasses.fields(cls) if field.init)
    if issubclass(cls, Struct):
        return cls.__struct_fields__
    model: dict[str, Any] | None = getattr(cls, "model_fields", None)
    if isinstance(model, dict):
        return tuple(model)
    return None


@cache
def defaults(cls: type[Any]) -> dict[str, Any]:
    """Return the defaults of a record's fields that are plain values; what a factory makes is NO_DEFAULT's.

    >>> from mainspring.core.decisions import Send
    >>> defaults(Send)
    {'compensate': None}
    """
    found: dict[str, Any] = {}
    if dataclasses.is_dataclass(cls):
        for field in dataclasses.fields(cls):
            if field.default is not dataclasses.MISSING:
                found[field.name] = field.default
            elif field.default_factory is not dataclasses.MISSING:
                found[field.name] = NO_DEFAULT
    elif issubclass(cls, Struct):
        for field in struct_fields(cls):
            if field.default is not NODEFAULT:
                found[field.name] = field.default
            elif field.default_factory is not NODEFAULT:
                found[field.name] = NO_DEFAULT
    else:
        for name, field in getattr(cls, "model_fields", {}).items():
            if not field.is_required():
                found[name] = NO_DEFAULT if field.default_factory is not None else field.default
    return found


@cache
def hints(cls: type[Any]) -> dict[str, Any]:
    """Return the types of a class's annotated attributes; those that cannot be resolved are left out.

    >>> from mainspring.core.messages import InstanceId
    >>> hints(InstanceId)["id"]
    <class 'str'>
    """
    try:
        return get_type_hints(cls)
    except Exception:  # noqa: BLE001  an annotation may be any expression; without it less is known, and nothing is wrong
        return {}


def return_hint(function: Any) -> Any:
    """Return the annotation of what a function returns, or NO_DEFAULT where there is none that could be read."""
    try:
        found = get_type_hints(inspect.unwrap(function))
    except Exception:  # noqa: BLE001  as above
        return NO_DEFAULT
    return found.get("return", NO_DEFAULT)


def members(hint: Any) -> tuple[Any, ...] | None:
    """Return the members of a union, in order, or None where a type says nothing.

    >>> members(int | None)
    (<class 'int'>, <class 'NoneType'>)
    """
    try:
        return _members(hint)
    except TypeError:  # a hint that cannot be hashed, such as a Literal of a list
        return None


@lru_cache(maxsize=HINTS_KEPT)
def _members(hint: Any) -> tuple[Any, ...] | None:
    hint = unwrapped(hint)
    if get_origin(hint) in (Union, types.UnionType):
        found: list[Any] = []
        for argument in get_args(hint):
            inner = members(argument)
            if inner is None:
                return None
            found += inner
        return tuple(dict.fromkeys(found))
    if hint is Any or hint is object or hint is NO_DEFAULT or isinstance(hint, TypeVar | str):
        return None
    if hint is Never:
        return ()
    return (type(None),) if hint is None else (hint,)


def class_of(member: Any) -> type[Any] | None:
    """Return the class of a union's member, None if it has no single one.

    >>> class_of(tuple[int, ...]), class_of(Literal["a"])
    (<class 'tuple'>, <class 'str'>)
    """
    origin = get_origin(member)
    if origin is Literal:
        classes: set[type[Any]] = {type(value) for value in get_args(member)}
        return classes.pop() if len(classes) == 1 else None
    found = origin or member
    return found if isinstance(found, type) else None


def choices(member: Any) -> tuple[Any, ...] | None:
    """Return the values that a type leaves to choose from: those of a Literal, an enum or a bool; None for any number.

    >>> choices(Literal["a", "b"]), choices(int)
    (('a', 'b'), None)
    """
    if get_origin(member) is Literal:
        return get_args(member)
    if member is bool:
        return (True, False)
    if isinstance(member, type) and issubclass(member, enum.Enum):
        return tuple(member)
    return None


STATUS_NAMES: Final = frozenset({"status", "state", "phase", "stage", "step"})
MOST_VALUES: Final = 30


class Kind(Struct, frozen=True):
    """A kind of state: its class, and the field and value that make it this one, if a field distinguishes it."""

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
