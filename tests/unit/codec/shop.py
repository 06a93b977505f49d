"""The types that the codec's tests write and read."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Any, Generic, Literal, NamedTuple, NewType, TypeVar
from uuid import UUID

from msgspec import Struct

from mainspring.codec import Codec
from mainspring.core.messages import message

T = TypeVar("T")
OrderId = NewType("OrderId", str)


class Colour(Enum):
    RED = "red"
    GREEN = "green"


class Size(IntEnum):
    SMALL = 1
    LARGE = 2


class Speed(StrEnum):
    SLOW = "slow"
    FAST = "fast"


class Point(NamedTuple):
    x: int
    y: int = 0


@dataclass(frozen=True)
class Line:
    sku: str
    qty: int
    price: int


@dataclass(frozen=True)
class Address:
    city: str
    zip: str


@dataclass(frozen=True)
class ForeignAddress(Address):
    country: str


@dataclass(frozen=True)
class Order:
    id: str
    customer: str
    currency: str
    lines: tuple[Line, ...]
    address: Address
    note: str


@dataclass(frozen=True)
class Card:
    number: str


@message(aliases=["Bill"])
@dataclass(frozen=True)
class Invoice:
    number: str


class Voucher(Struct, frozen=True):
    number: str


@dataclass(frozen=True)
class Payment:
    method: Card | Invoice
    fallback: Card | Invoice | None = None
    tried: list[Card | Invoice | Voucher] = field(default_factory=list[Card | Invoice | Voucher])
    by_name: dict[str, tuple[Card | Invoice, int]] = field(default_factory=dict[str, tuple[Card | Invoice, int]])
    known: frozenset[Card | Invoice] = frozenset()
    mixed: Card | Invoice | str | list[int] | None = None


@dataclass(frozen=True)
class Leaf:
    value: int


@dataclass(frozen=True)
class Branch:
    left: Tree
    right: Tree


Tree = Leaf | Branch


@dataclass(frozen=True)
class Chain:
    next: Chain | None = None


@dataclass(frozen=True)
class Box(Generic[T]):
    content: T


@dataclass(frozen=True)
class Boxes(Box[list[T]], Generic[T]):
    first: T


@dataclass(frozen=True)
class Shelf:
    numbers: Box[int]
    names: Boxes[str]


@dataclass(frozen=True)
class Everything:
    text: str
    whole: int
    real: float
    flag: bool
    nothing: None
    raw: bytes
    money: Decimal
    key: UUID
    moment: datetime
    day: date
    hour: time
    span: timedelta
    colour: Colour
    size: Size
    speed: Speed
    grade: Literal["a", "b", 3]
    order: OrderId
    maybe: int | None
    either: int | str | None
    number: int | float
    items: list[str]
    pair: tuple[int, str]
    many: tuple[Decimal, ...]
    point: Point
    words: set[str]
    numbers: frozenset[int]
    amounts: frozenset[Decimal]
    lines: frozenset[Line]
    by_text: dict[str, int]
    by_number: dict[int, str]
    by_colour: dict[Colour, int]
    by_size: dict[Size, int]
    by_key: dict[UUID, datetime]
    by_day: dict[date, Decimal]
    by_moment: dict[datetime, Card | Invoice]
    anything: Any
    payment: Payment
    tree: Tree


ORDER = Order(
    "o-123456",
    "c-98765",
    "EUR",
    (Line("sku-1", 2, 1999), Line("sku-2", 1, 499)),
    Address("Berlin", "10115"),
    "please leave at the door",
)


def codec_for(*types: type[Any]) -> Codec:
    codec = Codec()
    codec.register(*types)
    return codec


def round_trip(value: object) -> object:
    codec = codec_for(type(value))
    encoded = codec.encode(value)
    return codec.decode(encoded.name, encoded.version, encoded.body)


def body_of(value: object) -> bytes:
    return codec_for(type(value)).encode(value).body
