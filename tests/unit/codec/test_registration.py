"""A type that could not be read back is refused when it is registered, by class and field, with the fix."""

from __future__ import annotations

import re
import types
import typing
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Mapping,
    MutableMapping,
    MutableSequence,
    MutableSet,
    Sequence,
)
from collections.abc import Set as AbstractSet
from dataclasses import InitVar, dataclass, make_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, Flag
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypedDict, TypeVar
from uuid import UUID

import pytest
from msgspec import Meta, Struct, defstruct, field
from typing_extensions import TypeAliasType

from mainspring.codec import Codec
from mainspring.codec.checks import compile_check
from mainspring.codec.hints import fields_of, unwrapped
from mainspring.codec.shapes import Record, Shape
from mainspring.core.messages import MessageType, message
from mainspring.errors import RegistrationError
from tests.unit.codec.shop import (
    Box,
    Card,
    Colour,
    Invoice,
    Order,
    OrderId,
    Payment,
    Point,
    Size,
    Voucher,
    codec_for,
    round_trip,
)

T = TypeVar("T")
One = Literal[1]
Words = TypeAliasType("Words", list[str])
Pair = TypeAliasType("Pair", tuple[T, T], type_params=(T,))


class Plain:
    pass


@dataclass
class Unfrozen:
    value: int


class UnfrozenStruct(Struct):
    value: int


@dataclass(frozen=True, eq=False)
class ById:
    value: int


class ByIdStruct(Struct, frozen=True, eq=False):
    value: int


class Ring(NamedTuple):
    next: Ring | None


class Tags(Flag):
    A = 1
    B = 2


class Pairs(Enum):
    A = (1, 2)


class Huge(Enum):
    A = 2**64


class Mixture(Enum):
    A = 1
    B = "b"


class Nothing(Enum):
    pass


class Couple(NamedTuple, Generic[T]):
    one: T
    other: T


class Fielded:
    _fields = ("value",)


class Options(TypedDict):
    value: int


class Wrapped(NamedTuple):
    inner: complex


class Row(Struct, frozen=True, array_like=True):
    value: int


class TaggedRow(Struct, frozen=True, array_like=True, tag=True):
    value: int


class TaggedLine(Struct, frozen=True, array_like=True, tag=True):
    value: int


@message(version=2, upcasters=[lambda body: body])
class NewRow(Struct, frozen=True, array_like=True):
    value: int


class Text(str):
    __slots__ = ()


@message(name="Card")
@dataclass(frozen=True)
class OtherCard:
    number: str


@message(name="Cheque", aliases=["Card"])
@dataclass(frozen=True)
class FormerCard:
    number: str


