import asyncio

import pytest

from examples.payment_gateway.handlers import GatewayUnreachableError, charge_card, void_charge
from examples.payment_gateway.workflow import (
    TIME_TO_ACCEPT,
    TIME_TO_CONFIRM,
    AcceptanceTimedOut,
    AwaitingConfirmation,
    ChargeAccepted,
    ChargeCard,
    ChargeDeclined,
    ChargeVoided,
    Charging,
    Collected,
    CollectPayment,
    ConfirmationTimedOut,
    Input,
    NotCollected,
    Payment,
    PaymentCollected,
    PaymentConfirmed,
    PaymentFailed,
    PaymentRefused,
    VoidCharge,
    Voiding,
)
from mainspring import CancelSchedule, Complete, Fail, Kind, Publish, Schedule, Send
from mainspring.errors import CannotBeginError, InstanceEndedError, UnknownTransitionError
from mainspring.testing import given

COLLECT = CollectPayment("p-1", "o-1", "tok-visa", 4_200)
ACCEPTED = ChargeAccepted("p-1", "ch-p-1")
CONFIRMED = PaymentConfirmed("p-1", "tx-9")


def test_a_payment_begins_by_charging_the_card_and_waiting_for_the_gateways_answer() -> None:
    (
        given(Payment())
        .when(COLLECT)
        .then(
            Send(ChargeCard("p-1", "tok-visa", 4_200)),
            Schedule(AcceptanceTimedOut("p-1"), after=TIME_TO_ACCEPT),
        )
        .then_state(Charging("o-1"))
    )


def test_an_accepted_charge_waits_for_the_banks_word_and_no_longer_for_the_gateway() -> None:
    (
        given(Payment(), COLLECT)
        .when(ACCEPTED, kind=Kind.RESULT)
        .then(
            CancelSchedule(AcceptanceTimedOut),
            Schedule(ConfirmationTimedOut("p-1"), after=TIME_TO_CONFIRM),
        )
        .then_state(AwaitingConfirmation("o-1", "ch-p-1"))
    )


def test_a_confirmed_payment_is_told_to_whoever_listens() -> None:
    (
        given(Payment(), COLLECT, ACCEPTED)
        .when(CONFIRMED, kind=Kind.EVENT)
        .then(Publish(PaymentCollected("p-1", "o-1", "tx-9")), Complete())
        .then_state(Collected("tx-9"))
    )


def test_a_confirmation_may_overtake_the_answer_to_the_charge() -> None:
    (
        given(Payment(), COLLECT)
        .when(CONFIRMED, kind=Kind.EVENT)
        .then(Publish(PaymentCollected("p-1", "o-1", "tx-9")), Complete())
        .then_state(Collected("tx-9"))
    )


def test_a_declined_charge_ends_the_payment() -> None:
    (
        given(Payment(), COLLECT)
        .when(ChargeDeclined("p-1", "the card has expired"), kind=Kind.RESULT)
        .then(Publish(PaymentFailed("p-1", "o-1", "the card has expired")), Complete())
        .then_state(NotCollected("the card has expired"))
    )


@pytest.mark.parametrize("past", [[COLLECT], [COLLECT, ACCEPTED]])
def test_a_payment_that_the_bank_refuses_ends(past: list[Input]) -> None:
    (
        given(Payment(), *past)
        .when(PaymentRefused("p-1", "insufficient funds"), kind=Kind.EVENT)
        .then(Publish(PaymentFailed("p-1", "o-1", "insufficient funds")), Complete())
        .then_state(NotCollected("insufficient funds"))
    )


def test_a_gateway_that_does_not_answer_has_its_charge_voided() -> None:
    (
        given(Payment(), COLLECT)
        .when(AcceptanceTimedOut("p-1"))
        .then(Send(VoidCharge("p-1")))
        .then_state(Voiding("o-1", "the gateway did not answer"))
    )


def test_a_charge_that_the_bank_does_not_confirm_is_voided() -> None:
    (
        given(Payment(), COLLECT, ACCEPTED)
        .when(ConfirmationTimedOut("p-1"))
        .then(Send(VoidCharge("p-1")))
        .then_state(Voiding("o-1", "the bank did not confirm"))
    )


