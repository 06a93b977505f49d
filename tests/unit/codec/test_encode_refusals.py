"""What would not come back is refused when it is written, with the place and the fix."""

from __future__ import annotations

import logging
from collections import UserDict
from collections.abc import Callable
from dataclasses import dataclass, make_dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Meta

from mainspring.codec import BODY_LIMIT_BYTES, STATE_LIMIT_BYTES, Codec
from mainspring.codec.checks import compile_check, find_fault
from mainspring.codec.compiler import compile_type
from mainspring.codec.leaves import is_native
from mainspring.codec.limits import NESTING_LEVELS
from mainspring.core.decisions import Decisions
from mainspring.core.events import Event
from mainspring.core.workflow import Workflow
from mainspring.errors import BodyTooLargeError, EncodeError, UnknownTypeError
from tests.unit.codec.shop import (
    ORDER,
    Address,
    Branch,
    Card,
    Chain,
    Colour,
    ForeignAddress,
    Invoice,
    Line,
    Order,
    Payment,
    Point,
    Size,
    body_of,
    codec_for,
)

LOCAL_MEAN_TIME = datetime(1880, 1, 1, tzinfo=ZoneInfo("Europe/Berlin"))


def one_field(hint: Any) -> Callable[[Any], Any]:
    return make_dataclass("Message", [("value", hint)], frozen=True)


class Broken(tzinfo):
    def utcoffset(self, dt: datetime | None) -> timedelta:
        raise RuntimeError("out of order")


class Text(str):
    __slots__ = ()


@pytest.mark.parametrize(
    ("hint", "value", "expected"),
    [
        (str, 1, "value must be a str and is int 1"),
        (str, None, "value must be a str and is NoneType None"),
        (str, Text("a"), "value must be a str and is Text 'a'"),
        (int, "1", "value must be an int of at most 64 bits and is str '1'"),
        (int, 1.0, "value must be an int of at most 64 bits"),
        (int, True, "value must be an int of at most 64 bits and is bool True"),
        (int, 2**63, "value must be an int of at most 64 bits"),
        (int, -(2**63) - 1, "value must be an int of at most 64 bits"),
        (int, Size.SMALL, "value must be an int of at most 64 bits and is Size"),
        (float, 1, "value must be a finite float and is int 1"),
        (float, float("nan"), "value must be a finite float and is float nan"),
        (float, float("-inf"), "value must be a finite float and is float -inf"),
        (bool, 1, "value must be a bool and is int 1"),
        (None, 0, "value must be None and is int 0"),
        (bytes, bytearray(b"a"), "value must be bytes and is bytearray"),
        (Decimal, Decimal("NaN"), "value must be a finite Decimal"),
        (Decimal, Decimal("Infinity"), "value must be a finite Decimal"),
        (Decimal, 1.5, "value must be a finite Decimal and is float 1.5"),
        (UUID, str(UUID(int=1)), "value must be a UUID and is str"),
        (datetime, datetime(2026, 1, 1), "value must be a datetime with a time zone"),  # noqa: DTZ001  the naive one
        (datetime, LOCAL_MEAN_TIME, "its offset in whole minutes"),
        (datetime, datetime(2026, 1, 1, tzinfo=Broken()), r"cannot be written: RuntimeError\('out of order'\)"),
        (datetime, date(2026, 1, 1), "value must be a datetime with a time zone"),
        (date, datetime(2026, 1, 1, tzinfo=UTC), "value must be a date and is datetime"),
        (time, time(8, tzinfo=ZoneInfo("Europe/Berlin")), "value must be a time without a zone or with a fixed offset"),
        (time, time(8, tzinfo=timezone(timedelta(seconds=30))), "value must be a time without a zone"),
        (timedelta, 5, "value must be a timedelta and is int 5"),
        (Colour, "red", "value must be a Colour and is str 'red'"),
        (Literal["a", "b"], "c", "value must be one of 'a', 'b' and is str 'c'"),
        (Literal[1], True, "value must be one of 1 and is bool True"),
        (int | None, "1", "value must be an int of at most 64 bits or None and is str '1'"),
        (list[int], (1, 2), r"value must be a list and is tuple \(1, 2\)"),
        (list[int], [1, "2"], r"value\[1\] must be an int of at most 64 bits and is str '2'"),
        (tuple[int, ...], [1], "value must be a tuple and is list"),
        (tuple[int, str], (1,), r"value must be a tuple of 2 and is tuple \(1,\)"),
        (tuple[int, str], (1, 2), r"value\[1\] must be a str"),
        (tuple[int, int], Point(1, 2), "value must be a tuple of 2 and is Point"),
        (Point, (1, 2), "value must be a Point of 2 and is tuple"),
        (set[int], frozenset({1}), "value must be a set and is frozenset"),
        (frozenset[int], frozenset({"a"}), r"value\[0\] must be an int"),
        (dict[str, int], UserDict({"a": 1}), "value must be a dict and is UserDict"),
        (dict[str, int], {1: 1}, "value's key 1 must be a str and is int 1"),
        (dict[str, int], {"a": "b"}, r"value\['a'\] must be an int"),
        (dict[int, int], {"1": 1}, "value's key '1' must be an int"),
        (Any, (1, 2), r"value must be a JSON value .* and is tuple \(1, 2\)"),
        (Any, {"a": float("nan")}, "value must be a JSON value"),
        (Any, [2**64], "value must be a JSON value"),
        (Any, {1: 2}, "value must be a JSON value"),
        (Any, Decimal(1), "value must be a JSON value"),
        (Any, Size.SMALL, "value must be a JSON value"),
        (Card | Any, Card("1"), "value must be a JSON value .* and is Card"),
        (Address, ForeignAddress("Oslo", "1", "NO"), "value must be an Address and is ForeignAddress"),
        (Card | Invoice, Address("a", "b"), "value must be a Card or an Invoice and is Address"),
        (Card | Invoice, Card(1), r"value.number must be a str and is int 1"),  # pyright: ignore[reportArgumentType]  the wrong one
        (Annotated[int, Meta(ge=1)], 0, "could not be read back: .*Expected `int` >= 1"),
        (Annotated[int, "a note", Meta(ge=1)], 0, "could not be read back: .*Expected `int` >= 1"),
    ],
)
def test_a_value_that_would_not_come_back_is_refused(hint: Any, value: object, expected: str) -> None:
    with pytest.raises(EncodeError, match=expected):
        body_of(one_field(hint)(value))


