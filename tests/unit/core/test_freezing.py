from dataclasses import dataclass, field

from msgspec import Struct
from pydantic import BaseModel, ConfigDict

from mainspring.core.freezing import field_names, frozen_fix, required_fields


@dataclass(frozen=True)
class Order:
    id: str
    lines: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list[str])
    total: int = field(default=0, init=False)


class Packed(Struct, frozen=True):
    weight: int
    label: str = ""


class Posted(BaseModel):
    model_config = ConfigDict(frozen=True)
    stamp: str
    note: str = ""


def test_a_record_is_made_of_what_is_given_and_what_has_a_default() -> None:
    assert required_fields(Order, ("id",), ()) is None
    assert required_fields(Order, ("id", "lines"), ("notes",)) is None
    assert required_fields(Packed, ("weight",), ()) is None
    assert required_fields(Posted, ("stamp",), ()) is None


def test_a_field_that_is_wanted_and_missing_is_named() -> None:
    assert required_fields(Order, ("id", "customer"), ()) == "it has no field customer"
    assert required_fields(Packed, ("weight", "size"), ()) == "it has no field size"
    assert required_fields(Posted, ("stamp", "city"), ()) == "it has no field city"


def test_a_field_that_nobody_fills_is_named() -> None:
    assert required_fields(Order, ("lines",), ()) == "nothing fills its field id"
    assert required_fields(Packed, (), ()) == "nothing fills its field weight"
    assert required_fields(Posted, (), ()) == "nothing fills its field stamp"
    assert required_fields(Order, (), ("id",)) is None


def test_what_is_no_class_has_no_fields() -> None:
    assert required_fields("Order", (), ()) == "it is no class"
    assert required_fields(int, (), ()) is None


def test_the_names_of_fields_are_those_that_can_be_given() -> None:
    assert list(field_names(Order)) == ["id", "lines", "notes"]
    assert list(field_names(Packed)) == ["weight", "label"]
    assert list(field_names(Posted)) == ["stamp", "note"]


def test_a_class_that_is_no_record_is_frozen_by_becoming_one() -> None:
    assert frozen_fix(dict) == "@dataclass(frozen=True)"
    assert (frozen_fix(Order), frozen_fix(Packed), frozen_fix(Posted)) == (None, None, None)


def test_a_plain_subclass_of_a_frozen_dataclass_is_not_frozen() -> None:
    class More(Order):
        more: int

    assert frozen_fix(More) == "@dataclass(frozen=True)"
