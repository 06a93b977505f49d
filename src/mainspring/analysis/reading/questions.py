"""Questions that code asks about values: is it true, is it of a class, does it equal another?

Each answer says also whether it had to be chosen: then the way forks there.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final, NamedTuple, cast, get_args

from mainspring.analysis.reading.records import class_of, field_names, members
from mainspring.analysis.reading.values import (
    Bound,
    Closure,
    Items,
    Known,
    Made,
    Symbol,
    Table,
    Test,
    Value,
    lifted,
    text_of,
)
from mainspring.analysis.reading.ways import Way

_ORDERS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_SIZED: Final = (tuple, list, dict, set, frozenset, str, bytes)


class Answer(NamedTuple):
    """How a question is answered on a way, and whether that was open before."""

    holds: bool
    open: bool = False


def truth(way: Way, value: Value) -> Answer:
    """Answer whether a value is true.

    >>> truth(Way([]), Known(0))
    Answer(holds=False, open=False)
    """
    match value:
        case Known(known):
            return Answer(bool(known))
        case Items():
            if any(not hasattr(part, "alternatives") for part in value.parts) or not value.parts:
                return Answer(bool(value.parts))
            return _ask(way, f"bool({text_of(value)})")
        case Table(entries):
            return Answer(bool(entries))
        case Bound() | Closure():
            return Answer(holds=True)
        case Made(cls):
            return Answer(holds=True) if _is_always_true(cls) else _ask(way, f"bool({text_of(value)})")
        case Test(op, left, right, holds):
            answer = compare(way, op, left, right)
            return Answer(answer.holds is holds, answer.open)
        case Symbol():
            return _truth_of_symbol(way, value)


def compare(way: Way, op: str, left: Value, right: Value) -> Answer:
    """Answer a comparison. `op` is one of == is in isinstance < <= > >=."""
    if op == "isinstance":
        return instance(way, left, classes_of(right))
    left, right = _settled(way, left), _settled(way, right)
    if op == "in":
        return _contains(way, right, left)
    if op in _ORDERS:
        return _ordered(way, op, left, right)
    if isinstance(left, Known) and not isinstance(right, Known):
        left, right = right, left
    return equal(way, left, right, by_identity=op == "is")


def instance(way: Way, value: Value, classes: tuple[type[Any], ...]) -> Answer:
    """Answer whether a value is of one of some classes."""
    match value:
        case Symbol():
            only = way.value(value)
            if only is not None:
                return Answer(isinstance(only[0], classes))
            known = way.is_instance(value, classes)
            return Answer(known) if known is not None else Answer(way.ask_instance(value, classes), open=True)
        case Known(known):
            return Answer(isinstance(known, classes))
        case Made(cls):
            return Answer(issubclass(cls, classes))
        case Items():
            return Answer(issubclass(value.cls, classes))
        case Table():
            return Answer(issubclass(dict, classes))
        case Test():
            return Answer(issubclass(bool, classes))
        case Bound() | Closure():
            return _ask(way, f"{text_of(value)} is {classes}")


def equal(way: Way, left: Value, right: Value, *, by_identity: bool = False) -> Answer:
    """Answer whether two values are equal."""
    match left, right:
        case Known(one), Known(other):
            return Answer(
                one is other if by_identity and not isinstance(one, int | str | float) else bool(one == other)
            )
        case Symbol(), Known(None):
            return instance(way, left, (type(None),))
        case ((Made() | Items() | Table() | Bound() | Closure() | Test()), Known(None)):
            return Answer(holds=False)
        case Symbol(), Known(value):
            known = way.equals(left, value)
            return Answer(known) if known is not None else Answer(way.ask_equal(left, value), open=True)
        case Symbol(path), Items() if right.whole == []:
            return equal(way, Symbol(f"len({path})", (int,)), Known(0))
        case Items(), Items() if left.whole is not None and right.whole is not None:
            if len(left.whole) != len(right.whole):
                return Answer(holds=False)
        case Made(cls), Made(other) if cls is not other:
            return Answer(holds=False)
        case _:
            pass
    one, other = sorted((text_of(left), text_of(right)))
    return Answer(holds=True) if one == other else _ask(way, f"{one} == {other}")


def classes_of(value: Value) -> tuple[type[Any], ...]:
    """Return the classes that isinstance or a pattern was given.

    >>> classes_of(Known((int, str | None)))
    (<class 'int'>, <class 'str'>, <class 'NoneType'>)
    """
    match value:
        case Known(known) if isinstance(known, tuple):
            several = cast("tuple[Any, ...]", known)
            return tuple(cls for each in several for cls in classes_of(Known(each)))
        case Known(cls):
            return tuple(found for member in members(cls) or (object,) if (found := class_of(member)) is not None)
        case Items():
            return tuple(cls for each in value.parts if not hasattr(each, "alternatives") for cls in classes_of(each))  # pyright: ignore[reportArgumentType]
        case _:
            return (object,)


def _settled(way: Way, value: Value) -> Value:
    """Return a symbol of which only one value is left as that value."""
    only = way.value(value) if isinstance(value, Symbol) else None
    return value if only is None else lifted(only[0])


def _ask(way: Way, key: str) -> Answer:
    known = way.truth(key)
    return Answer(known) if known is not None else Answer(way.ask(key), open=True)


def _truth_of_symbol(way: Way, value: Symbol) -> Answer:
    only = way.value(value)
    if only is not None:
        return Answer(bool(only[0]))
    types = way.types(value)
    if types is None:
        return _ask(way, f"bool({value.path})")
    others = [member for member in types if member is not type(None)]
    if all(_is_always_true(class_of(member)) for member in others):
        answer = instance(way, value, (type(None),))
        return Answer(not answer.holds, answer.open)
    if types and all(class_of(member) in _SIZED for member in types):
        answer = equal(way, Symbol(f"len({value.path})", (int,)), Known(0))
        return Answer(not answer.holds, answer.open)
    answer = _ask(way, f"bool({value.path})")
    if answer.holds and len(others) < len(types):
        way.narrow(value, tuple(others))
    return answer


def _contains(way: Way, container: Value, value: Value) -> Answer:
    known: Any = container.value if isinstance(container, Known) else None
    if isinstance(known, list | tuple | set | frozenset | dict):
        container = Items(list, [lifted(each) for each in _ordered_parts(known)])
    if isinstance(container, Table):
        container = Items(list, [Known(key) for key in container.entries])
    parts = container.whole if isinstance(container, Items) else None
    if parts is None or not isinstance(value, Known | Symbol):
        return _ask(way, f"{text_of(value)} in {text_of(container)}")
    was_open = False
    for part in parts:
        answer = equal(way, value, part)
        was_open = was_open or answer.open
        if answer.holds:
            return Answer(holds=True, open=was_open)
    return Answer(holds=False, open=was_open)


def _ordered_parts(container: Any) -> list[Any]:
    parts: list[Any] = list(container)
    return parts if isinstance(container, list | tuple | dict) else sorted(parts, key=repr)


def _ordered(way: Way, op: str, left: Value, right: Value) -> Answer:
    if isinstance(left, Known) and isinstance(right, Known):
        try:
            return Answer(bool(_ORDERS[op](left.value, right.value)))
        except TypeError:
            pass
    return _ask(way, f"{text_of(left)} {op} {text_of(right)}")


def _is_always_true(cls: type[Any] | None) -> bool:
    """Return True if instances of a class are always true: a record is, unless it says otherwise."""
    if cls is None or field_names(cls) is None:
        return False
    return not hasattr(cls, "__bool__") and not hasattr(cls, "__len__")


def element_types(hint: Any) -> tuple[Any, ...] | None:
    """Return the types of the elements of a list, a tuple or the like.

    >>> element_types(tuple[int, ...])
    (<class 'int'>,)
    """
    arguments = [argument for argument in get_args(hint) if argument is not ...]
    found: list[Any] = []
    for argument in arguments:
        inner = members(argument)
        if inner is None:
            return None
        found += inner
    return tuple(dict.fromkeys(found)) or None