@pytest.mark.parametrize("hint", [int, Any])
def test_an_integer_too_long_to_be_shown_is_refused(hint: Any) -> None:
    with pytest.raises(EncodeError, match=r"value must be an? .* and is int <int that cannot be shown>"):
        body_of(one_field(hint)(10**5000))


def test_the_error_tells_the_place_and_the_fix() -> None:
    order = Order("o-1", "c-1", "EUR", (Line("a", 1, 1), Line("b", "2", 1)), ORDER.address, "")  # pyright: ignore[reportArgumentType]  the wrong one

    with pytest.raises(EncodeError) as caught:
        body_of(order)

    assert str(caught.value) == (
        "Order: lines[1].qty must be an int of at most 64 bits and is str '2'. "
        "Convert it with int(…); keep larger ones in a str or Decimal field."
    )


@pytest.mark.parametrize(
    ("hint", "fix"),
    [
        (Any, "Give the field a precise type, or convert the value."),
        (Card | Invoice, "Pass one of these."),
    ],
)
def test_a_value_of_too_wide_a_choice_is_told_with_the_fix(hint: Any, fix: str) -> None:
    with pytest.raises(EncodeError) as caught:
        body_of(one_field(hint)((1, 2)))

    assert caught.value.fix == fix


def test_a_wrong_value_deep_inside_a_union_is_found() -> None:
    payment = Payment(Card("1"), by_name={"a": (Invoice(b"1"), 1)})  # pyright: ignore[reportArgumentType]  the wrong one

    with pytest.raises(EncodeError, match=r"Payment: by_name\['a'\]\[0\].number must be a str and is bytes b'1'"):
        body_of(payment)


