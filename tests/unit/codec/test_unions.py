"""A union of classes is told apart by names in the bytes, never by guessing."""

from __future__ import annotations

from dataclasses import dataclass, field, make_dataclass
from typing import Any, Literal, NamedTuple

import pytest
from msgspec import Struct, json

from mainspring.core.messages import message
from mainspring.errors import DecodeError
from tests.unit.codec.shop import (
    Address,
    Branch,
    Card,
    Chain,
    Invoice,
    Leaf,
    Payment,
    Tree,
    Voucher,
    body_of,
    codec_for,
    round_trip,
)


def test_members_of_the_same_shape_are_tagged_with_their_names() -> None:
    assert json.decode(body_of(Payment(Invoice("1"), tried=[Card("2"), Voucher("3")], mixed="text"))) == {
        "method": {"$type": "Invoice", "number": "1"},
        "fallback": None,
        "tried": [{"$type": "Card", "number": "2"}, {"$type": "Voucher", "number": "3"}],
        "by_name": {},
        "known": [],
        "mixed": "text",
    }


@pytest.mark.parametrize("mixed", [Card("1"), Invoice("1"), "1", [1], None])
def test_a_union_of_classes_and_other_values_comes_back(mixed: Any) -> None:
    payment = Payment(Card("1"), mixed=mixed)

    assert round_trip(payment) == payment


def test_a_single_class_in_a_union_is_not_tagged() -> None:
    assert body_of(Chain(Chain())) == b'{"next":{"next":null}}'


def test_a_recursive_union_comes_back() -> None:
    tree = Branch(Branch(Leaf(1), Leaf(2)), Leaf(3))

    assert round_trip(tree) == tree
    assert body_of(tree).count(b'"$type":"Branch"') == 1


def test_a_union_that_msgspec_tells_apart_is_left_to_it() -> None:
    class Cat(Struct, frozen=True, tag=True):
        name: str

    class Dog(Struct, frozen=True, tag=True):
        name: str

    cls = make_dataclass("Message", [("value", Cat | Dog | None)], frozen=True)

    assert body_of(cls(Dog("rex"))) == b'{"value":{"type":"Dog","name":"rex"}}'
    assert round_trip(cls(Dog("rex"))) == cls(Dog("rex"))


def test_a_tag_of_msgspec_on_only_one_of_two_classes_does_not_tell_them_apart() -> None:
    class Cat(Struct, frozen=True, tag=True):
        number: str

    cls = make_dataclass("Message", [("value", Cat | Card)], frozen=True)

    assert body_of(cls(Cat("1"))) == b'{"value":{"$type":"Cat","type":"Cat","number":"1"}}'
    assert [round_trip(cls(value)) for value in (Cat("1"), Card("1"))] == [cls(Cat("1")), cls(Card("1"))]


def test_tags_of_msgspec_under_two_keys_do_not_tell_classes_apart() -> None:
    class Cat(Struct, frozen=True, tag=True, tag_field="kind"):
        name: str

    class Dog(Struct, frozen=True, tag=True, tag_field="sort"):
        name: str

    cls = make_dataclass("Message", [("value", Cat | Dog)], frozen=True)

    assert body_of(cls(Dog("rex"))) == b'{"value":{"$type":"Dog","sort":"Dog","name":"rex"}}'
    assert round_trip(cls(Dog("rex"))) == cls(Dog("rex"))


def test_tags_of_msgspec_do_not_tell_classes_apart_of_which_one_has_versions() -> None:
    @message(version=2, upcasters=[lambda body: body])
    class Cat(Struct, frozen=True, tag=True):
        name: str

    class Dog(Struct, frozen=True, tag=True):
        name: str

    cls = make_dataclass("Message", [("value", Cat | Dog)], frozen=True)

    assert body_of(cls(Cat("tom"))) == b'{"value":{"$type":"Cat","$version":2,"type":"Cat","name":"tom"}}'
    assert body_of(cls(Dog("rex"))) == b'{"value":{"$type":"Dog","type":"Dog","name":"rex"}}'
    assert [round_trip(cls(value)) for value in (Cat("tom"), Dog("rex"))] == [cls(Cat("tom")), cls(Dog("rex"))]


