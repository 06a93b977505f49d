"""Attributes of instances: what a workflow says of a state so that people can search for it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from sys import float_info
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct

from mainspring.errors import AttributeValueError, shown

AttributeKind: TypeAlias = Literal["text", "number", "flag", "time"]
Value: TypeAlias = str | int | float | bool | datetime
Condition: TypeAlias = tuple[str, str, Value]

ATTRIBUTES: Final = 32
NAME_CHARACTERS: Final = 100
TEXT_CHARACTERS: Final = 500
# Above it, the number that the databases compare would no longer be the number written.
LARGEST_WHOLE: Final = 2**53

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_FIRST_US: Final = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_LAST_US: Final = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_COMPARISONS: Final = ("=", "<", "<=", ">", ">=")


class AttributeRow(Struct, frozen=True, gc=False):
    """An attribute as it is stored: a text, or a number, which also stands for a flag (0, 1) or a time (microseconds).

    >>> AttributeRow("customer", "text", "c-7").number is None
    True
    """

    name: str
    kind: AttributeKind
    text: str | None = None
    number: float | None = None

    @property
    def value(self) -> Value:
        """The value as the workflow gave it; of a time after the year 2255, not to the last microseconds."""
        match self.kind:
            case "text":
                return self.text or ""
            case "flag":
                return self.number == 1
            case "time":
                # The last moment that there is, which people use for "never", is rounded to one behind it.
                return _EPOCH + timedelta(microseconds=min(max(round(self.number or 0), _FIRST_US), _LAST_US))
            case "number":
                number = self.number or 0.0
                return int(number) if number.is_integer() and abs(number) <= LARGEST_WHOLE else number


class AttributeFilter(Struct, frozen=True, gc=False):
    """Which values of an attribute to find: one text, or all numbers from `low` to `high`, both of them included.

    >>> wanted(("amount", ">=", 1000)).low
    1000.0
    """

    name: str
    kind: AttributeKind
    text: str | None = None
    low: float | None = None
    high: float | None = None

    def finds(self, row: AttributeRow) -> bool:
        """Return True if an attribute is to be found."""
        if (row.name, row.kind) != (self.name, self.kind):
            return False
        if self.kind == "text":
            return row.text == self.text
        return row.number is not None and (self.low or 0) <= row.number <= (self.high or 0)


def rows_of(attributes: Mapping[str, Any]) -> tuple[AttributeRow, ...]:
    """Return attributes as they are stored, sorted by name, or raise for what cannot be searched for.

    >>> [row.value for row in rows_of({"customer": "c-7", "amount": 1000})]
    [1000, 'c-7']
    """
    if not isinstance(attributes, Mapping):
        raise AttributeValueError(
            shown(attributes, 80), "is no mapping of names to values", 'Return {"customer": …}, or {} for none.'
        )
    if len(attributes) > ATTRIBUTES:
        first = ", ".join(sorted(map(str, attributes))[:3])
        raise AttributeValueError(
            f"{first}, …", f"is one of {len(attributes)}; at most {ATTRIBUTES} are indexed", "Return fewer of them."
        )
    return tuple(_row(name, attributes[name]) for name in sorted(attributes, key=str))


def wanted(condition: Condition) -> AttributeFilter:
    """Return a condition such as `("amount", ">=", 1000)` as a store looks for it."""
    name, comparison, value = condition
    if comparison not in _COMPARISONS:
        raise AttributeValueError(
            name, f"cannot be compared by {comparison!r}", f"Use one of {', '.join(_COMPARISONS)}."
        )
    row = _row(name, value)
    if row.number is None:
        if comparison != "=":
            raise AttributeValueError(name, "is compared with a text", "Texts are found by = only.")
        return AttributeFilter(name, row.kind, row.text)
    number = row.number
    # Bounds that JSON can carry: there is no infinity in it.
    low = {">": math.nextafter(number, math.inf), ">=": number, "=": number}.get(comparison, -float_info.max)
    high = {"<": math.nextafter(number, -math.inf), "<=": number, "=": number}.get(comparison, float_info.max)
    return AttributeFilter(name, row.kind, None, low, high)


def conditions_of(
    attributes: Mapping[str, Value] | Sequence[Condition] | None,
) -> tuple[AttributeFilter, ...]:
    """Return what a caller asks for, a mapping of equal values or a list of comparisons, as a store looks for it.

    >>> conditions_of({"customer": "c-7"})[0].text
    'c-7'
    """
    if attributes is None:
        return ()
    if isinstance(attributes, Mapping):
        given: list[Condition] = [(name, "=", value) for name, value in attributes.items()]
    elif isinstance(attributes, Sequence) and all(
        isinstance(each, tuple | list) and len(each) == 3 for each in attributes
    ):  # pyright: ignore[reportUnnecessaryIsInstance]  it may be anything
        given = list(attributes)
    else:
        raise AttributeValueError(
            shown(attributes, 80), "is no search", 'Use {"customer": "c-7"}, or [("amount", ">=", 1000)].'
        )
    if len(given) > ATTRIBUTES:
        raise AttributeValueError(
            given[0][0], f"is one of {len(given)} that are asked for", f"Ask for {ATTRIBUTES} at most."
        )
    return tuple(wanted(condition) for condition in given)


def _row(name: Any, value: Any) -> AttributeRow:
    if not isinstance(name, str) or not 0 < len(name) <= NAME_CHARACTERS or "\0" in name or not _is_unicode(name):
        raise AttributeValueError(
            repr(name)[:NAME_CHARACTERS], "is no name", f"Use a text of 1 to {NAME_CHARACTERS} characters."
        )
    match value:
        case bool():
            return AttributeRow(name, "flag", None, float(value))
        case str():
            if len(value) > TEXT_CHARACTERS or "\0" in value or not _is_unicode(value):
                raise AttributeValueError(
                    name,
                    f"has {len(value)} characters, or some that cannot be stored",
                    f"Use a text of at most {TEXT_CHARACTERS} characters.",
                )
            return AttributeRow(name, "text", value)
        case int() | float():
            # First: isfinite cannot take an integer larger than any float.
            if (isinstance(value, int) and abs(value) > LARGEST_WHOLE) or not math.isfinite(value):
                raise AttributeValueError(name, f"is {shown(value, 80)}", "Use a number up to 2**53, or a text.")
            return AttributeRow(name, "number", None, float(value))
        case datetime():
            if value.utcoffset() is None:
                raise AttributeValueError(name, "is a time without a zone", "Use datetime(…, tzinfo=UTC).")
            return AttributeRow(name, "time", None, float((value - _EPOCH) // _MICROSECOND))
        case _:
            raise AttributeValueError(
                name, f"is a {type(value).__name__}", "Use a str, int, float, bool or datetime; leave out what is None."
            )


def _is_unicode(text: str) -> bool:
    return not any(0xD800 <= ord(character) <= 0xDFFF for character in text)
