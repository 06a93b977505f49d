"""A class that computes or refuses something when it is made has its values read back before they count."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, make_dataclass
from decimal import Decimal
from functools import partial
from typing import Annotated, Any

import pytest

from mainspring.codec.compiler import Proof, compile_type
from mainspring.errors import EncodeError
from tests.unit.codec.shop import Card, Invoice, Order, Payment, body_of, codec_for, round_trip


@dataclass(frozen=True)
class Doubled:
    value: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", self.value * 2)


def test_a_class_that_changes_what_it_is_given_is_refused() -> None:
    with pytest.raises(EncodeError, match="value is int 2 and would come back as int 4"):
        body_of(Doubled(1))


@dataclass(frozen=True)
class Numbered:
    """Computes a field that nobody passes."""

    id: str
    number: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "number", len(self.id))


def test_a_class_that_would_compute_another_field_is_refused() -> None:
    stale = Numbered("abc")
    object.__setattr__(stale, "number", 7)

    assert round_trip(Numbered("abc")) == Numbered("abc")
    with pytest.raises(EncodeError, match="Numbered: number is int 7 and would come back as int 3"):
        body_of(stale)


def test_a_class_that_would_compute_another_field_is_refused_beside_a_union() -> None:
    @dataclass(frozen=True)
    class Ticket:
        numbered: Numbered | Card
        also: Numbered

    sound, stale = Ticket(Numbered("abc"), Numbered("de")), Ticket(Numbered("abc"), Numbered("de"))
    object.__setattr__(stale.also, "number", 7)

    assert round_trip(sound) == sound
    with pytest.raises(EncodeError, match=r"Ticket: also\.number is int 7 and would come back as int 2"):
        body_of(stale)


def test_a_class_that_would_compute_a_field_of_another_type_is_refused() -> None:
    @dataclass(frozen=True)
    class Priced:
        id: str
        price: Decimal = field(init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "price", str(len(self.id)))

    mended = Priced("abc")
    object.__setattr__(mended, "price", Decimal(3))

    with pytest.raises(EncodeError, match=r"price is Decimal Decimal\('3'\) and would come back as str '3'"):
        body_of(mended)


def doubling(self: Any, method: Card | Invoice, number: int) -> None:
    object.__setattr__(self, "method", method)
    object.__setattr__(self, "number", 2 * number)


class Native:
    """As a compiled function: it has no Python code."""

    def __get__(self, instance: object, owner: type[Any]) -> Callable[..., None]:
        return partial(doubling, instance)


@pytest.mark.parametrize("init", [doubling, Native()], ids=["python", "native"])
@pytest.mark.parametrize("asked", [True, False])
def test_a_class_whose_own_init_changes_what_it_is_given_is_refused(init: Any, asked: bool) -> None:
    fields = [("method", Card | Invoice), ("number", int)]
    cls = make_dataclass("Message", fields, frozen=True, init=asked, namespace={"__init__": init})

    with pytest.raises(EncodeError, match="number is int 2 and would come back as int 4"):
        body_of(cls(Card("1"), 1))


def test_an_init_that_is_inherited_and_does_not_take_all_fields_is_refused() -> None:
    @dataclass(frozen=True, init=False)
    class Tried(Card):
        method: Card | Invoice

    tried = Tried("1")
    object.__setattr__(tried, "method", Card("2"))

    with pytest.raises(EncodeError, match=r"could not be read back: .*unexpected keyword argument 'method'"):
        body_of(tried)


@pytest.mark.parametrize(
    "cls", [Order, Payment, int, make_dataclass("M", [("a", Annotated[int, "a note"])], frozen=True)]
)
def test_a_class_that_keeps_what_it_is_given_is_not_read_back(cls: type[Any]) -> None:
    assert compile_type(cls).proof is Proof.CHECK


def test_a_computed_field_beside_a_union_is_neither_read_nor_missed() -> None:
    @dataclass(frozen=True)
    class Priced:
        method: Card | Invoice
        number: int = field(init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "number", len(self.method.number))

    priced = Priced(Card("123"))

    assert round_trip(priced) == priced
    assert codec_for(Priced).decode("Priced", 1, b'{"method":{"$type":"Card","number":"123"}}') == priced


def test_a_class_that_refuses_what_it_once_took_is_refused() -> None:
    @dataclass(frozen=True)
    class Positive:
        value: int

        def __post_init__(self) -> None:
            if self.value < 0:
                raise LookupError("too small")

    wrong = Positive(1)
    object.__setattr__(wrong, "value", -1)

    with pytest.raises(EncodeError, match=r"could not be read back: .*too small"):
        body_of(wrong)