@pytest.mark.parametrize(
    ("hint", "problem", "fix"),
    [
        (Plain, "is Plain, which cannot be read back", "Use a frozen dataclass"),
        (Path, "is Path, which cannot be read back", "Use a frozen dataclass"),
        (complex, "is complex, which cannot be read back", "Use a dataclass of two floats"),
        (object, "is object, which cannot be read back", "Use Any"),
        (type, "is type, which cannot be read back", "Use the type's name"),
        (bytearray, "is bytearray, which cannot be read back", "Use bytes"),
        (Callable[[int], str], "is Callable[[int], str], which cannot be read back", "Use the name of what to call"),
        (Sequence[int], "is Sequence[int], which cannot be read back", "Use tuple[…, ...]"),
        (Iterable[int], "is Iterable[int], which cannot be read back", "Use tuple[…, ...]"),
        (AbstractSet[int], "is Set[int], which cannot be read back", "Use frozenset[…]"),
        (MutableSequence[int], "is MutableSequence[int], which cannot be read back", "Use list[…]"),
        (Collection[int], "is Collection[int], which cannot be read back", "Use tuple[…, ...]"),
        (MutableSet[int], "is MutableSet[int], which cannot be read back", "Use set[…]"),
        (memoryview, "is memoryview, which cannot be read back", "Use bytes"),
        (typing.Sequence[int], "is Sequence[int], which cannot be read back", "Use tuple[…, ...]"),
        (Options, "is Options, which cannot be read back", "Use a frozen dataclass"),
        (list[Plain], "is Plain, which cannot be read back", "Use a frozen dataclass"),
        (Text, "is Text, which cannot be read back", "Use a frozen dataclass"),
        (Unfrozen, "is Unfrozen, which can be changed", "Freeze it: `@dataclass(frozen=True)`"),
        (UnfrozenStruct, "is UnfrozenStruct, which can be changed", "class UnfrozenStruct(Struct, frozen=True)"),
        (ById, "is ById, which would not be equal to itself when it comes back", "Drop eq=False"),
        (ByIdStruct, "is ByIdStruct, which would not be equal to itself", "Drop eq=False"),
        (Tags, "is the Flag Tags", "Use a frozenset of a plain Enum"),
        (Pairs, "is the Enum Pairs, whose values are not all str or all int", "Give its members such values"),
        (Huge, "is the Enum Huge, whose values are not all str or all int of 64 bits", "Give its members such"),
        (Mixture, "is the Enum Mixture, whose values are not all str or all int", "Give its members such values"),
        (Nothing, "is the Enum Nothing, whose values are not all str or all int", "Give its members such values"),
        (Fielded, "is Fielded, which cannot be read back", "Use a frozen dataclass"),
        (Couple[int], "Couple[int], which cannot be read back", "Use a frozen dataclass"),
        (Literal[True], "is typing.Literal[True]", "Use str, int and None in a Literal"),
        (Literal["a", True], "is typing.Literal['a', True]", "Use str, int and None in a Literal"),
        (Literal[Colour.RED], "is typing.Literal[<Colour.RED", "or the Enum itself"),
        (Box, "is the generic Box without parameters", "Write Box[…]"),
        (T, "is the type variable ~T", "Give Message its parameters"),
        (dict[tuple[int, int], int], "whose keys cannot be keys of a JSON object", "or a list of pairs"),
        (dict[int | str, int], "whose keys cannot be keys of a JSON object", "or a list of pairs"),
        (dict[None, int], "whose keys cannot be keys of a JSON object", "Use str, int"),
        (dict[bool, int], "whose keys cannot be keys of a JSON object", "Use str, int"),
        (dict[Any, int], "whose keys cannot be keys of a JSON object", "Use str, int"),
        (dict[Literal[1, "1"], int], "whose keys cannot be keys of a JSON object", "Use str, int"),
        (set[list[int]], "whose items cannot be in a set", "Use tuples and frozensets"),
        (frozenset[dict[str, int]], "whose items cannot be in a set", "Use tuples and frozensets"),
        (set[tuple[list[int], ...]], "whose items cannot be in a set", "Use tuples and frozensets"),
        (set[tuple[int, list[int]]], "whose items cannot be in a set", "Use tuples and frozensets"),
        (set[int | list[int]], "whose items cannot be in a set", "Use tuples and frozensets"),
        (datetime | str, "are both a JSON string, so that they could not be distinguished", "Use one of them"),
        (date | str, "a date and a str are both a JSON string", "Use one of them"),
        (time | str, "and a str are both a JSON string", "Use one of them"),
        (timedelta | str, "a timedelta and a str are both a JSON string", "Use one of them"),
        (bytes | str, "bytes and a str are both a JSON string", "Use one of them"),
        (UUID | str, "a UUID and a str are both a JSON string", "Use one of them"),
        (Size | int, "a Size and an int of at most 64 bits are both a JSON int", "Use one of them"),
        (Colour | str, "a Colour and a str are both a JSON string", "Use one of them"),
        (UUID | Decimal | None, "a UUID and a finite Decimal are both a JSON string", "Use one of them"),
        (date | datetime, "a date and a datetime", "Use one of them"),
        (One | int, "are both a JSON int", "Use one of them"),
        (list[int] | tuple[int, ...], "a list and a tuple are both a JSON array", "Use one of them"),
        (list[int] | tuple[int, str], "a list and a tuple of 2 are both a JSON array", "Use one of them"),
        (Row | list[Card | Invoice], "a Row and a list are both a JSON array", "Use one of them"),
        (set[int] | frozenset[str], "a set and a frozenset are both a JSON array", "Use one of them"),
        (Card | dict[str, int], "a Card and a dict are both a JSON object", "Use one of them"),
        (Voucher | dict[str, int], "a Voucher and a dict are both a JSON object", "Use one of them"),
        (Card | Invoice | dict[str, int], "are both a JSON object", "put each into a frozen dataclass"),
        (Card | OtherCard, "of which two are stored as 'Card'", '@message(name="…")'),
        (FormerCard | Card, "of which two are stored as 'Card'", '@message(name="…")'),
        (Box[int] | Box[str], "of which two are stored as 'Box'", "Rename one"),
        (Card | Row, "and Row has array_like=True", "Drop array_like"),
        (TaggedRow | TaggedLine, "and TaggedRow has array_like=True", "Drop array_like"),
        (NewRow, "is NewRow of version 2 with array_like=True, and an array has no place for", "Drop array_like"),
    ],
)
def test_a_field_that_could_not_be_read_back_is_refused(hint: Any, problem: str, fix: str) -> None:
    cls = make_dataclass("Message", [("id", str), ("value", hint)], frozen=True)

    with pytest.raises(RegistrationError) as caught:
        Codec().register(cls)

    assert caught.value.type_name == "Message"
    assert caught.value.problem.startswith("its field `value` ")
    assert problem in caught.value.problem
    assert fix in caught.value.fix


