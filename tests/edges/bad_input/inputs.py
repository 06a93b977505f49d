"""The table of bad inputs: each has a name, itself, and the error that every boundary answers it with.

When a boundary is added, such as HTTP, it takes these tables as one more column of each test.
"""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, NamedTuple

from mainspring.errors import (
    AttributeValueError,
    BodyTooLargeError,
    DecodeError,
    InvalidDecisionError,
    InvalidIdError,
    MainspringError,
    SettingError,
)


class Case(NamedTuple):
    """A bad input, the error that answers it, and a part of what that says."""

    name: str
    given: Any
    error: type[MainspringError]
    says: str


def _note(value: bytes) -> bytes:
    return b'{"id":"bad","value":' + value + b"}"


# Bodies of a Note, as they come from files, arguments and networks.
BODIES: Final = (
    Case("NaN", _note(b"NaN"), DecodeError, "has NaN, which is not JSON"),
    Case("Infinity", _note(b"Infinity"), DecodeError, "has Infinity, which is not JSON"),
    Case("-Infinity", _note(b"-Infinity"), DecodeError, "has -Infinity, which is not JSON"),
    Case("1e400", _note(b"1e400"), DecodeError, "which is too large"),
    Case("an integer of 65 bits", _note(b"9223372036854775808"), DecodeError, "needs more than 64 bits"),
    Case("an integer of 5,000 digits", _note(b"1" * 5_000), DecodeError, "needs more than 64 bits"),
    Case("a NUL character", _note(b'"a\\u0000b"'), DecodeError, "has a NUL character"),
    Case("a raw NUL byte", _note(b'"a\x00b"'), DecodeError, "is not JSON"),
    Case("a lone surrogate", _note(b'"\\ud800"'), DecodeError, "has half a character"),
    Case("a key twice", b'{"id":"bad","id":"worse"}', DecodeError, "has the key 'id' twice"),
    Case("a key twice, once escaped", b'{"id":"bad","\\u0069d":"worse"}', DecodeError, "has the key 'id' twice"),
    Case("100,000 brackets deep", _note(b"[" * 100_000), DecodeError, "nests deeper than 64 levels"),
    Case("100,000 braces deep", _note(b'{"a":' * 100_000), DecodeError, "nests deeper than 64 levels"),
    Case("bytes that are no UTF-8", _note(b'"\xff"'), DecodeError, "is not UTF-8"),
    Case("UTF-16", '{"id":"bad"}'.encode("utf-16"), DecodeError, "is not UTF-8"),
    Case("an over-long UTF-8 form", _note(b'"\xc0\x80"'), DecodeError, "is not UTF-8"),
    Case("a byte order mark", b"\xef\xbb\xbf" + _note(b"1"), DecodeError, "is not JSON"),
    Case("an empty body", b"", DecodeError, "is not JSON"),
    Case("a body of blanks", b" \n ", DecodeError, "is not JSON"),
    Case("two values", b'{"id":"bad"}{"id":"bad"}', DecodeError, "is not JSON"),
    Case("a body cut short", b'{"id":"ba', DecodeError, "is not JSON"),
    Case("a comment", b'{"id":"bad"} // why', DecodeError, "is not JSON"),
    Case("an array", b"[]", DecodeError, "does not fit"),
    Case("null", b"null", DecodeError, "does not fit"),
    Case("a text", b'"bad"', DecodeError, "does not fit"),
    Case("a field missing", b"{}", DecodeError, "missing required field"),
    Case("a field of another type", b'{"id":7}', DecodeError, "does not fit"),
    Case("a body over the limit", _note(b'"' + b"x" * 3_000_000 + b'"'), BodyTooLargeError, "the limit is 2,097,152"),
)

# Ids of messages, instances and correlations. A path, SQL and wildcards are ids like others.
IDS: Final = (
    Case("an empty id", "", InvalidIdError, ""),
    Case("an id of 1,001 characters", "x" * 1_001, InvalidIdError, ""),
    Case("an id of 10 MB", "x" * 10_000_000, InvalidIdError, ""),
    Case("an id with a newline", "a\nb", InvalidIdError, ""),
    Case("an id with NUL", "a\0b", InvalidIdError, ""),
    Case("an id with a control character", "a\x1b[31mb", InvalidIdError, ""),
    Case("an id with a bidi character", "a\u202eb", InvalidIdError, ""),
    Case("an id with a zero-width space", "a\u200bb", InvalidIdError, ""),
    Case("an id with a lone surrogate", "\ud800", InvalidIdError, ""),
    Case("an id with a no-break space", "a\u00a0b", InvalidIdError, ""),
)
NO_STRINGS: Final = (
    Case("an id that is a number", 7, InvalidIdError, ""),
    Case("an id that is bytes", b"bad", InvalidIdError, ""),
    Case("an id that is a list", ["bad"], InvalidIdError, ""),
)
STRANGE_BUT_SOUND: Final = (
    "../../etc/passwd",
    "a/b/c",
    "'; DROP TABLE events; --",
    "%",
    "_",
    "*",
    "100%",
    "\\",
    "ü🎉",
    "a b",
    "#?&=",
    "x" * 1_000,
)

