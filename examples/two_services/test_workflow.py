from pathlib import Path

from examples.two_services import orders, payments
from examples.two_services.bank import LIMIT_CENTS, Bank, read_book
from mainspring import Complete, Kind, Publish, Send
from mainspring.testing import given

PLACE = orders.PlaceOrder("o-1", 4_200, "visa")
CHARGE = payments.ChargeCard("o-1", 4_200, "visa")


def test_an_order_has_its_card_charged_by_somebody_else() -> None:
    given(orders.Order()).when(PLACE).then(Send(orders.ChargeCard("o-1", 4_200, "visa")))


def test_a_paid_order_is_confirmed() -> None:
    (
        given(orders.Order(), PLACE)
        .when(orders.CardCharged("o-1", "charge-o-1"), kind=Kind.EVENT)
        .then(Publish(orders.OrderConfirmed("o-1", "charge-o-1")), Complete())
        .then_state(orders.Settled(confirmed=True))
    )


def test_an_order_whose_card_is_refused_is_rejected() -> None:
    (
        given(orders.Order(), PLACE)
        .when(orders.CardRefused("o-1", "no cover"), kind=Kind.EVENT)
        .then(Publish(orders.OrderRejected("o-1", "no cover")), Complete())
        .then_state(orders.Settled(confirmed=False))
    )


def test_a_charge_is_told() -> None:
    (
        given(payments.Payment(), CHARGE)
        .when(payments.BankAnswered("o-1", "charge-o-1", None), kind=Kind.RESULT)
        .then(Publish(payments.CardCharged("o-1", "charge-o-1")), Complete())
        .then_state(payments.Settled("charge-o-1"))
    )


def test_a_refusal_is_told_with_its_reason() -> None:
    (
        given(payments.Payment(), CHARGE)
        .when(payments.BankAnswered("o-1", None, "no cover"), kind=Kind.RESULT)
        .then(Publish(payments.CardRefused("o-1", "no cover")), Complete())
        .then_state(payments.Settled(None))
    )


def test_the_two_services_agree_upon_names_and_fields() -> None:
    for name in ("ChargeCard", "CardCharged", "CardRefused"):
        ours, theirs = getattr(orders, name), getattr(payments, name)
        assert ours is not theirs
        assert ours.__annotations__ == theirs.__annotations__


def test_the_bank_charges_once_for_each_key(tmp_path: Path) -> None:
    bank = Bank(tmp_path / "book")
    answers = [bank.charge("k-1", "o-1", 4_200, "visa") for _ in range(3)]
    assert len(set(answers)) == 1
    assert bank.charge("k-2", "o-2", LIMIT_CENTS + 1, "visa").reason == "the amount is over the card's limit"
    assert bank.charge("k-3", "o-3", 1, "stolen").charge_id is None
    assert [charge["order_id"] for charge in read_book(tmp_path / "book")] == ["o-1"]
