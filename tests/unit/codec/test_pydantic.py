"""pydantic models are written and read by pydantic, and read back before they count."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, make_dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Generic, Literal, TypeVar

import pytest
from pydantic import BaseModel, ConfigDict, Field, computed_field, field_serializer, field_validator

from mainspring.codec import Codec
from mainspring.codec.hints import is_model, pydantic_models
from mainspring.codec.limits import INTEGER_MAX, INTEGER_MIN
from mainspring.core.messages import message
from mainspring.errors import DecodeError, EncodeError, RegistrationError
from tests.unit.codec.shop import body_of, codec_for, round_trip

T = TypeVar("T")


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class Customer(Frozen):
    name: str = Field(alias="customerName")
    limit: Decimal = Decimal(0)
    since: datetime | None = None
    groups: frozenset[str] = frozenset()
    extra: Any = None


class Cat(Frozen):
    name: str


class Dog(Frozen):
    name: str


@dataclass(frozen=True)
class Lookalike(Generic[T]):
    content: T
    model_fields: tuple[str, ...] = ()


class Guess(Frozen):
    pet: Cat | Dog


class Told(Frozen):
    kind: Literal["told"] = "told"
    pet: Cat


class Other(Frozen):
    kind: Literal["other"] = "other"
    pet: Dog


class Discriminated(Frozen):
    value: Told | Other = Field(discriminator="kind")


class Doubled(Frozen):
    value: int

    @field_validator("value")
    @classmethod
    def double(cls, value: int) -> int:
        return value * 2


class Moments(Frozen):
    in_order: tuple[datetime, ...] = ()
    apart: set[datetime] = set()
    frozen: frozenset[datetime] = frozenset()


class Basket(BaseModel):
    """Has a total that is computed, and takes no total from outside."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    amounts: tuple[int, ...] = Field(default=(), alias="inCents")

    @computed_field
    @property
    def total(self) -> int:
        return sum(self.amounts)


class Sorted(Basket):
    words: set[str] = set()
    mixed: frozenset[int | str] = frozenset()
    rows: list[frozenset[str]] = []
    by_name: dict[str, frozenset[str]] = {}
    raw: bytes = b""


class Padded(Frozen):
    """Writes one more item to JSON than it has, and reads it away again."""

    words: frozenset[str] = frozenset()
    items: list[int] = []
    by_name: dict[str, int] = {}

    @field_serializer("items", when_used="json")
    def pad_items(self, items: list[int]) -> list[int]:
        return [*items, 0] if items else items

    @field_serializer("by_name", when_used="json")
    def pad_names(self, by_name: dict[str, int]) -> dict[str, int]:
        return {**by_name, "": 0} if by_name else by_name


class Picky(Frozen):
    value: int

    def model_post_init(self, context: object, /) -> None:
        if self.value < 0:
            raise ValueError("too small")


class Closed(Frozen):
    def model_post_init(self, context: object, /) -> None:
        raise LookupError("never content")


class Locked(Frozen):
    @classmethod
    def model_validate_json(cls, *_: Any, **__: Any) -> Any:
        raise ValueError("not today")


NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001  the naive one


@dataclass(frozen=True)
class Visit:
    owner: Customer
    pet: Cat | Dog


def customer(**fields: Any) -> Customer:
    return Customer(customerName="ann", **fields)


def deep(levels: int) -> list[Any]:
    return [deep(levels - 1)] if levels > 1 else [1]


def test_a_model_comes_back() -> None:
    value = customer(limit=Decimal("1.10"), since=datetime(2026, 1, 1, tzinfo=UTC), extra={"a": [1, None]})

    assert round_trip(value) == value
    assert b'"customerName":"ann"' in body_of(value)


def test_the_sets_of_a_model_are_written_in_a_fixed_order() -> None:
    value = customer(groups=frozenset({"c", "a", "b"}))

    assert b'"groups":["a","b","c"]' in body_of(value)
    assert round_trip(value) == value


@pytest.mark.parametrize("value", [Basket(inCents=(1, 2)), Sorted(inCents=(1, 2))])
def test_what_a_model_computes_is_not_written(value: Basket) -> None:
    assert b'"inCents":[1,2]' in body_of(value)
    assert b"total" not in body_of(value)
    assert round_trip(value) == value