def test_a_union_that_msgspec_tells_apart_may_hold_one_that_it_does_not() -> None:
    class Cat(Struct, frozen=True, tag="cat"):
        tree: Tree

    class Dog(Struct, frozen=True, tag="dog"):
        tree: Tree

    cls = make_dataclass("Message", [("value", list[Cat | Dog])], frozen=True)
    value = cls([Cat(Leaf(1)), Dog(Leaf(2))])

    assert round_trip(value) == value


def test_a_union_that_msgspec_tells_apart_by_numbers_may_hold_one_that_it_does_not() -> None:
    class Cat(Struct, frozen=True, tag=1):
        tree: Tree

    class Dog(Struct, frozen=True, tag=2):
        tree: Tree

    cls = make_dataclass("Message", [("value", list[Cat | Dog])], frozen=True)
    value = cls([Cat(Leaf(1)), Dog(Leaf(2))])

    assert round_trip(value) == value


def test_a_member_that_knows_no_other_fields_does_not_see_its_name() -> None:
    class Closed(Struct, frozen=True, forbid_unknown_fields=True):
        number: str

    cls = make_dataclass("Message", [("value", Card | Closed)], frozen=True)

    assert round_trip(cls(Closed("1"))) == cls(Closed("1"))


def test_a_member_is_read_by_its_former_name() -> None:
    again = codec_for(Payment).decode("Payment", 1, b'{"method":{"$type":"Bill","number":"1"}}')

    assert again == Payment(Invoice("1"))


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b'{"method":{"number":"1"}}', r"\.method: Object has no `\$type`, which must be one of Card, Invoice, Bill"),
        (b'{"method":{"$type":"Cash","number":"1"}}', r"\.method: Unknown `\$type` 'Cash'"),
        (b'{"method":{"$type":["Card"],"number":"1"}}', r"\.method: Unknown `\$type` \['Card'\]"),
        (b'{"method":{"$type":"os.system","number":"1"}}', r"\.method: Unknown `\$type` 'os.system'"),
        (b'{"method":{"$type":"Card","number":1}}', r"\.method: Expected `str`, got `int` - at `\$.number`"),
        (b'{"method":{"$type":"Card"}}', r"\.method: Object missing required field `number`"),
        (b'{"method":"Card"}', r"\.method: Expected a Card or an Invoice, got 'Card'"),
        (b"{}", "Object missing required field `method`"),
        (b"[]", r"Expected `object`, got \[\]"),
        (b'{"method":{"$type":"Card","number":"1"},"tried":{}}', r"\.tried: Expected `array`, got {}"),
        (b'{"method":{"$type":"Card","number":"1"},"by_name":[]}', r"\.by_name: Expected `object`, got \[\]"),
        (
            b'{"method":{"$type":"Card","number":"1"},"by_name":{"a":[1]}}',
            r"\.by_name: \['a'\]: Expected `array` of length 2, got 1",
        ),
        (
            b'{"method":{"$type":"Card","number":"1"},"by_name":{"a":{}}}',
            r"\.by_name: \['a'\]: Expected `array`, got {}",
        ),
        (
            b'{"method":{"$type":"Card","number":"1"},"by_name":{"a":[{"$type":"Cash"},1]}}',
            r"\.by_name: \['a'\]: \[0\]: Unknown `\$type` 'Cash'",
        ),
        (
            b'{"method":{"$type":"Card","number":"1"},"tried":[{"$type":"Card","number":"1"},{"$type":"Cash"}]}',
            r"\.tried: \[1\]: Unknown `\$type` 'Cash'",
        ),
    ],
)
def test_a_wrong_body_is_refused_with_its_place(body: bytes, problem: str) -> None:
    with pytest.raises(DecodeError, match=problem):
        codec_for(Payment).decode("Payment", 1, body)


BERLIN = Address("Berlin", "10115")


