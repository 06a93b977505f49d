"""Bytes from outside are trusted with nothing."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mainspring.codec import BODY_LIMIT_BYTES, Codec
from mainspring.codec.limits import NESTING_LEVELS
from mainspring.codec.strict import holds_nul, nesting_of
from mainspring.errors import BodyTooLargeError, CodecError, DecodeError
from tests.unit.codec.shop import ORDER, Card, Order, Payment, body_of, codec_for


@dataclass(frozen=True)
class Open:
    value: Any = None


@dataclass(frozen=True)
class Booking:
    at: datetime
    price: Decimal


CODEC = codec_for(Open, Order, Booking, Card, Payment)


def value_of(text: bytes) -> Any:
    return CODEC.decode_outside("Open", 1, b'{"value":' + text + b"}").value


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b'{"a":1,"b":{"c":1,"c":1}}', "has the key 'c' twice"),
        (b'{"a":1,"\\u0061":2}', "has the key 'a' twice"),
        (b"NaN", "has NaN, which is not JSON"),
        (b"-Infinity", "has -Infinity, which is not JSON"),
        (b"1e400", "has the number 1e400, which is too large"),
        (b"9223372036854775808", "has the integer -?922337203685477580., which needs more than 64 bits"),
        (b"-9223372036854775809", "has the integer -?922337203685477580., which needs more than 64 bits"),
        (b"1" * 5000, "has the integer 1+, which needs more than 64 bits"),
        (b'"\\ud800"', "has half a character"),
        (b'"\\udc00\\ud800"', "has half a character"),
        (b'"\\udfff"', "has half a character"),
        (b'{"\\ud800":1}', "has half a character"),
        (b'"a\\u0000"', "has a NUL character"),
        (b'{"\\u0000":1}', "has a NUL character"),
        (b'["\\u0000"]', "has a NUL character"),
        (b'"\x00"', "is not JSON"),
        (b'"\xff"', "is not UTF-8"),
        (b'"\xed\xa0\x80"', "is not UTF-8"),
        (b'"\xc0\x80"', "is not UTF-8"),
        (b"[" * NESTING_LEVELS + b"]" * NESTING_LEVELS, "nests deeper than 64 levels"),
        (b"[" * 100_000, "nests deeper than 64 levels"),
        (b'{"a":' * 100_000, "nests deeper than 64 levels"),
        (b"01", "is not JSON"),
        (b"[1,]", "is not JSON"),
        (b"'a'", "is not JSON"),
        (b'"' + b'\\"' * 100_000, "is not JSON"),
        (b"1}{", "is not JSON"),
        (b"", "is not JSON"),
    ],
)
def test_a_doubtful_body_is_refused(text: bytes, problem: str) -> None:
    with pytest.raises(DecodeError, match=f"Open: the body {problem}"):
        value_of(text)


def test_the_one_key_of_very_many_that_is_there_twice_is_found_in_one_walk() -> None:
    # A look at all keys for each of them would take minutes.
    keys = b",".join(b'"%d":0' % n for n in (*range(100_000), 99_999))
    with pytest.raises(DecodeError, match="has the key '99999' twice"):
        value_of(b"{" + keys + b"}")


@pytest.mark.parametrize("body", [b'{"value":1} x', b"{}{}", b"", b" ", b"\xef\xbb\xbf{}", "{}".encode("utf-16")])
def test_anything_but_one_json_value_is_refused(body: bytes) -> None:
    with pytest.raises(DecodeError, match=r"is not JSON|is not UTF-8"):
        CODEC.decode_outside("Open", 1, body)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b'"\\ud83c\\udf89"', "🎉"),
        (b'"\\\\u0000"', "\\u0000"),
        (b'"[[[{{{"', "[[[{{{"),
        (b"9223372036854775807", 2**63 - 1),
        (b"-9223372036854775808", -(2**63)),
        (b"1e308", 1e308),
        (b' [ 1 , "\\n" ] ', [1, "\n"]),
    ],
)
def test_an_unusual_but_sound_body_is_read(text: bytes, value: object) -> None:
    assert value_of(text) == value


def test_the_deepest_permitted_nesting_is_read() -> None:
    levels = NESTING_LEVELS - 1

    assert value_of(b"[" * levels + b"]" * levels) != []


def test_a_body_over_the_limit_is_refused_unread() -> None:
    with pytest.raises(BodyTooLargeError, match="Card: a body has 2,097,153 bytes"):
        CODEC.decode_outside("Card", 1, b"x" * (BODY_LIMIT_BYTES + 1))


def test_a_body_of_the_limit_is_read() -> None:
    body = body_of(Card("1"))
    codec = Codec(limit_bytes=len(body))
    codec.register(Card)

    assert codec.decode_outside("Card", 1, body) == Card("1")


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b'{"at":"2026-01-01T00:00:00","price":"1"}', "at must be a datetime with a time zone"),
        (b'{"at":"2026-01-01T00:00:00Z","price":"NaN"}', "price must be a finite Decimal"),
        (b'{"at":"2026-01-01T00:00:00Z"}', "Object missing required field `price`"),
        (b'{"at":1,"price":"1"}', "Expected `datetime`, got `int`"),
    ],
)
def test_what_could_not_be_stored_again_is_refused(body: bytes, problem: str) -> None:
    with pytest.raises(DecodeError, match=f"Booking: .*{problem}"):
        CODEC.decode_outside("Booking", 1, body)


def test_a_sound_body_is_read() -> None:
    assert CODEC.decode_outside("Order", 1, body_of(ORDER)) == ORDER


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"{", "the body does not fit: Input data was truncated"),
        (b'{"number":1}', "Expected `str`, got `int`"),
        (b'{"number":"1"} x', "trailing characters"),
        (b'{"number":"\xff"}', "is not UTF-8"),
        (b'{"a":' + b"[" * 100_000, "nests deeper than 64 levels"),
        (b'{"number":' + b"1" * 5000 + b"}", "the body does not fit"),
        (b'{"number":1e400}', "the body does not fit"),
    ],
)
@pytest.mark.parametrize("name", ["Card", "Payment"])
def test_stored_bytes_that_were_tampered_with_are_refused(name: str, body: bytes, problem: str) -> None:
    if name == "Payment":
        body = b'{"method":' + body.replace(b"{", b'{"$type":"Card",', 1) + b"}"
        problem = problem if "UTF-8" in problem or "64" in problem else "the body does not fit"

    with pytest.raises(DecodeError, match=problem):
        CODEC.decode(name, 1, body)


@settings(max_examples=500, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [b"{", b"}", b"[", b"]", b'"', b"\\", b",", b":", b"1", b"e", b"-", b".", b"null", b"$type", b"\\u0000"]
        )
        | st.binary(max_size=2),
        max_size=30,
    ),
    st.sampled_from(["Open", "Order", "Booking", "Card", "Payment"]),
)
def test_no_bytes_raise_anything_but_a_codec_error(pieces: list[bytes], name: str) -> None:
    for body in (b"".join(pieces), b'{"method":{"$type":"Card","number":' + b"".join(pieces)):
        for decode in (CODEC.decode, CODEC.decode_outside):
            try:
                value = decode(name, 1, body)
            except CodecError:
                continue
            assert type(value).__name__ == name


@settings(max_examples=300, deadline=None)
@given(st.text())
def test_a_nul_is_seen_exactly_where_there_is_one(text: str) -> None:
    body = CODEC.encode(Card(text.replace("\0", "").encode(errors="ignore").decode())).body

    assert not holds_nul(body)
    assert holds_nul(body.replace(b':"', b':"\\u0000', 1))


def test_brackets_in_texts_do_not_count_as_nesting() -> None:
    assert nesting_of(b'{"[[[":"\\"[[["}') == 1
    assert nesting_of(b'"[[[') == 0


def test_what_was_closed_nests_no_more() -> None:
    assert nesting_of(b"[[],[],[]]") == nesting_of(b"[{},{},{}]") == 2
    assert nesting_of(b"[[],[],[]]", limit=2) == 2
    assert nesting_of(b"[[],[[]]]") == 3
    assert nesting_of(b"[" * 9, limit=2) > 2


@settings(max_examples=300, deadline=None)
@given(
    st.recursive(
        st.text('[]{}"\\', max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("[{", max_size=2), inner, max_size=3),
    )
)
def test_nesting_is_counted_as_whoever_walks_through_it_would(value: Any) -> None:
    def walked(part: Any) -> int:
        inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else None
        return 0 if inner is None else 1 + max(map(walked, inner), default=0)

    assert nesting_of(json.dumps(value).encode()) == walked(value)


def test_a_flood_of_brackets_is_told_from_deep_nesting_and_costs_no_steps_of_python() -> None:
    """Each line of Python counts, not the seconds, which depend on who else is at work."""
    flat, deep = b"[" + b",".join([b"[{}]"] * 400_000) + b"]", b"[[]" * 500_000 + b"]" * 500_000
    lines = 0

    def count(*_: object) -> Any:
        nonlocal lines
        lines += 1
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        depths = nesting_of(flat), nesting_of(deep)
    finally:
        sys.settrace(before)
    assert depths == (3, NESTING_LEVELS + 1)
    assert lines < 1_000
