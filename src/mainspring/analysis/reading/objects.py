"""Attributes: what a field, a property or a method of a value stands for."""

from __future__ import annotations

import enum
import functools
import inspect
from types import FunctionType, MethodType, ModuleType
from typing import Any, cast

from msgspec import Struct

from mainspring.analysis.reading.frames import Frame, Reading
from mainspring.analysis.reading.questions import instance
from mainspring.analysis.reading.records import class_of, class_of_value, hints, members, return_hint
from mainspring.analysis.reading.values import Bound, Items, Known, Made, Symbol, Table, Value, lifted, text_of

_NOTHING = object()


class Above(Struct, frozen=True):
    """What `super()` stands for: the classes above one, and the object."""

    classes: tuple[Any, ...]
    receiver: Any


def attribute(reader: Reading, value: Value, name: str, frame: Frame) -> Value:
    """Return what an attribute of a value stands for."""
    match value:
        case Made(cls, fields):
            return fields[name] if name in fields else _of_class(reader, value, cls, name, frame)
        case Symbol():
            only = reader.way.value(value)
            if only is not None and only[0] is not None:
                return attribute(reader, lifted(only[0]), name, frame)
            return _of_symbol(reader, value, name, frame)
        case Known(known):
            return _of_known(reader, known, name, frame)
        case Items():
            return _method(value, value.cls, name)
        case Table():
            return _method(value, dict, name)
        case _:
            return Symbol(f"{text_of(value)}.{name}")


def plain_field(reader: Reading, value: Value, name: str) -> Value:
    """Return what a field of a record stands for. Fields run no code, so no frame is needed."""
    if isinstance(value, Made) and name in value.fields:
        return value.fields[name]
    cls = single_class(reader, value)
    return Symbol(f"{text_of(value)}.{name}", None if cls is None else members(hints(cls).get(name, object)))


def single_class(reader: Reading, value: Value) -> type[Any] | None:
    """Return the class of a value, if it can be of one only."""
    match value:
        case Made(cls):
            return cls
        case Known(known):
            return class_of_value(known)
        case Symbol():
            types = reader.way.types(value)
            return class_of(types[0]) if types is not None and len(types) == 1 else None
        case Items():
            return value.cls
        case _:
            return None


def settle_class(reader: Reading, value: Value) -> type[Any] | None:
    """Return the class of a value; where several are possible, the way forks."""
    if isinstance(value, Symbol):
        types = reader.way.types(value) or ()
        for member in types[:-1]:
            cls = class_of(member)
            if cls is None:
                return None
            answer = instance(reader.way, value, (cls,))
            if answer.open:
                text = f"{value.path} is {cls.__name__}"
                negation = f"{value.path} is not {cls.__name__}"
                reader.way.note(text, negation, holds=answer.holds, shown=False)
            if answer.holds:
                return cls
    return single_class(reader, value)


def _of_symbol(reader: Reading, value: Symbol, name: str, frame: Frame) -> Value:
    types = reader.way.types(value)
    path = f"{value.path}.{name}"
    if not types:
        return Symbol(path)
    classes = [class_of(member) for member in types]
    known = [hints(cls).get(name, _NOTHING) if cls is not None else _NOTHING for cls in classes]
    if all(hint is not _NOTHING for hint in known):
        found = [members(hint) for hint in known]
        if any(each is None for each in found):
            return Symbol(path)
        return Symbol(path, tuple(dict.fromkeys(member for each in found for member in each or ())))
    cls = settle_class(reader, value)
    return Symbol(path) if cls is None else _of_class(reader, value, cls, name, frame)


def _of_class(reader: Reading, value: Value, cls: type[Any], name: str, frame: Frame) -> Value:
    """Return an attribute by what its class says of it."""
    hint = hints(cls).get(name, _NOTHING)
    member = inspect.getattr_static(cls, name, _NOTHING)
    if isinstance(member, property) and member.fget is not None:
        return reader.call(Known(member.fget), [value], {}, None, frame)
    if isinstance(member, functools.cached_property):
        return reader.call(Known(member.func), [value], {}, None, frame)
    if isinstance(member, FunctionType | functools.singledispatchmethod):
        return Bound(member, value)
    if isinstance(member, staticmethod):
        return Known(member.__func__)
    if isinstance(member, classmethod):
        return Bound(_function(member), Known(cls))
    path = f"{text_of(value)}.{name}"
    if hint is not _NOTHING:
        return Symbol(path, members(hint))
    return _method(value, cls, name) if callable(member) else Symbol(path)


def _of_known(reader: Reading, known: Any, name: str, frame: Frame) -> Value:
    if isinstance(known, Above):
        return _of_above(known, name)
    if isinstance(known, ModuleType | type | enum.Enum):
        try:
            found = getattr(known, name, _NOTHING)
        except Exception:  # noqa: BLE001  a module's or a metaclass's own __getattr__ may do anything
            found = _NOTHING
        if isinstance(found, MethodType):
            return Bound(found.__func__, lifted(found.__self__))
        return Symbol(f"{text_of(Known(known))}.{name}") if found is _NOTHING else _kept(found)
    member = inspect.getattr_static(known, name, _NOTHING)
    if isinstance(member, property) and member.fget is not None:
        return reader.call(Known(member.fget), [Known(known)], {}, None, frame)
    if isinstance(member, FunctionType | functools.singledispatchmethod):
        return Bound(member, Known(known))
    if isinstance(member, staticmethod):
        return _kept(member.__func__)
    if isinstance(member, classmethod):
        return Bound(_function(member), Known(class_of_value(known)))
    if member is _NOTHING or not _is_plain_value(member):
        return _method(Known(known), class_of_value(known), name)
    return _kept(member)


def _of_above(above: Above, name: str) -> Value:
    for cls in above.classes:
        member = cast("dict[str, Any]", vars(cls)).get(name)
        if isinstance(member, FunctionType):
            return Bound(member, above.receiver)
    return Symbol(f"super().{name}")


def _function(member: Any) -> Any:
    """Return the function behind a classmethod or a staticmethod."""
    return member.__func__


def _kept(value: Any) -> Value:
    return lifted(value) if type(value) in (list, tuple, dict) else Known(value)


def _is_plain_value(member: Any) -> bool:
    """Return True if a static attribute is what an access would give: no descriptor."""
    return not hasattr(class_of_value(member), "__get__")


def _method(value: Value, cls: type[Any], name: str) -> Value:
    method = getattr(cls, name, None)
    return Bound(method, value) if callable(method) else Symbol(f"{text_of(value)}.{name}")


def result_types(function: Any) -> tuple[Any, ...] | None:
    """Return the types that a function says it returns."""
    return members(return_hint(function)) if isinstance(function, FunctionType) else None