def test_the_error_names_the_class_whose_field_it_is() -> None:
    cls = make_dataclass("Message", [("value", list[Wrapped])], frozen=True)

    with pytest.raises(RegistrationError, match=r"^Wrapped: its field `inner` is complex"):
        Codec().register(cls)


def test_the_error_after_a_nested_class_names_the_outer_class_again() -> None:
    cls = make_dataclass("Message", [("value", tuple[Order, complex])], frozen=True)

    with pytest.raises(RegistrationError, match=r"^Message: its field `value` is complex"):
        Codec().register(cls)


@pytest.mark.parametrize("cls", [Unfrozen, UnfrozenStruct])
def test_an_unfrozen_class_is_refused(cls: type[Any]) -> None:
    with pytest.raises(RegistrationError, match=f"^{cls.__name__}: is {cls.__name__}, which can be changed. Freeze it"):
        Codec().register(cls)


def test_a_subclass_of_a_dataclass_that_is_none_itself_is_refused() -> None:
    class Special(Card):
        extra: int = 1

    with pytest.raises(RegistrationError, match="Freeze it: `@dataclass"):
        Codec().register(Special)


def test_a_tuple_within_itself_is_refused() -> None:
    with pytest.raises(RegistrationError, match="Ring: refers to itself through a type alias or a NamedTuple"):
        Codec().register(Ring)


def test_a_generic_class_without_parameters_is_refused() -> None:
    with pytest.raises(RegistrationError, match="Box: is the generic Box without parameters"):
        Codec().register(Box)


def test_a_generic_alias_is_refused_and_its_subclass_taken() -> None:
    @dataclass(frozen=True)
    class IntegerBox(Box[int]):
        pass

    with pytest.raises(RegistrationError, match=r"is not a class of its own. Subclass it"):
        Codec().register(Box[int])
    assert round_trip(IntegerBox(3)) == IntegerBox(3)


def test_a_name_for_a_type_is_no_class_to_be_registered() -> None:
    name: Any = OrderId

    with pytest.raises(RegistrationError, match=r"OrderId: is not a class of its own. Subclass it, and register that."):
        Codec().register(name)


def test_a_subclass_of_a_generic_class_without_parameters_is_refused() -> None:
    @dataclass(frozen=True)
    class Unlabelled(Box):  # pyright: ignore[reportMissingTypeArgument]  the mistake itself
        pass

    with pytest.raises(
        RegistrationError,
        match=r"^Unlabelled: its field `content` is the type variable ~T. "
        r"Give Unlabelled its parameters, or subclass it with them.$",
    ):
        Codec().register(Unlabelled)


def test_a_plain_class_is_refused() -> None:
    with pytest.raises(RegistrationError, match="Plain: is Plain, which cannot be read back"):
        Codec().register(Plain)


def test_a_field_that_only_the_constructor_sees_is_refused() -> None:
    @dataclass(frozen=True)
    class Hashed:
        secret: InitVar[str]

    with pytest.raises(RegistrationError, match="its `secret` is an InitVar"):
        Codec().register(Hashed)


def test_a_type_that_cannot_be_found_is_refused() -> None:
    @dataclass(frozen=True)
    class Lost:
        value: Missing  # pyright: ignore[reportUndefinedVariable]  # noqa: F821  it is missing

    with pytest.raises(
        RegistrationError, match=r"Lost: a field's type cannot be found: name 'Missing'.*Define or import"
    ):
        Codec().register(Lost)


def test_a_type_that_is_none_is_refused() -> None:
    @dataclass(frozen=True)
    class Counted:
        value: int[str]  # pyright: ignore[reportInvalidTypeArguments]  the mistake itself

    with pytest.raises(RegistrationError, match=r"Counted: a field's type is no type \(.*Correct the annotation"):
        Codec().register(Counted)


@pytest.mark.parametrize(
    ("hint", "problem"),
    [(Annotated[str, Meta(ge=1)], "Can only set `ge`"), (Annotated[int, Meta(ge=2**64)], "Integer bounds constraints")],
)
def test_what_msgspec_cannot_read_is_refused_when_it_is_registered(hint: Any, problem: str) -> None:
    cls = make_dataclass("Message", [("value", hint)], frozen=True)

    with pytest.raises(RegistrationError, match=f"Message: msgspec cannot read it back: {problem}"):
        Codec().register(cls)


