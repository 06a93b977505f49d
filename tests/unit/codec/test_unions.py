"""A union of classes is told apart by names in the bytes, never by guessing."""

from __future__ import annotations

from dataclasses import dataclass, make_dataclass
from typing import Any

import pytest
from msgspec import Struct, json

from mainspring.errors import DecodeError
from tests.unit.codec.shop import (
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


def test_a_union_that_msgspec_tells_apart_may_hold_one_that_it_does_not() -> None:
    class Cat(Struct, frozen=True, tag="cat"):
        tree: Tree

    class Dog(Struct, frozen=True, tag="dog"):
        tree: Tree

    cls = make_dataclass("Message", [("value", list[Cat | Dog])], frozen=True)
    value = cls([Cat(Leaf(1)), Dog(Leaf(2))])

    assert round_trip(value) == value


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
    ],
)
def test_a_wrong_body_is_refused_with_its_place(body: bytes, problem: str) -> None:
    with pytest.raises(DecodeError, match=problem):
        codec_for(Payment).decode("Payment", 1, body)


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