def test_the_sets_of_a_model_are_put_in_order_wherever_they_stand() -> None:
    words = frozenset("edcba")
    value = Sorted(words=set(words), mixed=frozenset({1, "a"}), rows=[words], by_name={"x": words}, raw=b"abc")

    assert body_of(value) == (
        b'{"inCents":[],"words":["a","b","c","d","e"],"mixed":["a",1],"rows":[["a","b","c","d","e"]],'
        b'"by_name":{"x":["a","b","c","d","e"]},"raw":"abc"}'
    )
    assert round_trip(value) == value


@pytest.mark.parametrize("value", [Padded(items=[1]), Padded(by_name={"a": 1})])
def test_a_model_with_a_set_that_has_other_parts_in_json_than_in_python_is_refused(value: Padded) -> None:
    with pytest.raises(EncodeError, match="pydantic cannot write it"):
        body_of(value)


@pytest.mark.parametrize("extra", [INTEGER_MAX, INTEGER_MIN, deep(63)], ids=["most", "least", "deepest"])
def test_the_largest_that_a_model_may_hold_comes_back(extra: Any) -> None:
    assert round_trip(customer(extra=extra)) == customer(extra=extra)


def test_a_set_that_can_be_changed_is_put_in_order_too() -> None:
    class Words(Frozen):
        words: set[str]

    assert body_of(Words(words=set("edcba"))) == b'{"words":["a","b","c","d","e"]}'


def test_models_within_a_dataclass_come_back_with_their_names() -> None:
    visit = Visit(customer(), Dog(name="rex"))

    assert b'"pet":{"$type":"Dog","name":"rex"}' in body_of(visit)
    assert round_trip(visit) == visit


def test_a_model_within_a_dataclass_comes_back_without_a_union_beside_it() -> None:
    order = make_dataclass("Order", [("customer", Customer)], frozen=True)(customer(limit=Decimal("1.10")))

    assert body_of(order).startswith(b'{"customer":{"customerName":"ann"')
    assert round_trip(order) == order


def test_a_discriminated_union_comes_back() -> None:
    value = Discriminated(value=Other(pet=Dog(name="rex")))

    assert round_trip(value) == value


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (Guess(pet=Dog(name="rex")), r"pet is Dog .* and would come back as Cat"),
        (customer(since=datetime(2026, 1, 1)), "a datetime without a time zone"),  # noqa: DTZ001  the naive one
        (customer(extra=(1, 2)), r"extra is tuple \(1, 2\) and would come back as list"),
        (customer(extra=2**64), "needs more than 64 bits"),
        (customer(extra="\0"), "NUL"),
        (customer(extra=float("nan")), "extra is float nan and would come back as NoneType"),
        (customer(extra=object()), "pydantic cannot write it"),
        (
            customer(extra=frozenset({frozenset({1})})),
            "pydantic cannot write it: a set within a set has no fixed order",
        ),
        (customer(extra=deep(100)), "nests deeper than 64 levels"),
        (customer(extra=deep(64)), "nests deeper than 64 levels"),
        (customer(extra=INTEGER_MAX + 1), "needs more than 64 bits"),
        (customer(extra=INTEGER_MIN - 1), "needs more than 64 bits"),
        (Moments(in_order=(NAIVE,)), "a datetime without a time zone"),
        (Moments(apart={NAIVE}), "a datetime without a time zone"),
        (Moments(frozen=frozenset({NAIVE})), "a datetime without a time zone"),
        (Doubled(value=1), "value is int 2 and would come back as int 4"),
        (Customer.model_construct(name="ann", limit="much"), "would not come back|limit is str"),
    ],
)
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_a_model_that_would_not_come_back_is_refused(value: BaseModel, problem: str) -> None:
    with pytest.raises(EncodeError, match=problem):
        body_of(value)


def test_a_model_within_a_dataclass_that_would_not_come_back_is_refused() -> None:
    with pytest.raises(EncodeError, match="extra is tuple"):
        body_of(Visit(customer(extra=(1,)), Cat(name="tom")))