def test_a_field_that_no_attribute_can_have_is_refused() -> None:
    with pytest.raises(RegistrationError, match=r"its field `class` has a name that is no Python name"):
        Codec().register(defstruct("Message", [("class", int)], frozen=True))


def test_a_field_whose_name_is_no_identifier_is_refused() -> None:
    bare = type("Message", (), {"__annotations__": {"a-b": int}})

    with pytest.raises(RegistrationError, match=r"its field `a-b` has a name that is no Python name. Rename it."):
        Codec().register(dataclass(frozen=True, init=False)(bare))


def test_a_field_of_a_named_tuple_is_required_unless_it_has_a_default() -> None:
    assert [(each.name, each.required) for each in fields_of(Point)] == [("x", True), ("y", False)]


def test_an_alias_stands_for_its_type_with_what_it_is_given() -> None:
    pair: Any = Pair

    assert unwrapped(Words) == (list[str], ())
    # As the type statement of Python 3.12 has it.
    assert unwrapped(types.GenericAlias(pair, (int,))) == (tuple[int, int], ())


def test_a_field_stored_under_the_codecs_own_key_is_refused() -> None:
    class Sly(Struct, frozen=True):
        kind: str = field(name="$type")

    class Slier(Struct, frozen=True):
        edition: int = field(name="$version")

    with pytest.raises(RegistrationError, match=r"its field `kind` is stored as '\$type'"):
        Codec().register(Sly)
    with pytest.raises(RegistrationError, match=r"its field `edition` is stored as '\$version'"):
        Codec().register(Slier)


def test_a_struct_as_an_array_with_a_set_in_it_is_refused() -> None:
    class Ordered(Struct, frozen=True, array_like=True):
        values: frozenset[str]

    with pytest.raises(RegistrationError, match=r"Ordered: has array_like=True and a set.*Drop array_like"):
        Codec().register(Ordered)


def test_two_types_of_the_same_name_are_refused() -> None:
    codec = codec_for(Card)

    with pytest.raises(RegistrationError, match=r"OtherCard and tests.unit.codec.shop.Card would both be stored"):
        codec.register(OtherCard)
    assert codec.decode("Card", 1, b'{"number":"1"}') == Card("1")


def test_a_former_name_that_another_type_has_is_refused() -> None:
    codec = codec_for(Card)

    with pytest.raises(RegistrationError, match=r"would both be stored as 'Card'"):
        codec.register(FormerCard)
    assert not codec.knows("Cheque")


def test_registering_twice_does_no_harm() -> None:
    codec = codec_for(Card, Card)
    codec.register(Card)

    assert codec.knows("Card")


@pytest.mark.parametrize("mapping", [Mapping, MutableMapping, dict])
def test_a_mapping_is_read_as_a_dict(mapping: Any) -> None:
    cls = make_dataclass("Message", [("value", mapping[str, int])], frozen=True)

    assert round_trip(cls({"a": 1})) == cls({"a": 1})


def test_a_generic_record_in_a_field_of_a_generic_record_comes_back() -> None:
    @dataclass(frozen=True)
    class Outer(Generic[T]):
        inner: Box[T]

    cls = make_dataclass("Message", [("value", Outer[int])], frozen=True)

    assert round_trip(cls(Outer(Box(1)))) == cls(Outer(Box(1)))


def test_a_shape_without_a_test_of_its_own_lets_nothing_pass() -> None:
    bare = Shape(int, "an int", "Use int(…).", ("int",))
    with pytest.raises(NotImplementedError):
        compile_check(bare)
    with pytest.raises(NotImplementedError):
        bare.is_itself(1)


def test_a_shape_by_itself_is_left_to_msgspec() -> None:
    record = Record(Voucher, Voucher, MessageType("Voucher"), {})

    assert record.write(Voucher("1")) == Voucher("1")
    assert record.read({"number": "1"}) == Voucher("1")


def test_every_registration_error_ends_in_a_sentence_that_says_what_to_do() -> None:
    with pytest.raises(RegistrationError) as caught:
        Codec().register(Plain)

    assert re.fullmatch(r"Use .*\.", caught.value.fix)


def test_a_payment_needs_no_more_registration_than_itself() -> None:
    codec = codec_for(Payment)

    assert not codec.knows("Card")
    assert codec.encode(Payment(Card("1"), tried=[Voucher("2")])).name == "Payment"