@dataclass(frozen=True)
class Mixed:
    """Beside a union, fields that msgspec reads alone."""

    method: Card | Invoice
    numbers: list[int] = field(default_factory=list[int])
    pair: tuple[int, str] = (1, "a")
    by_number: dict[int, int] = field(default_factory=dict[int, int])
    home: Address = BERLIN
    maybe: int | str | None = None


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("numbers", b'["a"]', r"\.numbers: Expected `int`, got `str` - at `\$\[0\]`"),
        ("numbers", b"{}", r"\.numbers: Expected `array`, got `object`"),
        ("pair", b'["a","b"]', r"\.pair: Expected `int`, got `str` - at `\$\[0\]`"),
        ("by_number", b'{"1":"a"}', r"\.by_number: Expected `int`, got `str` - at `\$\[\.\.\.\]`"),
        ("by_number", b'{"a":1}', r"\.by_number: Expected `int`, got `str` - at `key` in `\$`"),
        ("home", b'{"city":1}', r"\.home: Expected `str`, got `int` - at `\$\.city`"),
        ("home", b"[]", r"\.home: Expected `object`, got `array`"),
        ("maybe", b"1.5", r"\.maybe: Expected `int \| str \| null`, got `float`"),
    ],
)
def test_what_msgspec_reads_alone_is_refused_in_its_words(name: str, value: bytes, problem: str) -> None:
    body = b'{"method":{"$type":"Card","number":"1"},"%s":%s}' % (name.encode(), value)

    with pytest.raises(DecodeError, match=problem):
        codec_for(Mixed).decode("Mixed", 1, body)


def test_what_msgspec_reads_alone_is_read_beside_a_union() -> None:
    mixed = Mixed(Invoice("1"), [1, 2], (3, "b"), {4: 5}, Address("Oslo", "1"), "maybe")

    assert round_trip(mixed) == mixed


def test_the_keys_of_a_dict_of_classes_come_back_as_what_they_were() -> None:
    cls = make_dataclass("Message", [("value", dict[int, Card | Invoice])], frozen=True)

    assert round_trip(cls({1: Card("1"), 2: Invoice("2")})) == cls({1: Card("1"), 2: Invoice("2")})


def test_two_keys_of_a_dict_of_classes_that_mean_the_same_are_refused() -> None:
    cls = make_dataclass("Message", [("value", dict[float, Card | Invoice])], frozen=True)
    card = b'{"$type":"Card","number":"1"}'

    with pytest.raises(DecodeError, match="the body does not fit"):
        codec_for(cls).decode("Message", 1, b'{"value":{"1":%s,"1.0":%s}}' % (card, card))


def test_a_named_tuple_that_holds_a_union_comes_back_as_itself() -> None:
    class Attempt(NamedTuple):
        method: Card | Invoice
        number: int

    cls = make_dataclass("Message", [("value", Attempt)], frozen=True)
    again: Any = round_trip(cls(Attempt(Invoice("1"), 2)))

    assert type(again.value) is Attempt
    assert again.value == Attempt(Invoice("1"), 2)


@pytest.mark.parametrize(
    ("text", "value"), [(b"1", 1.0), (b"1.5", 1.5), (b"true", True), (b"null", None), (b'"a"', "a"), (b"[1]", [1])]
)
def test_beside_classes_a_value_is_told_by_its_kind_of_json(text: bytes, value: object) -> None:
    cls = make_dataclass("Message", [("value", Card | Invoice | float | bool | str | list[int] | None)], frozen=True)
    again = codec_for(cls).decode("Message", 1, b'{"value":%s}' % text)

    assert (type(again.value), again.value) == (type(value), value)


def test_beside_classes_the_none_of_a_literal_is_read() -> None:
    hint = Card | Invoice | Literal["a", None]  # noqa: PYI061  both spellings are read
    cls = make_dataclass("Message", [("value", hint)], frozen=True)

    assert [round_trip(cls(value)) for value in ("a", None)] == [cls("a"), cls(None)]


def test_a_class_that_refuses_its_fields_is_a_wrong_body() -> None:
    @dataclass(frozen=True)
    class Strict:
        method: Card | Invoice

        def __post_init__(self) -> None:
            raise LookupError("never content")

    with pytest.raises(DecodeError, match="Strict: the body does not fit: never content"):
        codec_for(Strict).decode("Strict", 1, b'{"method":{"$type":"Card","number":"1"}}')


def test_unknown_fields_are_passed_over() -> None:
    again = codec_for(Payment).decode("Payment", 1, b'{"method":{"$type":"Card","number":"1","new":1},"newer":[]}')

    assert again == Payment(Card("1"))
