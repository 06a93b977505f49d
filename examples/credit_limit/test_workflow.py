import asyncio

import pytest

from examples.credit_limit.handlers import ship_order
from examples.credit_limit.workflow import (
    NO_ANSWER,
    TIME_TO_ANSWER,
    Accepted,
    AwaitingLateAnswer,
    CheckingCredit,
    CreditCheckTimedOut,
    CreditInput,
    CreditLine,
    CreditOutput,
    CreditRefused,
    CreditReserved,
    CustomerCredit,
    OrderAccepted,
    OrderInput,
    OrderOnCredit,
    OrderRejected,
    OrderShipped,
    PlaceOrder,
    Rejected,
    ReleaseCredit,
    Reservation,
    ReserveCredit,
    SetCreditLimit,
    ShipmentFailed,
    ShipOrder,
    Shipping,
)
from mainspring import CancelSchedule, Complete, Kind, Publish, Replied, Reply, Schedule, Send, Sent
from mainspring.errors import CannotBeginError, InstanceEndedError, UnknownTransitionError
from mainspring.testing import Rehearsal, given

PLACE = PlaceOrder("o-1", "c-1", "bicycle", 80_000)
YES = CreditReserved("o-1", 80_000)
NO = CreditRefused("o-1", 50_000)
TIMEOUT = CreditCheckTimedOut("o-1")

LIMIT = SetCreditLimit("c-1", 100_000)
ASK = ReserveCredit("c-1", "o-1", 80_000)
RELEASE = ReleaseCredit("c-1", "o-1")


def test_an_order_asks_for_credit_and_waits_for_the_reply() -> None:
    (
        given(OrderOnCredit())
        .when(PLACE)
        .then(
            Send(ReserveCredit("c-1", "o-1", 80_000)),
            Schedule(TIMEOUT, after=TIME_TO_ANSWER),
        )
        .then_state(CheckingCredit("c-1", "bicycle"))
    )


def test_an_order_with_credit_ships() -> None:
    (
        given(OrderOnCredit(), PLACE)
        .when(YES, kind=Kind.REPLY)
        .then(CancelSchedule(CreditCheckTimedOut), Send(ShipOrder("o-1", "bicycle")))
        .then_state(Shipping("c-1"))
    )


def test_an_order_without_credit_is_rejected() -> None:
    reason = "the customer's credit covers only 50000 cents"
    (
        given(OrderOnCredit(), PLACE)
        .when(NO, kind=Kind.REPLY)
        .then(Publish(OrderRejected("o-1", reason)), Complete())
        .then_state(Rejected(reason))
    )


def test_a_shipped_order_is_accepted_and_keeps_its_credit() -> None:
    (
        given(OrderOnCredit(), PLACE, YES)
        .when(OrderShipped("o-1", "parcel-o-1"), kind=Kind.RESULT)
        .then(Publish(OrderAccepted("o-1", "parcel-o-1")), Complete())
        .then_state(Accepted("parcel-o-1"))
    )


def test_an_order_that_cannot_be_shipped_gives_its_credit_back() -> None:
    (
        given(OrderOnCredit(), PLACE, YES)
        .when(ShipmentFailed("o-1", "no bicycle in stock"), kind=Kind.RESULT)
        .then(
            Send(ReleaseCredit("c-1", "o-1")),
            Publish(OrderRejected("o-1", "no bicycle in stock")),
            Complete(),
        )
        .then_state(Rejected("no bicycle in stock"))
    )


def test_an_order_does_not_wait_long_for_the_reply() -> None:
    (
        given(OrderOnCredit(), PLACE)
        .when(TIMEOUT)
        .then(Publish(OrderRejected("o-1", NO_ANSWER)))
        .then_state(AwaitingLateAnswer("c-1"))
    )


def test_a_yes_that_comes_too_late_is_given_back() -> None:
    (
        given(OrderOnCredit(), PLACE, TIMEOUT)
        .when(YES, kind=Kind.REPLY)
        .then(Send(ReleaseCredit("c-1", "o-1")), Complete())
        .then_state(Rejected(NO_ANSWER))
    )


def test_a_no_that_comes_too_late_has_nothing_to_give_back() -> None:
    (given(OrderOnCredit(), PLACE, TIMEOUT).when(NO, kind=Kind.REPLY).then(Complete()).then_state(Rejected(NO_ANSWER)))


def test_a_timeout_that_lost_its_race_is_ignored() -> None:
    given(OrderOnCredit(), PLACE, YES).when(TIMEOUT).then().then_state(Shipping("c-1"))


@pytest.mark.parametrize("past", [[PLACE], [PLACE, TIMEOUT], [PLACE, YES]])
def test_placing_the_same_order_again_asks_for_no_more_credit(past: list[OrderInput]) -> None:
    given(OrderOnCredit(), *past).when(PLACE).then()