def test_a_voided_payment_fails_so_that_somebody_looks_into_it() -> None:
    (
        given(Payment(), COLLECT, ACCEPTED, ConfirmationTimedOut("p-1"))
        .when(ChargeVoided("p-1"), kind=Kind.RESULT)
        .then(
            Publish(PaymentFailed("p-1", "o-1", "the bank did not confirm")),
            Fail("the bank did not confirm"),
        )
        .then_state(NotCollected("the bank did not confirm"))
    )


@pytest.mark.parametrize(
    ("late", "kind"),
    [
        (ACCEPTED, Kind.RESULT),
        (ChargeDeclined("p-1", "the card has expired"), Kind.RESULT),
        (CONFIRMED, Kind.EVENT),
        (PaymentRefused("p-1", "insufficient funds"), Kind.EVENT),
    ],
)
def test_an_answer_that_comes_while_the_charge_is_voided_changes_nothing(late: Input, kind: Kind) -> None:
    (
        given(Payment(), COLLECT, AcceptanceTimedOut("p-1"))
        .when(late, kind=kind)
        .then()
        .then_state(Voiding("o-1", "the gateway did not answer"))
    )


def test_a_timeout_that_lost_its_race_is_ignored() -> None:
    (
        given(Payment(), COLLECT, ACCEPTED)
        .when(AcceptanceTimedOut("p-1"))
        .then()
        .then_state(AwaitingConfirmation("o-1", "ch-p-1"))
    )


@pytest.mark.parametrize("past", [[COLLECT], [COLLECT, ACCEPTED], [COLLECT, AcceptanceTimedOut("p-1")]])
def test_asking_twice_charges_once(past: list[Input]) -> None:
    given(Payment(), *past).when(COLLECT).then()


def test_a_void_that_nobody_asked_for_is_an_unknown_transition() -> None:
    given(Payment(), COLLECT).when(ChargeVoided("p-1"), kind=Kind.RESULT).then_raises(
        UnknownTransitionError, match="ChargeVoided in state Charging"
    )


def test_a_confirmation_cannot_begin_a_payment() -> None:
    given(Payment()).when(CONFIRMED, kind=Kind.EVENT).then_raises(CannotBeginError, match="CollectPayment")


def test_nothing_is_decided_after_the_end() -> None:
    given(Payment(), COLLECT, CONFIRMED).when(CONFIRMED, kind=Kind.EVENT).then_raises(InstanceEndedError)


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        (ChargeCard("p-1", "tok-visa", 4_200), ChargeAccepted("p-1", "ch-p-1")),
        (ChargeCard("p-1", "tok-stolen", 4_200), ChargeDeclined("p-1", "the card was reported stolen")),
        (ChargeCard("p-1", "tok-visa", 500_001), ChargeDeclined("p-1", "the amount is over the gateway's limit")),
    ],
)
def test_the_gateway_gives_a_repeated_command_the_same_answer(command: ChargeCard, answer: Input) -> None:
    assert asyncio.run(charge_card(command)) == answer
    assert asyncio.run(charge_card(command)) == answer


def test_an_unreachable_gateway_is_left_to_the_retries() -> None:
    with pytest.raises(GatewayUnreachableError):
        asyncio.run(charge_card(ChargeCard("p-1", "tok-unreachable", 4_200)))


def test_the_workflow_takes_the_answer_to_an_accepted_charge() -> None:
    answer = asyncio.run(charge_card(ChargeCard("p-1", "tok-visa", 4_200)))
    given(Payment(), COLLECT).when(answer, kind=Kind.RESULT).then_state(AwaitingConfirmation("o-1", "ch-p-1"))


def test_the_workflow_takes_the_answer_to_a_declined_charge() -> None:
    answer = asyncio.run(charge_card(ChargeCard("p-1", "tok-expired", 4_200)))
    given(Payment(), COLLECT).when(answer, kind=Kind.RESULT).then_state(NotCollected("the card has expired"))


def test_the_workflow_takes_the_answer_to_a_void() -> None:
    answer = asyncio.run(void_charge(VoidCharge("p-1")))
    given(Payment(), COLLECT, AcceptanceTimedOut("p-1")).when(answer, kind=Kind.RESULT).then_state(
        NotCollected("the gateway did not answer")
    )