@pytest.mark.parametrize("hint", [str, Any, list[str], dict[str, int], set[str]])
def test_half_a_character_is_refused(hint: Any) -> None:
    half = "\ud800"
    value = {list[str]: [half], dict[str, int]: {half: 1}, set[str]: {half}}.get(hint, half)

    with pytest.raises(EncodeError, match="half a character"):
        body_of(one_field(hint)(value))


@pytest.mark.parametrize(
    "value", ["a\0b", "\\\0", "\\\\\0", "written out \\u0000 and \0"], ids=["bare", "escaped", "twice", "both"]
)
def test_a_nul_character_is_refused(value: str) -> None:
    with pytest.raises(EncodeError, match="NUL"):
        body_of(one_field(str)(value))


def test_a_nul_character_in_a_key_is_refused() -> None:
    with pytest.raises(EncodeError, match="NUL"):
        body_of(one_field(dict[str, int])({"\0": 1}))


def chain(length: int) -> Chain:
    found = Chain()
    for _ in range(length - 1):
        found = Chain(found)
    return found


def test_the_deepest_permitted_nesting_is_written() -> None:
    assert body_of(chain(NESTING_LEVELS)).count(b"{") == NESTING_LEVELS


@pytest.mark.parametrize("length", [NESTING_LEVELS + 1, 500, 100_000])
def test_deeper_nesting_is_refused(length: int) -> None:
    with pytest.raises(EncodeError, match="nests deeper than 64 levels"):
        body_of(chain(length))


@pytest.mark.parametrize("levels", [NESTING_LEVELS, 100_000])
def test_deeper_nesting_of_anything_is_refused(levels: int) -> None:
    value: Any = []
    for _ in range(levels):
        value = [value]

    with pytest.raises(EncodeError, match="64 levels"):
        body_of(one_field(Any)(value))


@pytest.mark.parametrize("wrap", [lambda value: [value], lambda value: {"a": value}], ids=["lists", "dicts"])
def test_anything_may_nest_as_deep_as_a_body_from_outside(wrap: Callable[[Any], Any]) -> None:
    value: Any = 1
    for _ in range(NESTING_LEVELS - 1):
        value = wrap(value)

    # The record around them is the last level.
    assert body_of(one_field(Any)(value)).count(b"1") == 1
    with pytest.raises(EncodeError, match="64 levels"):
        body_of(one_field(Any)(wrap(value)))
    assert is_native(wrap(value))
    assert not is_native(wrap(wrap(value)))


def test_deeper_nesting_of_anything_is_refused_before_another_field() -> None:
    cls = make_dataclass("Message", [("value", Any), ("number", int)], frozen=True)
    value: Any = 1
    for _ in range(NESTING_LEVELS):
        value = [value]

    with pytest.raises(EncodeError, match="64 levels"):
        body_of(cls(value, 1))


@pytest.mark.parametrize(("cls", "bounded"), [(Order, True), (int, True), (Chain, False), (Branch, False)])
def test_only_what_can_nest_without_end_has_its_levels_counted(cls: type[Any], bounded: bool) -> None:
    assert compile_type(cls).bounded is bounded


def test_a_value_that_nests_without_end_is_told_with_the_fix() -> None:
    assert find_fault(compile_type(Chain).shape, chain(100_000)) == (
        "nests deeper than 64 levels",
        "Keep references by id instead of whole objects.",
    )


def test_a_value_without_a_place_is_called_the_value() -> None:
    with pytest.raises(EncodeError, match=r"^int: the value must be an int of at most 64 bits and is int 18446744073"):
        body_of(2**64)


def test_a_list_that_holds_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)

    with pytest.raises(EncodeError, match="64 levels"):
        body_of(one_field(Any)(value))


def test_an_object_without_its_fields_is_refused() -> None:
    with pytest.raises(EncodeError, match=r"lacks a field.*'city'"):
        body_of(object.__new__(Address))


def test_a_type_that_nobody_registered_is_refused() -> None:
    with pytest.raises(UnknownTypeError, match=r"tests.unit.codec.shop.Card is not registered. Add it to the type"):
        Codec().encode(Card("1"))


def test_a_subclass_of_a_registered_type_is_refused() -> None:
    with pytest.raises(UnknownTypeError, match="ForeignAddress is not registered"):
        codec_for(Address).encode(ForeignAddress("Oslo", "1", "NO"))


