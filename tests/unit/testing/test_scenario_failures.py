from __future__ import annotations

import traceback
from collections.abc import Callable
from datetime import timedelta

import pytest

from mainspring import Decisions, Received, Schedule, Send
from mainspring.errors import CannotBeginError, DefinitionError, UnknownTransitionError
from mainspring.testing import given
from tests.unit.testing.paid_orders import (
    CHARGED,
    ORDER,
    PLACE,
    SHIPPED,
    TIMED_OUT,
    AwaitingPayment,
    ChargeCard,
    Input,
    New,
    Orders,
    Output,
    ShipOrder,
    State,
)
from tests.unit.testing.stories import failure, shown_frames

CHARGE = Send(ChargeCard(ORDER, 4200))
TIMEOUT = Schedule(TIMED_OUT, after=timedelta(minutes=5))


def test_a_decision_that_differs_in_some_fields_shows_only_these() -> None:
    check = given(Orders()).when(PLACE)
    text = failure(lambda: check.then(Send(ChargeCard(ORDER, 4300)), Schedule(TIMED_OUT, after=timedelta(minutes=6))))
    assert (
        text
        == """\
Orders decided something else
  when:     PlaceOrder(order_id='o-1', amount=4200)
  in state: New()

~ Send(ChargeCard): amount: expected 4300, decided 4200
~ Schedule(PaymentTimedOut): after: expected 0:06:00, decided 0:05:00"""
    )


def test_an_order_that_differs_is_told_without_repeating_what_is_the_same() -> None:
    text = failure(lambda: given(Orders()).when(PLACE).then(TIMEOUT, CHARGE))
    assert text.splitlines()[4:] == [
        "- Schedule(PaymentTimedOut(order_id='o-1'), after=0:05:00)",
        "  Send(ChargeCard(order_id='o-1', amount=4200))",
        "+ Schedule(PaymentTimedOut(order_id='o-1'), after=0:05:00)",
    ]


def test_decisions_where_none_were_expected_are_all_shown() -> None:
    text = failure(lambda: given(Orders()).when(PLACE).then())
    assert text.splitlines()[4:] == [
        "+ Send(ChargeCard(order_id='o-1', amount=4200))",
        "+ Schedule(PaymentTimedOut(order_id='o-1'), after=0:05:00)",
    ]


def test_a_state_that_differs_is_told_by_its_fields() -> None:
    text = failure(lambda: given(Orders()).when(PLACE).then_state(AwaitingPayment("o-2", 4200)))
    assert (
        text
        == """\
Orders is in another state
  when:     PlaceOrder(order_id='o-1', amount=4200)
  in state: New()

~ AwaitingPayment: order_id: expected 'o-2', is 'o-1'"""
    )


def test_a_state_of_another_type_is_shown_whole() -> None:
    text = failure(lambda: given(Orders()).when(PLACE).then_state(New()))
    assert text.splitlines()[4:] == ["- New()", "+ AwaitingPayment(order_id='o-1', amount=4200)"]


def test_events_that_differ_are_told_as_a_diff() -> None:
    text = failure(lambda: given(Orders(), PLACE, CHARGED).when(SHIPPED).then_events(Received(SHIPPED)))
    assert text.splitlines()[4:] == [
        "  Received(message=OrderShipped(order_id='o-1'))",
        "+ Completed(result=None)",
    ]


def test_an_unexpected_error_fails_with_its_text() -> None:
    with pytest.raises(AssertionError) as caught:
        given(Orders()).when(CHARGED).then()
    assert (
        str(caught.value)
        == """\
Orders raised an error
  when:     CardCharged(order_id='o-1')
  in state: New()

CannotBeginError: Orders cannot begin with CardCharged: it begins with PlaceOrder.
  message: CardCharged(order_id='o-1')
  state:   New()
Send PlaceOrder first, or add CardCharged to `begins`."""
    )


def test_an_unexpected_error_fails_a_check_of_the_state_too() -> None:
    assert failure(lambda: given(Orders()).when(CHARGED).then_state(New())).startswith("Orders raised an error")


def test_an_error_that_did_not_come_says_what_was_decided_instead() -> None:
    text = failure(lambda: given(Orders(), PLACE, CHARGED).when(SHIPPED).then_raises(UnknownTransitionError))
    assert (
        text
        == """\
Orders raised nothing, expected UnknownTransitionError; it decided
  when:     OrderShipped(order_id='o-1')
  in state: AwaitingShipment(order_id='o-1')

+ Complete()"""
    )


def test_an_error_of_another_type_is_told() -> None:
    text = failure(lambda: given(Orders()).when(CHARGED).then_raises(UnknownTransitionError))
    assert text.startswith("Orders raised another error than UnknownTransitionError")
    assert "CannotBeginError: Orders cannot begin with CardCharged" in text


class Broken(Orders):
    begins = ShipOrder


class Overdrawn(Orders):
    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        raise ValueError("negative amount")


def unexpected() -> object:
    return given(Orders()).when(CHARGED).then()


def unlike_the_expected() -> object:
    return given(Orders()).when(CHARGED).then_raises(UnknownTransitionError)


def failing_past() -> object:
    return given(Orders(), PLACE, PLACE)


def failing_class() -> object:
    return given(Broken())


@pytest.mark.parametrize("check", [unexpected, unlike_the_expected, failing_past, failing_class])
def test_an_error_of_the_kits_own_is_told_by_its_text_alone(check: Callable[[], object]) -> None:
    with pytest.raises((AssertionError, DefinitionError)) as caught:
        check()
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert shown_frames(caught.tb) == [__file__, __file__]


@pytest.mark.parametrize(
    "check", [lambda: given(Overdrawn()).when(PLACE).then(), lambda: given(Overdrawn(), PLACE, CHARGED)]
)
def test_an_error_of_the_authors_own_code_is_chained_from_where_it_enters_it(check: Callable[[], object]) -> None:
    with pytest.raises(AssertionError, match="ValueError: negative amount") as caught:
        check()
    cause = caught.value.__cause__
    assert isinstance(cause, ValueError)
    assert [frame.f_code.co_name for frame, _ in traceback.walk_tb(cause.__traceback__)] == ["decide"]


def test_an_error_with_another_text_shows_both() -> None:
    text = failure(lambda: given(Orders()).when(CHARGED).then_raises(CannotBeginError, match="begins with Refund"))
    assert text.splitlines()[4:6] == [
        "- begins with Refund",
        "+ Orders cannot begin with CardCharged: it begins with PlaceOrder.",
    ]


def test_an_error_in_the_past_says_which_item_it_was() -> None:
    text = failure(failing_past)
    assert text.splitlines()[:5] == [
        "Orders raised an error at number 2 of its past",
        "  given:    PlaceOrder(order_id='o-1', amount=4200)",
        "  in state: AwaitingPayment(order_id='o-1', amount=4200)",
        "",
        "UnknownTransitionError: Orders has no transition for PlaceOrder in state AwaitingPayment.",
    ]


def test_the_kits_own_frames_are_hidden_from_pytest() -> None:
    with pytest.raises(AssertionError) as caught:
        given(Orders()).when(PLACE).then()
    assert shown_frames(caught.tb) == [__file__]
