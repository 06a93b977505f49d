"""What is written comes back: every supported type, and all of them together."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import typing
from collections.abc import Callable
from dataclasses import dataclass, fields, make_dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Final, Generic, Literal, NewType, TypeVar
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Meta, Struct

from mainspring.codec import Encoded
from mainspring.codec.limits import INTEGER_MAX, INTEGER_MIN
from tests.unit.codec.shop import (
    ORDER,
    Box,
    Boxes,
    Branch,
    Card,
    Colour,
    Everything,
    Invoice,
    Leaf,
    Line,
    Order,
    OrderId,
    Payment,
    Point,
    Shelf,
    Size,
    Speed,
    Tree,
    Voucher,
    body_of,
    codec_for,
    round_trip,
)

Left = Literal["left"]
Right = Literal["right"]
Middle = NewType("Middle", Literal["middle"])  # pyright: ignore[reportGeneralTypeIssues]  it works at run time
T = TypeVar("T")
PLUS_TWO = timezone(timedelta(hours=2))


class Extreme(Enum):
    LOWEST = -(2**63)
    HIGHEST = 2**63 - 1


def one_field(hint: Any) -> Callable[[Any], Any]:
    return make_dataclass("Message", [("value", hint)], frozen=True)


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (str, 'quotes " and \\ and \\u0000 written out, ünï 🎉'),
        (int, INTEGER_MAX),
        (int, INTEGER_MIN),
        (float, 0.1),
        (float, 1.7976931348623157e308),
        (float, 5e-324),
        (bool, True),
        (None, None),
        (bytes, b"\x00\xff"),
        (Decimal, Decimal("1.10")),
        (Decimal, Decimal("1E+400")),
        (UUID, UUID(int=7)),
        (datetime, datetime(2026, 1, 1, 12, 30, 1, 999999, tzinfo=UTC)),
        (datetime, datetime(1, 1, 1, tzinfo=PLUS_TWO)),
        (datetime, datetime(2026, 7, 1, 12, tzinfo=ZoneInfo("Europe/Berlin"))),
        (date, date(2024, 2, 29)),
        (time, time(8, 30, 0, 1)),
        (time, time(8, 30, tzinfo=PLUS_TWO)),
        (timedelta, timedelta.max),
        (timedelta, timedelta.min),
        (timedelta, timedelta(microseconds=-1)),
        (Colour, Colour.RED),
        (Size, Size.LARGE),
        (Speed, Speed.FAST),
        (Extreme, Extreme.LOWEST),
        (Extreme, Extreme.HIGHEST),
        (Literal["a", 1] | None, 1),
        (Literal["a", None], None),  # noqa: PYI061  both spellings are read
        (datetime, datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=5, minutes=31)))),
        (Left | Right | int, "right"),
        (Middle | Right | int, "middle"),
        (OrderId, OrderId("o-1")),
        (Annotated[int, "a note"], 3),
        (Annotated[int, Meta(ge=1)], 3),
        (int | None, None),
        (int | str | list[int], [1]),
        (int | float, 1.0),
        (int | float, 1),
        (float | Decimal, Decimal("1.5")),
        (list[int], [3, 1, 2]),
        (list[list[int]], [[1], []]),
        (list, [1, "a", None]),
        (tuple[int, str], (1, "a")),
        (tuple[()], ()),
        (tuple[int, ...], (1, 2, 3)),
        (tuple, (1, "a")),
        (typing.Tuple, (1, "a")),  # noqa: UP006  the old spelling
        (typing.List[int], [1]),  # noqa: UP006  the old spelling
        (Final[int], 1),
        (Point, Point(1, 2)),
        (list[Point], [Point(1)]),
        (set[str], {"b", "a"}),
        (frozenset[tuple[int, str]], frozenset({(1, "a"), (2, "b")})),
        (frozenset[tuple[int, ...]], frozenset({(1, 2), ()})),
        (frozenset[frozenset[int]], frozenset({frozenset({1, 2}), frozenset({3})})),
        (dict, {"a": [1]}),
        (dict[str, list[int]], {"b": [1], "a": []}),
        (dict[int, str], {2: "b", -1: "a"}),
        (dict[float, str], {1.5: "a", 2.0: "b"}),
        (dict[Colour, int], {Colour.GREEN: 1, Colour.RED: 2}),
        (dict[Size, int], {Size.LARGE: 1}),
        (dict[Speed, int], {Speed.FAST: 1}),
        (dict[UUID, int], {UUID(int=1): 1}),
        (dict[date, int], {date(2026, 1, 1): 1}),
        (dict[datetime, int], {datetime(2026, 1, 1, tzinfo=PLUS_TWO): 1}),
        (dict[time, int], {time(8): 1}),
        (dict[timedelta, int], {timedelta(hours=1): 1}),
        (dict[Decimal, int], {Decimal("1.5"): 1}),
        (dict[bytes, int], {b"\x00": 1}),
        (dict[Literal["a", "b"], int], {"b": 1}),
        (dict[Literal[1, 2], int], {2: 1}),
        (dict[OrderId, int], {OrderId("o-1"): 1}),
        (Any, {"a": [1, 1.5, None, True, "x", {}]}),
        (Any | None, [1]),
        (Box[int], Box(1)),
        (Box[Card | Invoice], Box(Invoice("1"))),
        (Voucher, Voucher("v")),
    ],
)
def test_a_value_of_a_supported_type_comes_back(hint: Any, value: object) -> None:
    message = one_field(hint)(value)

    again: Any = round_trip(message)

    assert again == message
    assert type(again.value) is type(value)


def test_an_order_comes_back_from_bytes_without_its_name() -> None:
    encoded = codec_for(Order).encode(ORDER)

    assert encoded == Encoded("Order", 1, encoded.body)
    assert encoded.body.startswith(b'{"id":"o-123456","customer":')
    assert codec_for(Order).decode("Order", 1, encoded.body) == ORDER


def test_the_offset_of_a_datetime_is_kept_in_the_hour_that_a_clock_change_repeats() -> None:
    first, second = (datetime(2025, 10, 26, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=fold) for fold in (0, 1))

    again: Any = round_trip(one_field(list[datetime])([first, second]))

    assert [moment.utcoffset() for moment in again.value] == [timedelta(hours=2), timedelta(hours=1)]


def test_generic_classes_are_read_with_the_parameters_of_their_own_level() -> None:
    shelf = Shelf(Box(1), Boxes(["a", "b"], "a"))

    assert round_trip(shelf) == shelf


def test_a_generic_field_that_a_subclass_declares_anew_is_read_as_the_subclass_has_it() -> None:
    @dataclass(frozen=True)
    class Single(Box[list[T]], Generic[T]):
        content: T  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues]  another type than above

    message = one_field(Single[int])(Single(1))

    assert round_trip(message) == message


def test_a_subclass_of_a_subclass_that_gave_the_parameters_comes_back() -> None:
    @dataclass(frozen=True)
    class Numbers(Box[int]):
        pass

    @dataclass(frozen=True)
    class NamedNumbers(Numbers):
        name: str

    assert round_trip(NamedNumbers(1, "a")) == NamedNumbers(1, "a")


def test_the_order_of_a_dict_is_kept() -> None:
    again: Any = round_trip(one_field(dict[str, int])({"b": 1, "a": 2, "c": 3}))

    assert list(again.value) == ["b", "a", "c"]


def test_a_set_is_written_in_a_fixed_order() -> None:
    assert body_of(one_field(set[int])({30, 4, 100})) == b'{"value":[4,30,100]}'
    assert body_of(one_field(frozenset[str])(frozenset({"b", "a", "ä"}))) == '{"value":["a","b","ä"]}'.encode()
    assert body_of(one_field(set[str])({"a b", "a"})) == b'{"value":["a","a b"]}'


def test_a_set_of_neither_integers_nor_texts_is_written_in_the_order_of_its_json() -> None:
    amounts = {Decimal(9), Decimal(10), Decimal(100)}

    assert body_of(one_field(set[Decimal])(amounts)) == b'{"value":["10","100","9"]}'


def test_the_bytes_of_a_set_do_not_depend_on_the_process() -> None:
    program = (
        "from tests.unit.codec.shop import body_of, Card, Invoice, Payment;"
        "names = [str(n) for n in range(20)];"
        "members = frozenset([Card(n) for n in names] + [Invoice(n) for n in names]);"
        "print(body_of(Payment(Card('1'), known=members)))"
    )
    bodies = {
        subprocess.run(  # noqa: S603  our own program
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("1", "2")
    }

    assert len(bodies) == 1


def test_a_set_of_records_with_sets_in_them_comes_back() -> None:
    class Group(Struct, frozen=True):
        members: frozenset[str]

    groups = frozenset({Group(frozenset({"a", "b"})), Group(frozenset({"c"}))})
    message = one_field(frozenset[Group])(groups)

    assert body_of(message) == b'{"value":[{"members":["a","b"]},{"members":["c"]}]}'
    assert round_trip(message) == message


def test_a_struct_with_renamed_and_omitted_fields_comes_back() -> None:
    class Rename(Struct, frozen=True, rename="camel", omit_defaults=True, tag="renamed"):
        first_name: str
        last_name: str = "?"
        roles: frozenset[str] = frozenset()

    value = Rename("ann", roles=frozenset({"b", "a"}))

    assert body_of(value) == b'{"type":"renamed","firstName":"ann","lastName":"?","roles":["a","b"]}'
    assert round_trip(value) == value


def test_a_struct_leaves_its_defaults_out_beside_a_union_too() -> None:
    class Brief(Struct, frozen=True, omit_defaults=True):
        number: int = 0

    cls = make_dataclass("Message", [("brief", Brief), ("method", Card | Invoice)], frozen=True)

    assert body_of(cls(Brief(), Card("1"))) == b'{"brief":{},"method":{"$type":"Card","number":"1"}}'


class Row(Struct, frozen=True, array_like=True):
    id: int
    name: str


def test_a_struct_as_an_array_comes_back() -> None:
    assert round_trip(Row(1, "a")) == Row(1, "a")


@pytest.mark.parametrize("value", [Row(1, "a"), {"a": Card("1")}], ids=["array", "dict"])
def test_a_struct_as_an_array_is_told_apart_from_an_object(value: Any) -> None:
    message = one_field(Row | dict[str, Card | Invoice])(value)

    assert round_trip(message) == message


def test_a_class_that_computes_a_field_comes_back_when_it_computes_the_same_again() -> None:
    @dataclass(frozen=True)
    class Total:
        parts: tuple[int, ...]

        def __post_init__(self) -> None:
            object.__setattr__(self, "parts", tuple(sorted(self.parts)))

    assert round_trip(Total((3, 1))) == Total((1, 3))


@pytest.mark.parametrize("value", [Colour.RED, Size.LARGE, 3, "text", 1.5, b"\x00"])
def test_a_state_need_not_be_a_record(value: object) -> None:
    assert round_trip(value) == value


# Everything at once.

texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
integers = st.integers(INTEGER_MIN, INTEGER_MAX)
floats = st.floats(allow_nan=False, allow_infinity=False)
decimals = st.decimals(allow_nan=False, allow_infinity=False)
offsets = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
moments = st.datetimes(timezones=offsets | st.just(UTC))
cards = texts.map(Card)
methods: st.SearchStrategy[Card | Invoice] = cards | texts.map(Invoice)
lines = st.builds(Line, texts, integers, integers)
trees: st.SearchStrategy[Tree] = st.recursive(
    integers.map(Leaf), lambda inner: st.builds(Branch, inner, inner), max_leaves=4
)
natives: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | integers | floats | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
payments = st.builds(
    Payment,
    methods,
    st.none() | methods,
    st.lists(methods | texts.map(Voucher), max_size=3),
    st.dictionaries(texts, st.tuples(methods, integers), max_size=2),
    st.frozensets(methods, max_size=3),
    st.none() | methods | texts | st.lists(integers, max_size=2),
)
parts: dict[str, st.SearchStrategy[Any]] = {
    "text": texts,
    "whole": integers,
    "real": floats,
    "flag": st.booleans(),
    "nothing": st.none(),
    "raw": st.binary(max_size=4),
    "money": decimals,
    "key": st.uuids(),
    "moment": moments,
    "day": st.dates(),
    "hour": st.times(),
    "span": st.timedeltas(),
    "colour": st.sampled_from(Colour),
    "size": st.sampled_from(Size),
    "speed": st.sampled_from(Speed),
    "grade": st.sampled_from(["a", "b", 3]),
    "order": texts.map(OrderId),
    "maybe": st.none() | integers,
    "either": st.none() | integers | texts,
    "number": integers | floats,
    "items": st.lists(texts, max_size=3),
    "pair": st.tuples(integers, texts),
    "many": st.lists(decimals, max_size=2).map(tuple),
    "point": st.builds(Point, integers, integers),
    "words": st.sets(texts, max_size=3),
    "numbers": st.frozensets(integers, max_size=3),
    "amounts": st.frozensets(decimals, max_size=3),
    "lines": st.frozensets(lines, max_size=2),
    "by_text": st.dictionaries(texts, integers, max_size=2),
    "by_number": st.dictionaries(integers, texts, max_size=2),
    "by_colour": st.dictionaries(st.sampled_from(Colour), integers, max_size=2),
    "by_size": st.dictionaries(st.sampled_from(Size), integers, max_size=2),
    "by_key": st.dictionaries(st.uuids(), moments, max_size=2),
    "by_day": st.dictionaries(st.dates(), decimals, max_size=2),
    "by_moment": st.dictionaries(moments, methods, max_size=2),
    "anything": natives,
    "payment": payments,
    "tree": trees,
}
plain = Everything(
    text="",
    whole=0,
    real=0.0,
    flag=False,
    nothing=None,
    raw=b"",
    money=Decimal(0),
    key=UUID(int=0),
    moment=datetime(2026, 1, 1, tzinfo=UTC),
    day=date(2026, 1, 1),
    hour=time(0),
    span=timedelta(0),
    colour=Colour.RED,
    size=Size.SMALL,
    speed=Speed.SLOW,
    grade="a",
    order=OrderId(""),
    maybe=None,
    either=None,
    number=0,
    items=[],
    pair=(0, ""),
    many=(),
    point=Point(0),
    words=set(),
    numbers=frozenset(),
    amounts=frozenset(),
    lines=frozenset(),
    by_text={},
    by_number={},
    by_colour={},
    by_size={},
    by_key={},
    by_day={},
    by_moment={},
    anything=None,
    payment=Payment(Card("")),
    tree=Leaf(0),
)
# A few parts at a time: to draw all of them for every example takes ten times as long and finds no more.
named = st.one_of([st.tuples(st.just(name), values) for name, values in parts.items()])
everything = st.lists(named, min_size=1, max_size=2).map(lambda drawn: replace(plain, **dict(drawn)))
EVERYTHING = codec_for(Everything)


@settings(max_examples=600, deadline=None)
@given(everything)
def test_everything_together_comes_back_and_is_written_the_same_again(value: Everything) -> None:
    encoded = EVERYTHING.encode(value)

    again: Everything = EVERYTHING.decode_outside(encoded.name, encoded.version, encoded.body)

    assert again == value
    assert all(type(getattr(again, f.name)) is type(getattr(value, f.name)) for f in fields(Everything))
    assert EVERYTHING.encode(again) == encoded


@settings(max_examples=300, deadline=None)
@given(st.lists(payments, max_size=3), trees)
def test_unions_within_containers_come_back(history: list[Payment], tree: Tree) -> None:
    value = History(history, tree)

    encoded = HISTORY.encode(value)

    assert HISTORY.decode(encoded.name, encoded.version, encoded.body) == value


@dataclass(frozen=True)
class History:
    payments: list[Payment]
    tree: Tree


HISTORY = codec_for(History)


@settings(max_examples=300, deadline=None)
@given(st.floats())
def test_a_float_comes_back_exactly_or_is_refused(value: float) -> None:
    if math.isfinite(value):
        again: Any = round_trip(Measured(value))
        assert math.copysign(1, again.value) == math.copysign(1, value)
        assert again.value == value
    else:
        with pytest.raises(Exception, match="must be a finite float"):
            body_of(Measured(value))


Measured = one_field(float)
