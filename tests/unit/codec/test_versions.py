"""Old data stays readable: former names, and upcasters from version to version."""

from __future__ import annotations

from dataclasses import dataclass, make_dataclass
from typing import Any

import pytest
from msgspec import Struct

from mainspring.codec import Codec
from mainspring.codec.versions import check_version
from mainspring.core.messages import MessageType, message
from mainspring.errors import ERASED_TYPE, DecodeError, EncodeError, ErasedError, UnknownTypeError
from tests.unit.codec.shop import Card, Invoice, body_of, codec_for, round_trip


def with_currency(body: dict[str, Any]) -> dict[str, Any]:
    return body | {"currency": "EUR"}


def with_cents(body: dict[str, Any]) -> dict[str, Any]:
    return {"id": body["id"], "currency": body["currency"], "cents": body["amount"] * 100}


@message(name="Price", version=3, aliases=["Cost", "Fee"], upcasters=[with_currency, with_cents])
@dataclass(frozen=True)
class Price:
    id: str
    currency: str
    cents: int


@message(version=2, upcasters=[lambda body: {"number": str(body["digits"])}])
@dataclass(frozen=True)
class Account:
    number: str


@dataclass(frozen=True)
class Transfer:
    source: Account
    target: Account | Card
    price: Price | None = None
    more: tuple[Account, ...] = ()


@message(version=2, upcasters=[lambda body: body | {"depth": 1}])
@dataclass(frozen=True)
class Nested:
    depth: int
    inner: Nested | None = None


PRICE = Price("p-1", "EUR", 500)


def test_a_codec_says_what_it_reads_under_which_names_up_to_which_version() -> None:
    codec = codec_for(Price, Account)
    assert codec.versions() == {"Price": 3, "Cost": 3, "Fee": 3, "Account": 2}
    assert codec.classes() == {"Price": Price, "Cost": Price, "Fee": Price, "Account": Account}


def test_who_calls_authors_code_with_care_is_given_what_reads_an_older_version() -> None:
    called: list[tuple[str, int]] = []

    def carefully(decode: Any, name: str, version: Any, body: bytes) -> Any:
        called.append((name, version))
        return decode(version, body)

    codec = Codec(older=carefully)
    codec.register(Account)
    assert codec.decode("Account", 1, b'{"digits":7}') == codec.decode("Account", 2, b'{"number":"7"}') == Account("7")
    assert called == [("Account", 1)]


def test_what_is_newer_or_unknown_is_not_read_and_what_was_erased_needs_no_type() -> None:
    codec = codec_for(Price)
    assert [codec.reads("Fee", version) for version in (1, 3, 4)] == [True, True, False]
    assert [codec.reads(name, 1) for name in ("Invoice", ERASED_TYPE + "Invoice")] == [False, True]


@pytest.mark.parametrize(
    ("version", "body"),
    [
        (1, b'{"id":"p-1","amount":5}'),
        (2, b'{"id":"p-1","amount":5,"currency":"EUR"}'),
        (3, b'{"id":"p-1","currency":"EUR","cents":500}'),
    ],
)
@pytest.mark.parametrize("name", ["Price", "Cost", "Fee"])
def test_every_version_is_read_under_every_name(name: str, version: int, body: bytes) -> None:
    assert codec_for(Price).decode(name, version, body) == PRICE
    assert codec_for(Price).decode_outside(name, version, body) == PRICE


def test_the_newest_name_and_version_are_written() -> None:
    encoded = codec_for(Price).encode(PRICE)

    assert (encoded.name, encoded.version) == ("Price", 3)


def test_a_newer_version_asks_for_a_newer_worker() -> None:
    with pytest.raises(UnknownTypeError, match=r"Price: is stored at version 4.*up to 3.*Upgrade this worker"):
        codec_for(Price).decode("Price", 4, b"{}")


@pytest.mark.parametrize("version", [0, -1, "1", None])
def test_a_version_that_never_was_is_unknown(version: Any) -> None:
    with pytest.raises(UnknownTypeError, match=r"Price: has no version .*Use a whole number from 1 to 3"):
        codec_for(Price).decode("Price", version, b"{}")


def test_a_version_is_looked_at_before_the_body() -> None:
    with pytest.raises(UnknownTypeError, match="Upgrade this worker"):
        codec_for(Price).decode("Price", 4, b"{")


def test_the_newest_version_is_one_that_there_is() -> None:
    check_version(MessageType("Order", 2), 2)
    with pytest.raises(UnknownTypeError):
        check_version(MessageType("Order", 2), 3)


def test_what_was_erased_is_known_and_told_as_such() -> None:
    assert Codec().knows(f"{ERASED_TYPE}Price")
    for decode in (Codec().decode, Codec().decode_outside):
        with pytest.raises(ErasedError, match=r"^Price: its body was erased"):
            decode(f"{ERASED_TYPE}Price", 1, b"{}")


def test_a_name_that_is_no_text_is_unknown() -> None:
    name: Any = 7
    with pytest.raises(UnknownTypeError, match=r"^7: no type of that name is registered"):
        Codec().decode(name, 1, b"{}")