# Where a list or a stream goes on, and how much of it is wanted.
PLACES: Final = (
    Case("a negative place", -1, SettingError, "Use the number of the last one seen"),
    Case("a place over 64 bits", 2**63, SettingError, "Use the number of the last one seen"),
    Case("a place of 100 bits", 2**100, SettingError, "Use the number of the last one seen"),
    Case("a place that is a text", "1", SettingError, "Use the number of the last one seen"),
    Case("a place with a fraction", 1.5, SettingError, "Use the number of the last one seen"),
    Case("a place that is NaN", float("nan"), SettingError, "Use the number of the last one seen"),
    Case("a place that is None", None, SettingError, "Use the number of the last one seen"),
    Case("a place that is SQL", "0 OR 1=1", SettingError, "Use the number of the last one seen"),
)
LIMITS: Final = (
    Case("a limit of zero", 0, SettingError, "Use a whole number from 1"),
    Case("a negative limit", -1, SettingError, "Use a whole number from 1"),
    Case("a limit over 64 bits", 2**63, SettingError, "Use a whole number from 1"),
    Case("a limit that is a text", "10", SettingError, "Use a whole number from 1"),
    Case("a limit that is infinite", float("inf"), SettingError, "Use a whole number from 1"),
    Case("a limit that is None", None, SettingError, "Use a whole number from 1"),
    Case("a limit that is True", True, SettingError, "Use a whole number from 1"),
)

# Texts that are looked for or recorded: roles, persons, prefixes, reasons.
TEXTS: Final = (
    Case("a text with NUL", "a\0b", SettingError, "Use a text without NUL"),
    Case("a text with a lone surrogate", "\ud800", SettingError, "Use a text without NUL"),
    Case("a text that is a number", 7, SettingError, "Use a text without NUL"),
    Case("a text that is bytes", b"bad", SettingError, "Use a text without NUL"),
)

# Between which times instances began or moved.
TIMES: Final = (
    Case("a time without a zone", datetime(2026, 1, 1), SettingError, "with a time zone"),  # noqa: DTZ001  that is the point
    Case("a time that is a date", date(2026, 1, 1), SettingError, "Use a datetime with a time zone"),
    Case("a time that is a text", "2026-01-01", SettingError, "Use a datetime with a time zone"),
    Case("a time that is a number", 0, SettingError, "Use a datetime with a time zone"),
)
SOUND_TIMES: Final = (
    datetime(1969, 12, 31, tzinfo=UTC),
    datetime.min.replace(tzinfo=UTC),
    datetime.max.replace(tzinfo=UTC),
)
TIMEOUTS: Final = (
    Case("a timeout that is a number", 5, SettingError, "Use a timedelta"),
    Case("a timeout that is None", None, SettingError, "Use a timedelta"),
    Case("a timeout that is NaN", float("nan"), SettingError, "Use a timedelta"),
)

# When a decision is to happen.
DELAYS: Final = (
    Case("a negative delay", {"after": timedelta(seconds=-1)}, InvalidDecisionError, "Use zero or more"),
    Case("the longest delay that Python has", {"after": timedelta.max}, InvalidDecisionError, "a thousand years"),
    Case("a delay that is a number", {"after": 5}, InvalidDecisionError, ""),
    Case("a moment without a zone", {"at": datetime(2026, 1, 1)}, InvalidDecisionError, "no moment in time"),  # noqa: DTZ001  that is the point
    Case("a moment that is a text", {"at": "2026-01-01"}, InvalidDecisionError, ""),
    Case("a delay and a moment", {"after": timedelta(1), "at": SOUND_TIMES[0]}, InvalidDecisionError, ""),
    Case("neither a delay nor a moment", {}, InvalidDecisionError, ""),
)

# What to look for among attributes.
ATTRIBUTES: Final = (
    Case("an attribute that is NaN", {"notes": float("nan")}, AttributeValueError, "is nan"),
    Case("an attribute that is infinite", {"notes": float("inf")}, AttributeValueError, "is inf"),
    Case("an attribute over 53 bits", {"notes": 2**80}, AttributeValueError, "Use a number up to"),
    Case("an attribute that is a list", {"notes": [1]}, AttributeValueError, "is a list"),
    Case("an attribute with NUL", {"notes": "a\0"}, AttributeValueError, "cannot be stored"),
    Case("an attribute with a lone surrogate", {"notes": "\ud800"}, AttributeValueError, "cannot be stored"),
    Case("an attribute of 501 characters", {"notes": "x" * 501}, AttributeValueError, "at most 500"),
    Case("an attribute without a name", {"": 1}, AttributeValueError, "is no name"),
    Case("an attribute whose name is broken", {"\ud800": 1}, AttributeValueError, "is no name"),
    Case("an attribute compared by SQL", [("notes", "= 1 OR 1", 1)], AttributeValueError, "cannot be compared"),
    Case("a condition of two parts", [("notes", "=")], AttributeValueError, "is no search"),
    Case("a search that is a number", 7, AttributeValueError, "is no search"),
    Case("33 conditions", [("notes", "=", 1)] * 33, AttributeValueError, "Ask for 32 at most"),
)


def named(case: object) -> str:
    """Return a case's name, for the names of tests."""
    return case.name if isinstance(case, Case) else json.dumps(str(case))[:40]