def test_a_shipment_that_nobody_asked_for_is_an_unknown_transition() -> None:
    given(OrderOnCredit(), PLACE).when(OrderShipped("o-1", "parcel-o-1"), kind=Kind.RESULT).then_raises(
        UnknownTransitionError, match="OrderShipped in state CheckingCredit"
    )


def test_a_reply_cannot_begin_an_order() -> None:
    given(OrderOnCredit()).when(YES, kind=Kind.REPLY).then_raises(CannotBeginError, match="PlaceOrder")


def test_nothing_is_decided_about_an_order_after_its_end() -> None:
    given(OrderOnCredit(), PLACE, NO).when(YES, kind=Kind.REPLY).then_raises(InstanceEndedError)


def test_a_limit_is_remembered() -> None:
    given(CustomerCredit()).when(LIMIT).then().then_state(CreditLine(100_000))


def test_credit_within_the_limit_is_reserved() -> None:
    (
        given(CustomerCredit(), LIMIT)
        .when(ASK)
        .then(Reply(CreditReserved("o-1", 80_000)))
        .then_state(CreditLine(100_000, (Reservation("o-1", 80_000),)))
    )


def test_the_last_cent_of_the_limit_may_be_reserved() -> None:
    given(CustomerCredit(), LIMIT, ASK).when(ReserveCredit("c-1", "o-2", 20_000)).then(
        Reply(CreditReserved("o-2", 20_000))
    )


def test_credit_over_what_is_left_is_refused() -> None:
    (
        given(CustomerCredit(), LIMIT, ASK)
        .when(ReserveCredit("c-1", "o-2", 20_001))
        .then(Reply(CreditRefused("o-2", 20_000)))
        .then_state(CreditLine(100_000, (Reservation("o-1", 80_000),)))
    )


def test_a_customer_whose_limit_nobody_has_set_gets_no_credit() -> None:
    given(CustomerCredit()).when(ASK).then(Reply(CreditRefused("o-1", 0))).then_state(CreditLine())


def test_asking_twice_for_the_same_order_gets_the_same_answer_and_reserves_once() -> None:
    (
        given(CustomerCredit(), LIMIT, ASK)
        .when(ASK)
        .then(Reply(CreditReserved("o-1", 80_000)))
        .then_state(CreditLine(100_000, (Reservation("o-1", 80_000),)))
    )


@pytest.mark.parametrize("past", [[LIMIT, ASK], [LIMIT, ASK, RELEASE], [LIMIT]])
def test_released_credit_is_free_again_however_often_it_is_released(past: list[CreditInput]) -> None:
    given(CustomerCredit(), *past).when(RELEASE).then().then_state(CreditLine(100_000))


def test_a_lowered_limit_keeps_what_was_promised_and_promises_no_more() -> None:
    lowered = given(CustomerCredit(), LIMIT, ASK, SetCreditLimit("c-1", 10_000))
    lowered.when(ReserveCredit("c-1", "o-2", 1)).then(Reply(CreditRefused("o-2", 0))).then_state(
        CreditLine(10_000, (Reservation("o-1", 80_000),))
    )


@pytest.mark.parametrize(
    ("limit_cents", "outcome"),
    [(80_000, Shipping("c-1")), (79_999, Rejected("the customer's credit covers only 79999 cents"))],
)
def test_the_two_workflows_understand_each_other(limit_cents: int, outcome: Shipping | Rejected) -> None:
    order, customer = Rehearsal(OrderOnCredit()), Rehearsal(CustomerCredit())
    customer.take(SetCreditLimit("c-1", limit_cents))
    for event in order.take(PLACE).events:
        match event:
            case Sent(ReserveCredit() as question):
                for reply in replies(customer, question):
                    order.take(reply, kind=Kind.REPLY)
    assert order.state == outcome


def replies(customer: Rehearsal[CreditInput, CreditLine, CreditOutput], question: ReserveCredit) -> list[CreditOutput]:
    return [event.message for event in customer.take(question).events if isinstance(event, Replied)]


@pytest.mark.parametrize(
    ("product", "result", "state"),
    [
        ("bicycle", OrderShipped("o-1", "parcel-o-1"), Accepted("parcel-o-1")),
        ("lawn mower", ShipmentFailed("o-1", "no lawn mower in stock"), Rejected("no lawn mower in stock")),
    ],
)
def test_the_order_takes_what_the_warehouse_answers(
    product: str, result: OrderInput, state: Accepted | Rejected
) -> None:
    command = ShipOrder("o-1", product)
    assert asyncio.run(ship_order(command)) == asyncio.run(ship_order(command)) == result
    given(OrderOnCredit(), PLACE, YES).when(result, kind=Kind.RESULT).then_state(state)
