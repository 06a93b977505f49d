"""The values without parts: how each is tested before it is written.

A test is a Python expression over `{v}` (and `{bound}`, what a rule carries along); from these the check of a whole
type is compiled once. What passes is what comes back: msgspec alone would write a NaN as null, a str into an int field,
a naive datetime as it stands.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Final
from uuid import UUID

from msgspec import Struct

from mainspring.codec.hints import class_of
from mainspring.codec.limits import INTEGER_MAX, INTEGER_MIN, NESTING_LEVELS

_MINUTE: Final = timedelta(minutes=1)
_NOTHING: Final = timedelta(0)
_LITERAL_KINDS: Final[dict[type[Any], str]] = {str: "string", int: "int", type(None): "null"}


class Rule(Struct, frozen=True):
    """What a leaf must be: a test, the same in words, what to do otherwise, and which kind of JSON value it becomes.

    >>> RULES[str].expected
    'a str'
    """

    test: str
    expected: str
    fix: str
    kinds: tuple[str, ...]
    is_key: bool = True
    bound: Any = None


def with_article(name: str) -> str:
    """Return a name with its article.

    >>> with_article("Card"), with_article("Invoice")
    ('a Card', 'an Invoice')
    """
    return f"{'an' if name[:1] in 'AEIOaeio' else 'a'} {name}"


def has_whole_offset(moment: datetime | time) -> bool:
    """Return True if the offset from UTC is known and in whole minutes, which is all that JSON text can say.

    A time of day has one only if its zone has always the same.

    >>> has_whole_offset(datetime(2026, 1, 1)), has_whole_offset(time(8, 30, tzinfo=UTC))  # one of them naive
    (False, True)
    """
    offset = moment.utcoffset()
    return offset is not None and offset % _MINUTE == _NOTHING


def is_native(value: Any, levels: int = NESTING_LEVELS) -> bool:
    """Return True if a value is made of what JSON has, and so comes back from an `Any` field as it was.

    >>> is_native({"a": [1, None]}), is_native((1, 2)), is_native({1: 2})
    (True, False, False)
    """
    kind = class_of(value)
    if kind is str or kind is bool or value is None:
        return True
    if kind is int:
        return INTEGER_MIN <= value <= INTEGER_MAX
    if kind is float:
        return math.isfinite(value)
    if levels == 0:
        return False
    if kind is list:
        return all(is_native(item, levels - 1) for item in value)
    if kind is dict:
        return all(type(key) is str and is_native(item, levels - 1) for key, item in value.items())
    return False


TEST_NAMES: Final[dict[str, Any]] = {
    "INTEGER_MIN": INTEGER_MIN,
    "INTEGER_MAX": INTEGER_MAX,
    "INFINITY": math.inf,
    "UTC": UTC,
    "date": date,
    "datetime": datetime,
    "time": time,
    "timedelta": timedelta,
    "Decimal": Decimal,
    "UUID": UUID,
    "has_whole_offset": has_whole_offset,
    "is_native": is_native,
}
"""What the tests below may name."""

RULES: Final[dict[Any, Rule]] = {
    type(None): Rule("{v} is None", "None", "Pass None.", ("null",), is_key=False),
    bool: Rule("type({v}) is bool", "a bool", "Pass True or False.", ("bool",), is_key=False),
    int: Rule(
        "type({v}) is int and INTEGER_MIN <= {v} <= INTEGER_MAX",
        "an int of at most 64 bits",
        "Convert it with int(…); keep larger ones in a str or Decimal field.",
        ("int",),
    ),
    float: Rule(
        "type({v}) is float and -INFINITY < {v} < INFINITY",
        "a finite float",
        "Convert an int with float(…); JSON has no NaN and no Infinity, so use None for them.",
        ("float",),
    ),
    str: Rule("type({v}) is str", "a str", "Convert it with str(…).", ("string",)),
    bytes: Rule("type({v}) is bytes", "bytes", "Convert it with bytes(…).", ("string",)),
    Decimal: Rule(
        "type({v}) is Decimal and {v}.is_finite()",
        "a finite Decimal",
        "Convert it with Decimal(…); use None for NaN and Infinity.",
        ("string",),
    ),
    UUID: Rule("type({v}) is UUID", "a UUID", "Convert it with UUID(…).", ("string",)),
    datetime: Rule(
        "type({v}) is datetime and ({v}.tzinfo is UTC or has_whole_offset({v}))",
        "a datetime with a time zone, its offset in whole minutes",
        "Give it a zone, as in datetime(2026, 1, 1, tzinfo=UTC), or convert it with .astimezone(UTC).",
        ("string",),
    ),
    date: Rule("type({v}) is date", "a date", "Convert a datetime with .date().", ("string",)),
    time: Rule(
        "type({v}) is time and ({v}.tzinfo is None or has_whole_offset({v}))",
        "a time without a zone or with a fixed offset in whole minutes",
        "Drop the zone with .replace(tzinfo=None), or use a datetime.",
        ("string",),
    ),
    timedelta: Rule("type({v}) is timedelta", "a timedelta", "Use timedelta(…).", ("string",)),
    Any: Rule(
        "is_native({v})",
        f"a JSON value (None, bool, int, float, str, list, dict with str keys) of at most {NESTING_LEVELS} levels",
        "Give the field a precise type, or convert the value.",
        (),  # never called: a union with Any in it is Any
        is_key=False,
    ),
}


def enum_rule(cls: type[Enum]) -> Rule:
    """Return the rule for an Enum, which is what the test is bound to.

    >>> class Colour(Enum):
    ...     RED = "red"
    >>> enum_rule(Colour).expected
    'a Colour'
    """
    kind = "string" if all(isinstance(member.value, str) for member in cls) else "int"
    fix = f"Use one of its members, or {cls.__name__}(…)."
    return Rule("type({v}) is {bound}", with_article(cls.__name__), fix, (kind,), bound=cls)


def literal_rule(values: Sequence[Any]) -> Rule:
    """Return the rule for a Literal of strings, integers and None.

    >>> literal_rule(["a", "b"]).expected
    "one of 'a', 'b'"
    """
    kinds = tuple(dict.fromkeys(_LITERAL_KINDS[type(value)] for value in values))
    return Rule(
        # The type is looked at too: True is in {1}.
        "(type({v}), {v}) in {bound}",
        f"one of {', '.join(map(repr, values))}",
        "Use one of these.",
        kinds,
        is_key=kinds in (("string",), ("int",)),
        bound={(type(value), value): None for value in values},
    )
