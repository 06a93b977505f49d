"""The scan of bytes that came from outside: HTTP, a broker, a command line.

msgspec reads what its types ask for and accepts what JSON leaves open (duplicate keys, integers of any size). Our
own stored bytes never hold such things; bytes from outside may, so they are scanned once before they are decoded.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final, NoReturn

from mainspring.codec.limits import INTEGER_CHARACTERS, INTEGER_MAX, INTEGER_MIN, NESTING_LEVELS
from mainspring.errors import DecodeError, shown

# The closing quote is optional: an unterminated string is then one token, and the scan stays linear.
_STRINGS: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_NUL_ESCAPE: Final = re.compile(rb"(?<!\\)(?:\\\\)*+\\u0000")
_BRACKETS: Final = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS: Final = bytes(range(256)).translate(None, b"[]{}")
# A sender of a million numbers must not make us look at each in Python: these alone can be too large.
_LONG_INTEGER: Final = re.compile(rb"[0-9]{18}")
_LARGE_FLOAT: Final = re.compile(rb"[0-9][eE]|[0-9]{300}")
_HALF_CHARACTER: Final = re.compile("[\ud800-\udfff]")


def nesting_of(body: bytes, limit: int = NESTING_LEVELS) -> int:
    """Return how many levels deep arrays and objects nest, counting no further than one beyond the limit.

    The innermost pairs are taken away together, level by level: 2 MiB of brackets are no million steps of Python. What
    is opened and never closed counts as a level each.

    >>> nesting_of(b'{"a": [1, "[["]}')
    2
    """
    left, levels, too_deep = _brackets(body), 0, b"[" * (limit + 1)
    while b"[]" in left:
        if levels >= limit or too_deep in left:
            return limit + 1
        left = left.replace(b"[]", b"")
        levels += 1
    return min(levels + left.count(b"["), limit + 1)


def _brackets(body: bytes) -> bytes:
    """Return nothing but the brackets that stand outside of strings, of one kind."""
    return _STRINGS.sub(b"", body).translate(_BRACKETS, _NO_BRACKETS)


def holds_nul(body: bytes) -> bool:
    """Return True if some text in a JSON body holds the NUL character.

    >>> holds_nul(json.dumps(chr(0)).encode()), holds_nul(json.dumps(chr(92) + "u0000").encode())
    (True, False)
    """
    return b"\\u0000" in body and _NUL_ESCAPE.search(body) is not None


def scan(type_name: str, body: bytes) -> None:
    """Raise a DecodeError unless the body is one JSON value without anything doubtful in it.

    >>> scan("PlaceOrder", b'{"order_id": "o-1"}')
    >>> scan("PlaceOrder", b'{"amount": 1, "amount": 2}')
    Traceback (most recent call last):
    mainspring.errors.encoding.DecodeError: PlaceOrder: the body has the key 'amount' twice. Send every key once.
    """
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DecodeError(type_name, f"the body is not UTF-8 ({error})", "Send JSON in UTF-8.") from None
    # With so few brackets nothing nests deeper: most bodies need no closer look.
    if body.count(b"[") + body.count(b"{") > NESTING_LEVELS and nesting_of(body) > NESTING_LEVELS:
        raise DecodeError(type_name, f"the body nests deeper than {NESTING_LEVELS} levels", "Send flatter data.")
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=_integer if _LONG_INTEGER.search(body) else None,
            parse_float=_float if _LARGE_FLOAT.search(body) else None,
            parse_constant=_constant,
        )
    except _DoubtfulError as doubt:
        raise DecodeError(type_name, f"the body {doubt.problem}", doubt.fix) from None
    except ValueError as error:
        raise DecodeError(
            type_name, f"the body is not JSON ({error})", "Send one JSON value and nothing else."
        ) from None
    # In UTF-8 that was read, by JSON that was, only such an escape can have made what no text may hold.
    if b"\\u" in body:
        _check_texts(type_name, value)


class _DoubtfulError(Exception):
    def __init__(self, problem: str, fix: str) -> None:
        self.problem = problem
        self.fix = fix
        super().__init__(problem)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        # In one pass: a sender of hundreds of thousands of keys must not make us compare each with all others.
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))
        raise _DoubtfulError(f"has the key {shown(twice, 80)} twice", "Send every key once.")
    return found


def _integer(text: str) -> int:
    if len(text) > INTEGER_CHARACTERS or not INTEGER_MIN <= int(text) <= INTEGER_MAX:
        raise _DoubtfulError(f"has the integer {text[:30]}, which needs more than 64 bits", "Send it as a string.")
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _DoubtfulError(f"has the number {text[:30]}, which is too large", "Send it as a string.")
    return value


def _constant(text: str) -> NoReturn:
    raise _DoubtfulError(f"has {text}, which is not JSON", "Send null, or leave the field out.")


def _check_texts(type_name: str, value: Any) -> None:
    """Look at every text. The nesting is bounded by now, so recursion is too."""
    match value:
        case str():
            _check_text(type_name, value)
        case list():
            for item in value:  # pyright: ignore[reportUnknownVariableType]  JSON of any kind
                _check_texts(type_name, item)
        case dict():
            for key, item in value.items():  # pyright: ignore[reportUnknownVariableType]  JSON of any kind
                _check_text(type_name, key)  # pyright: ignore[reportUnknownArgumentType]
                _check_texts(type_name, item)
        case _:
            pass


def _check_text(type_name: str, text: str) -> None:
    if "\0" in text:
        raise DecodeError(type_name, f"the body has a NUL character in {shown(text, 80)}", "Send text without it.")
    if _HALF_CHARACTER.search(text):
        raise DecodeError(type_name, f"the body has half a character in {shown(text, 80)}", "Send whole characters.")
