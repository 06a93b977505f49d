"""Reads classes: which fields a record has, and of what types. No data is looked at here."""

from __future__ import annotations

import dataclasses
import inspect
import sys
import types
import typing
from typing import Any, Literal, NewType, TypeVar, get_args, get_origin

from msgspec import Struct, structs

from mainspring.errors import RegistrationError


class Field(Struct, frozen=True):
    """A field of a record: its name in Python and in JSON, and its type hint with all names resolved."""

    name: str
    key: str
    hint: Any
    required: bool
    init: bool = True


def class_of(value: object) -> type[Any]:
    """Return the type of a value of any kind, in a form that type checkers are content with.

    >>> class_of(1)
    <class 'int'>
    """
    return type(value)


def pydantic_models() -> tuple[type[Any], ...]:
    """Return pydantic's base class if the program uses pydantic; it is never imported from here.

    >>> len(pydantic_models()) <= 1
    True
    """
    module = sys.modules.get("pydantic")
    return () if module is None else (module.BaseModel,)


def is_model(cls: object) -> bool:
    """Return True if a class is a pydantic model.

    >>> is_model(int)
    False
    """
    return isinstance(cls, type) and hasattr(cls, "model_fields") and issubclass(cls, pydantic_models())


def is_record(cls: object) -> bool:
    """Return True if a class, or a generic one with its parameters, is a dataclass, a Struct or a pydantic model.

    >>> is_record(Field), is_record(int)
    (True, False)
    """
    origin: object = get_origin(cls) or cls
    return _is_struct(origin) or hasattr(origin, "__dataclass_fields__") or is_model(origin)


def is_named_tuple(cls: Any) -> bool:
    """Return True if a class is a NamedTuple.

    >>> is_named_tuple(tuple)
    False
    """
    return hasattr(cls, "_fields") and isinstance(cls, type) and issubclass(cls, tuple)


def fields_of(hint: Any) -> list[Field]:
    """Return the fields of a dataclass, Struct or NamedTuple, with type variables replaced by their arguments.

    >>> from typing import NamedTuple
    >>> class Point(NamedTuple):
    ...     x: int
    >>> fields_of(Point)
    [Field(name='x', key='x', hint=<class 'int'>, required=True, init=True)]
    """
    cls: Any = get_origin(hint) or hint
    resolved = _resolved_hints(hint)
    if hasattr(cls, "__dataclass_fields__"):
        _check_no_init_only(cls, resolved)
        return [Field(f.name, f.name, resolved[f.name], _is_required(f), f.init) for f in dataclasses.fields(cls)]
    if issubclass(cls, Struct):
        return [Field(f.name, f.encode_name, resolved[f.name], f.required) for f in structs.fields(cls)]
    defaults: dict[str, Any] = cls._field_defaults
    return [Field(name, name, resolved[name], name not in defaults) for name in cls._fields]


def unwrapped(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return what a NewType, a type alias or an Annotated stands for, and the annotations met on the way.

    >>> OrderId = NewType("OrderId", str)
    >>> unwrapped(OrderId)
    (<class 'str'>, ())
    """
    notes: tuple[Any, ...] = ()
    while True:
        if isinstance(hint, NewType):
            hint = hint.__supertype__
        elif get_origin(hint) is typing.Annotated:
            notes += hint.__metadata__
            hint = hint.__origin__
        elif get_origin(hint) is typing.Final:
            (hint,) = get_args(hint)
        elif hasattr(hint, "__value__"):
            hint = substituted(hint.__value__, _bound(get_origin(hint) or hint, get_args(hint)))
        else:
            return hint, notes


def union_of(hint: Any) -> list[Any]:
    """Return the members of a union in the order of declaration, through aliases, or the hint alone.

    >>> union_of(int | str)
    [<class 'int'>, <class 'str'>]
    """
    inner, notes = unwrapped(hint)
    if get_origin(inner) not in (typing.Union, types.UnionType):
        return [hint if notes else inner]
    members = [member for argument in get_args(inner) for member in union_of(argument)]
    literals = [value for member in members if get_origin(member) is Literal for value in get_args(member)]
    others = [member for member in members if get_origin(member) is not Literal]
    return [*others, Literal[*literals]] if literals else others


def substituted(hint: Any, bound: dict[Any, Any]) -> Any:
    """Replace type variables in a hint.

    >>> T = TypeVar("T")
    >>> substituted(list[T], {T: int})
    list[int]
    """
    if isinstance(hint, TypeVar):
        return bound.get(hint, hint)
    generic: Any = hint
    # A generic class without parameters stays as it is, and is refused by name later.
    parameters = () if inspect.isclass(hint) else getattr(hint, "__parameters__", ())
    return generic[tuple(bound.get(p, p) for p in parameters)] if parameters else generic


def _is_struct(cls: object) -> bool:
    return isinstance(cls, type) and issubclass(cls, Struct)


def _resolved_hints(hint: Any) -> dict[str, Any]:
    cls: Any = get_origin(hint) or hint
    try:
        found = typing.get_type_hints(cls, include_extras=True)
    except NameError as error:
        raise RegistrationError(
            cls.__name__,
            f"a field's type cannot be found: {error}",
            "Define or import it at run time, at the top level of the class's module.",
        ) from None
    except TypeError as error:
        raise RegistrationError(
            cls.__name__, f"a field's type is no type ({error})", "Correct the annotation."
        ) from None
    bindings = _bindings(cls, get_args(hint))
    owners = {name: owner for owner in reversed(cls.__mro__) for name in inspect.get_annotations(owner)}
    return {name: substituted(found[name], bindings.get(owners.get(name), {})) for name in found}


def _bindings(cls: type[Any], arguments: tuple[Any, ...]) -> dict[Any, dict[Any, Any]]:
    """Return, for each class above, what its own type variables stand for."""
    own = _bound(cls, arguments)
    found = {cls: own}
    for base in vars(cls).get("__orig_bases__", cls.__bases__):
        origin: Any = get_origin(base) or base
        if isinstance(origin, type):  # NamedTuple is none
            found |= _bindings(origin, tuple(substituted(argument, own) for argument in get_args(base)))
    return found


def _bound(origin: Any, arguments: tuple[Any, ...]) -> dict[Any, Any]:
    return dict(zip(getattr(origin, "__parameters__", ()), arguments, strict=False))


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _check_no_init_only(cls: type[Any], resolved: dict[str, Any]) -> None:
    for name, hint in resolved.items():
        if isinstance(hint, dataclasses.InitVar):
            raise RegistrationError(
                cls.__name__,
                f"its `{name}` is an InitVar, which is not kept and so cannot be stored",
                "Make it an ordinary field, or compute it before the object is made.",
            )