def test_a_body_of_the_limit_is_written_and_one_more_byte_is_refused() -> None:
    codec = codec_for(Card)
    frame = len(codec.encode(Card("")).body)

    assert len(codec.encode(Card("x" * (BODY_LIMIT_BYTES - frame))).body) == BODY_LIMIT_BYTES
    with pytest.raises(BodyTooLargeError, match="a body has 2,097,153 bytes; the limit is 2,097,152"):
        codec.encode(Card("x" * (BODY_LIMIT_BYTES - frame + 1)))


def test_a_large_body_is_logged_once_for_its_type(caplog: pytest.LogCaptureFixture) -> None:
    codec = codec_for(Card, Invoice)
    with caplog.at_level(logging.WARNING, "mainspring.codec"):
        codec.encode(Card("x" * (BODY_LIMIT_BYTES // 4 - 20)))
        assert caplog.messages == []
        for _ in range(2):
            codec.encode(Card("x" * (BODY_LIMIT_BYTES // 4)))
        codec.encode(Invoice("x" * (BODY_LIMIT_BYTES // 4)))

    assert [text.partition(":")[0] for text in caplog.messages] == ["Card", "Invoice"]
    assert {record.name for record in caplog.records} == {"mainspring.codec"}


def test_a_body_of_a_quarter_of_the_limit_is_logged_with_both_sizes(caplog: pytest.LogCaptureFixture) -> None:
    card = Card("x" * 1_000)
    size = len(body_of(card))
    codec = Codec(limit_bytes=4 * size)
    codec.register(Card)
    with caplog.at_level(logging.WARNING, "mainspring.codec"):
        codec.encode(card)

    (told,) = caplog.messages
    assert told.startswith(f"Card: a body has {size:,} bytes; the limit is {4 * size:,}. Keep large data elsewhere")


class Payments(Workflow[Card, Invoice, Card]):
    initial_state = Invoice("")

    def route(self, message: Card) -> str | None:
        return message.number

    def decide(self, message: Card, state: Invoice) -> Decisions[Card, Card] | None:
        return []

    def evolve(self, state: Invoice, event: Event[Card, Card]) -> Invoice | None:
        return None


def test_a_state_may_be_larger_than_a_message() -> None:
    codec = Codec()
    codec.register_workflow(Payments)

    assert codec.states(Payments).encode(Invoice("x" * BODY_LIMIT_BYTES)).name == "Invoice"
    with pytest.raises(BodyTooLargeError, match="8,388,608"):
        codec.states(Payments).encode(Invoice("x" * STATE_LIMIT_BYTES))


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=3)
    | st.binary(max_size=3)
    | st.builds(Card, st.text(max_size=3) | st.none())
    | st.builds(Invoice, st.integers() | st.text(max_size=3)),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3)
    ),
    max_leaves=5,
)


firsts = st.lists(st.integers(0, 9) | st.builds(Card, st.text(max_size=3)) | st.builds(Invoice, st.text(max_size=3)))
seconds = st.tuples(st.lists(st.text(max_size=3), max_size=2), st.binary(max_size=3)) | st.integers(0, 9)


@dataclass(frozen=True)
class Loose:
    one: list[Card | Invoice | int] | dict[str, int | float] | str | None
    two: tuple[Any, bytes] | int | Card


LOOSE = compile_type(Loose).shape
CHECK = compile_check(LOOSE)
CODEC = codec_for(Loose)


@settings(max_examples=300, deadline=None)
@given(anything | firsts, anything | seconds)
def test_the_compiled_check_and_the_search_for_the_fault_agree(one: Any, two: Any) -> None:
    value = Loose(one, two)
    found = find_fault(LOOSE, value)

    assert CHECK(value) == found[0].startswith("nests deeper")


@settings(max_examples=300, deadline=None)
@given(anything | firsts, anything | seconds)
def test_whatever_is_in_the_fields_comes_back_or_is_refused(one: Any, two: Any) -> None:
    value = Loose(one, two)
    try:
        encoded = CODEC.encode(value)
    except EncodeError:
        return
    again = CODEC.decode(encoded.name, encoded.version, encoded.body)

    assert repr(again) == repr(value)
