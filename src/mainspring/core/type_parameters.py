"""Reads the type parameters of a workflow class at run time, and the members of a union.

A type parameter may be a class, a union, an alias (also a `type` statement), `Never` for "none", or a forward
reference in quotes; it may come through any number of generic bases in between.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from types import NoneType
from typing import Annotated, Any, Final, ForwardRef, Never, NoReturn, TypeVar, Union, get_args, get_origin

from mainspring.core.workflow import AnyOutput
from mainspring.errors import DefinitionError

ROLES: Final = ("inputs", "states", "outputs")
ALIASES_IN_A_ROW: Final = 20
"""An alias that leads to itself ends here."""


def read_type_parameters(cls: type[Any], root: type[Any]) -> tuple[tuple[type[Any], ...], ...]:
    """Return the input, state, output and result types of a workflow class. A result may be None.

    >>> from mainspring import Workflow
    >>> class Orders(Workflow[int | str, bool, float]): ...
    >>> read_type_parameters(Orders, Workflow)
    ((<class 'int'>, <class 'str'>), (<class 'bool'>,), (<class 'float'>,), (<class 'float'>, <class 'NoneType'>))
    """
    arguments = cls.own_type_parameters() or _arguments_for(cls, root)
    if arguments is None:
        raise DefinitionError(
            cls.__name__,
            "does not say what its inputs, states and outputs are",
            f"Write `class {cls.__name__}({root.__name__}[Input, State, Output])`.",
        )
    inputs, states, outputs = (
        tuple(dict.fromkeys(_members(argument, cls, role))) for argument, role in zip(arguments, ROLES, strict=False)
    )
    if arguments[3] in (AnyOutput, Any):
        return inputs, states, outputs, (*outputs, NoneType)
    return inputs, states, outputs, tuple(dict.fromkeys(_members(arguments[3], cls, "results")))


def union_members(hint: Any) -> set[Any]:
    """Return the members of a union, or the hint itself as the only one.

    >>> sorted(member.__name__ for member in union_members(int | str))
    ['int', 'str']
    """
    hint = unwrapped(hint)
    if get_origin(hint) in (Union, types.UnionType):
        return {member for argument in get_args(hint) for member in union_members(argument)}
    return {hint}


def unwrapped(hint: Any) -> Any:
    """Return what an alias (a `type` statement, also a generic one) or an annotation stands for.

    >>> from typing import Annotated
    >>> unwrapped(Annotated[int, "of apples"])
    <class 'int'>
    """
    for _ in range(ALIASES_IN_A_ROW):
        if get_origin(hint) is Annotated:
            hint = get_args(hint)[0]
        elif hasattr(get_origin(hint), "__value__"):
            alias: Any = get_origin(hint)
            # Python does not count them: a variable that is given nothing stays one, and is named as such.
            hint = _substituted(alias.__value__, dict(zip(alias.__type_params__, get_args(hint), strict=False)))
        elif hasattr(hint, "__value__"):
            hint = hint.__value__
        else:
            return hint
    return hint


def _arguments_for(cls: type[Any], root: type[Any]) -> tuple[Any, ...] | None:
    """Follow the generic bases from `cls` up to `root`, replacing type variables on the way."""
    for base in cls.__dict__.get("__orig_bases__", ()):
        origin = get_origin(base)
        if origin is root:
            return get_args(base)
        if isinstance(origin, type) and issubclass(origin, root):
            above = _arguments_for(origin, root)
            if above is None:
                return None
            parameters: tuple[Any, ...] = vars(origin)["__parameters__"]
            given = dict(zip(parameters, get_args(base), strict=True))
            return tuple(_substituted(argument, given) for argument in above)
    for base in cls.__bases__:
        if base is not root and issubclass(base, root):
            return _arguments_for(base, root)
    return None


def _substituted(argument: Any, given: dict[Any, Any]) -> Any:
    if isinstance(argument, TypeVar):
        return given.get(argument, argument)
    parameters = getattr(argument, "__parameters__", ())
    return argument[tuple(given.get(p, p) for p in parameters)] if parameters else argument


def _members(hint: Any, cls: type[Any], role: str, depth: int = 0) -> Iterator[type[Any]]:
    if hint is Never or hint is NoReturn:
        return
    if isinstance(hint, ForwardRef):
        hint = _resolved(hint, cls, role)
    try:
        hint = unwrapped(hint)
    except NameError as error:
        raise DefinitionError(
            cls.__name__, f"has an alias among its {role} in which {error}", "Define or import the name at run time."
        ) from None
    if get_origin(hint) in (Union, types.UnionType) and depth < ALIASES_IN_A_ROW:
        for argument in get_args(hint):
            yield from _members(argument, cls, role, depth + 1)
    elif isinstance(hint, type) and hint not in (NoneType, object, Any):
        yield hint
    elif hint in (None, NoneType) and role == "results":
        yield NoneType
    else:
        raise DefinitionError(
            cls.__name__,
            f"has {hint!r} among its {role}, which is not a class of its own",
            "Use classes (frozen dataclasses, say) or a union of them; put other values into a field of one.",
        )


def _resolved(hint: ForwardRef, cls: type[Any], role: str) -> Any:
    """Look a quoted name up where the class was written. It is the author's code, never data."""
    text = hint.__forward_arg__
    namespace = vars(sys.modules[cls.__module__])
    try:
        return eval(text, dict(namespace))  # noqa: S307  an annotation of the class itself
    except NameError as error:
        raise DefinitionError(
            cls.__name__,
            f"names {text!r} among its {role}, and {error}",
            "Define or import it at run time in the class's module, before the workflow is used.",
        ) from None