def test_another_value_than_the_model_is_told_with_the_fix() -> None:
    wrong: Any = "x"
    with pytest.raises(EncodeError) as caught:
        body_of(Visit(wrong, Cat(name="tom")))

    assert str(caught.value) == "Visit: owner must be a Customer and is str 'x'. Pass a Customer itself."


def test_a_model_that_is_right_is_not_taken_for_the_fault_beside_it() -> None:
    wrong: Any = "x"
    with pytest.raises(EncodeError, match="Visit: pet must be a Cat or a Dog and is str 'x'"):
        body_of(Visit(customer(), wrong))


def test_a_model_and_a_dict_cannot_be_told_apart() -> None:
    home = make_dataclass("Home", [("pet", Cat | dict[str, int])], frozen=True)

    with pytest.raises(RegistrationError, match="a Cat and a dict are both a JSON object"):
        Codec().register(home)


def test_a_body_that_does_not_fit_is_refused() -> None:
    with pytest.raises(DecodeError, match="Cat: the body does not fit: name: Field required"):
        codec_for(Cat).decode("Cat", 1, b"{}")
    with pytest.raises(DecodeError, match="datetime without a time zone"):
        codec_for(Customer).decode_outside("Customer", 1, b'{"customerName":"a","since":"2026-01-01T00:00:00"}')


def test_a_model_that_refuses_its_fields_in_its_own_way_is_a_wrong_body() -> None:
    with pytest.raises(DecodeError, match=r"Picky: the body does not fit: Value error, too small\. Correct the data"):
        codec_for(Picky).decode("Picky", 1, b'{"value":-1}')
    with pytest.raises(DecodeError, match=r"Locked: the body does not fit: not today\. Correct the data"):
        codec_for(Locked).decode("Locked", 1, b"{}")
    with pytest.raises(DecodeError, match=r"Closed: the body does not fit: never content\. Correct the data\."):
        codec_for(Closed).decode("Closed", 1, b"{}")


def test_a_body_that_is_no_json_is_refused_in_the_words_of_pydantic() -> None:
    with pytest.raises(DecodeError, match="Cat: the body does not fit: Invalid JSON: EOF while parsing"):
        codec_for(Cat).decode("Cat", 1, b"{")


def test_the_place_in_a_wrong_body_is_told_from_the_outside_in() -> None:
    with pytest.raises(DecodeError, match=r"Told: the body does not fit: pet\.name: Field required"):
        codec_for(Told).decode("Told", 1, b'{"pet":{}}')


def test_nothing_is_a_model_in_a_program_without_pydantic(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_model(Cat)
    monkeypatch.delitem(sys.modules, "pydantic")

    assert pydantic_models() == ()
    assert not is_model(Cat)


def test_an_unfrozen_model_is_refused() -> None:
    class Loose(BaseModel):
        name: str

    with pytest.raises(
        RegistrationError, match=r"Loose.*can be changed. Freeze it: `model_config = ConfigDict\(frozen"
    ):
        Codec().register(Loose)


def test_a_model_is_upcast() -> None:
    @message(version=2, upcasters=[lambda body: {"name": body["called"]}])
    class Pet(Frozen):
        name: str

    assert codec_for(Pet).decode("Pet", 1, b'{"called":"rex"}') == Pet(name="rex")


def test_a_model_of_a_later_version_within_another_is_refused() -> None:
    @message(version=2, upcasters=[lambda body: body])
    class Pet(Frozen):
        name: str

    home = make_dataclass("Home", [("pet", Pet)], frozen=True)

    with pytest.raises(RegistrationError, match=r"its field `pet` is the pydantic model Pet of version 2"):
        Codec().register(home)


def test_the_codec_does_not_import_pydantic() -> None:
    program = (
        "import sys, mainspring.codec; from mainspring.testing.samples import Counter;"
        "mainspring.codec.Codec().register_workflow(Counter); print('pydantic' in sys.modules)"
    )
    printed = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout  # noqa: S603  our own program

    assert printed == "False\n"


def test_a_generic_class_that_looks_like_a_model_is_none() -> None:
    cls = make_dataclass("Message", [("value", Lookalike[int])], frozen=True)

    assert round_trip(cls(Lookalike(1, ("content",)))) == cls(Lookalike(1, ("content",)))