def test_an_unknown_name_says_how_to_make_it_known() -> None:
    with pytest.raises(UnknownTypeError, match=r"'os.system': no type of that name is registered.*aliases"):
        Codec().decode("os.system", 1, b"{}")
    with pytest.raises(UnknownTypeError, match="no type of that name"):
        Codec().decode_outside("Price", 1, b"{}")


def test_an_upcaster_that_fails_is_named() -> None:
    with pytest.raises(DecodeError, match=r"the upcaster from version 2 to 3 failed on .*KeyError\('amount'\)"):
        codec_for(Price).decode("Price", 2, b'{"id":"p-1","currency":"EUR"}')


def test_an_upcaster_that_leaves_a_field_out_is_a_wrong_body() -> None:
    @message(version=2, upcasters=[lambda body: body])
    @dataclass(frozen=True)
    class Broken:
        number: str

    with pytest.raises(DecodeError, match="Object missing required field `number`"):
        codec_for(Broken).decode("Broken", 1, b"{}")


ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)


@pytest.mark.parametrize("made", [object(), "\ud800", ENDLESS], ids=["object", "half a character", "endless"])
def test_an_upcaster_that_makes_something_else_than_json_is_told(made: object) -> None:
    @message(version=2, upcasters=[lambda body: body | {"number": made}])
    @dataclass(frozen=True)
    class Broken:
        number: str

    with pytest.raises(DecodeError, match="its upcasters made something that is not JSON"):
        codec_for(Broken).decode("Broken", 1, b"{}")


@pytest.mark.parametrize("body", [b"{", b"\xff", b'{"id":"\xff"}', b"[" * 100_000])
def test_an_old_body_that_is_not_json_is_told(body: bytes) -> None:
    with pytest.raises(DecodeError, match="the body is not JSON"):
        codec_for(Price).decode("Price", 1, body)


def test_a_versioned_class_within_another_keeps_its_version_there() -> None:
    transfer = Transfer(Account("1"), Account("2"), PRICE, (Account("3"),))

    assert body_of(transfer).startswith(
        b'{"source":{"$version":2,"number":"1"},"target":{"$type":"Account","$version":2,"number":"2"},'
    )
    assert round_trip(transfer) == transfer


def test_a_class_within_another_is_upcast_from_the_version_it_had_then() -> None:
    body = (
        b'{"source":{"digits":1},"target":{"$type":"Account","digits":2},'
        b'"price":{"$version":2,"id":"p-1","amount":5,"currency":"EUR"},"more":[{"digits":3},{"$version":2,"number":"4"}]}'
    )

    again = codec_for(Transfer).decode("Transfer", 1, body)

    assert again == Transfer(Account("1"), Account("2"), PRICE, (Account("3"), Account("4")))


def test_a_class_within_another_of_a_newer_version_asks_for_a_newer_worker() -> None:
    with pytest.raises(UnknownTypeError, match=r"Account: is stored at version 9.*Upgrade"):
        codec_for(Transfer).decode("Transfer", 1, b'{"source":{"$version":9},"target":{"$type":"Card","number":"1"}}')


def test_a_versioned_class_within_another_is_an_object() -> None:
    with pytest.raises(DecodeError, match=r"\.source: Expected `object`, got \[\]"):
        codec_for(Transfer).decode("Transfer", 1, b'{"source":[],"target":{"$type":"Card","number":"1"}}')


def test_a_wrong_value_in_or_for_a_versioned_class_within_another_is_told() -> None:
    wrong: Any = "x"
    with pytest.raises(EncodeError) as caught:
        body_of(Transfer(wrong, Card("1")))
    assert str(caught.value) == "Transfer: source must be an Account and is str 'x'. Pass an Account itself."
    with pytest.raises(EncodeError, match=r"Transfer: source\.number must be a str and is NoneType None"):
        body_of(Transfer(Account(None), Card("1")))  # pyright: ignore[reportArgumentType]  the wrong one


def test_a_versioned_class_within_another_may_hold_a_union_and_a_set() -> None:
    @message(version=2, upcasters=[lambda body: body])
    @dataclass(frozen=True)
    class Wallet:
        method: Card | Invoice
        words: frozenset[str]

    cls = make_dataclass("Message", [("wallet", Wallet)], frozen=True)
    value = cls(Wallet(Invoice("1"), frozenset("cab")))

    assert body_of(value) == (
        b'{"wallet":{"$version":2,"method":{"$type":"Invoice","number":"1"},"words":["a","b","c"]}}'
    )
    assert round_trip(value) == value


def test_a_class_that_knows_no_other_fields_does_not_see_its_version() -> None:
    @message(version=2, upcasters=[lambda body: body])
    class Closed(Struct, frozen=True, forbid_unknown_fields=True):
        number: int

    cls = make_dataclass("Message", [("value", Closed)], frozen=True)

    assert round_trip(cls(Closed(1))) == cls(Closed(1))


def test_a_versioned_class_within_itself_comes_back() -> None:
    nested = Nested(2, Nested(3))

    assert body_of(nested) == b'{"depth":2,"inner":{"$version":2,"depth":3,"inner":null}}'
    assert round_trip(nested) == nested


def test_a_renamed_class_reads_what_it_wrote_under_its_old_name() -> None:
    assert codec_for(Invoice).decode("Bill", 1, b'{"number":"1"}') == Invoice("1")
