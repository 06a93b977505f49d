from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mainspring import (
    Began,
    CancelSchedule,
    Complete,
    Completed,
    Decisions,
    Envelope,
    Event,
    InitiatedBy,
    Kind,
    Publish,
    Received,
    Reply,
    Schedule,
    Scheduled,
    Send,
    Sent,
    Workflow,
)
from mainspring.errors import CannotBeginError, ImpureCallError, InstanceEndedError, StepError, UnknownTransitionError
from mainspring.testing import envelope, given
from tests.testing.shop import (
    CHARGED,
    ORDER,
    PLACE,
    SHIPPED,
    TIMED_OUT,
    AwaitingPayment,
    AwaitingShipment,
    ChargeCard,
    Input,
    New,
    OrderAbandoned,
    Orders,
    Output,
    PaymentTimedOut,
    ShipOrder,
    State,
)

CHARGE = Send(ChargeCard(ORDER, 4200))
TIMEOUT = Schedule(TIMED_OUT, after=timedelta(minutes=5))


def failure(check: Callable[[], object]) -> str:
    with pytest.raises(AssertionError) as caught:
        check()
    return str(caught.value)


def mistake(check: Callable[[], object]) -> str:
    with pytest.raises(TypeError) as caught:
        check()
    return str(caught.value)


def untyped(value: object) -> Any:
    """Return a value as users without a type checker pass it."""
    return value


# What passes.


def test_inputs_of_the_past_are_stepped_for_real() -> None:
    given(Orders(), PLACE).when(CHARGED).then(CancelSchedule(PaymentTimedOut), Send(ShipOrder(ORDER)))


def test_events_of_the_past_are_taken_as_they_are() -> None:
    given(Orders(), Began(), InitiatedBy(PLACE)).when(CHARGED).then_state(AwaitingShipment(ORDER))


def test_inputs_and_events_of_the_past_may_be_mixed() -> None:
    given(Orders(), PLACE, Received(CHARGED)).when(SHIPPED).then(Complete())


def test_then_without_decisions_expects_that_nothing_was_decided() -> None:
    given(Orders(), PLACE, CHARGED).when(TIMED_OUT).then()


def test_expectations_can_be_chained() -> None:
    scenario = given(Orders()).when(PLACE)
    chained = (
        scenario.then(CHARGE, TIMEOUT)
        .then_state(AwaitingPayment(ORDER, 4200))
        .then_events(
            Began(),
            InitiatedBy(PLACE),
            Sent(ChargeCard(ORDER, 4200)),
            Scheduled(TIMED_OUT, timedelta(minutes=5), None, "PaymentTimedOut"),
        )
    )
    assert chained is scenario


def test_a_timer_is_cancelled_by_its_type_or_by_the_types_name() -> None:
    given(Orders(), PLACE).when(CHARGED).then(CancelSchedule("PaymentTimedOut"), Send(ShipOrder(ORDER)))


def test_an_expected_error_is_found_by_type_and_by_a_part_of_its_text() -> None:
    given(Orders()).when(CHARGED).then_raises(CannotBeginError, match="begins with PlaceOrder.")


def test_an_expected_error_is_found_by_a_regular_expression() -> None:
    given(Orders()).when(CHARGED).then_raises((CannotBeginError, StepError), match=r"cannot begin with \w+:")


def test_a_text_that_is_no_regular_expression_is_searched_as_it_is() -> None:
    text = failure(lambda: given(Orders()).when(CHARGED).then_raises(CannotBeginError, match="(unclosed"))
    assert "- (unclosed" in text


def test_an_instance_that_has_ended_takes_nothing_more() -> None:
    given(Orders(), PLACE, CHARGED, SHIPPED).when(CHARGED).then_raises(
        InstanceEndedError, match="Completed(result=None)"
    )


def test_an_end_in_the_past_may_be_an_event() -> None:
    given(Orders(), PLACE, Completed()).when(CHARGED).then_raises(InstanceEndedError)


def test_a_message_that_was_scheduled_comes_as_a_timer_unless_told_otherwise() -> None:
    scenario = given(Orders(), PLACE, CHARGED)
    scenario.when(TIMED_OUT, kind=Kind.COMMAND).then_raises(UnknownTransitionError)
    scenario.when(TIMED_OUT).then()


@dataclass(frozen=True)
class Seen:
    kind: str
    actor: str | None
    time: datetime
    reply_to: str | None


class Witness(Workflow[Seen, Seen, Seen]):
    initial_state = Seen("", None, datetime(2000, 1, 1, tzinfo=UTC), None)

    def route(self, message: Seen) -> str | None:
        return "w-1"

    def decide(self, message: Envelope[Seen], state: Seen) -> Decisions[Seen, Seen] | None:
        return [Reply(Seen(message.kind, message.actor, message.time, message.reply_to))]

    def evolve(self, state: Seen, event: Event[Seen, Seen]) -> Seen | None:
        return None


def test_a_workflow_that_asks_for_the_envelope_sees_what_when_was_given() -> None:
    noon = datetime(2026, 5, 1, 12, tzinfo=UTC)
    scenario = given(Witness()).when(Witness.initial_state, kind=Kind.EVENT, actor="ann", time=noon, reply_to="m-1")
    scenario.then(Reply(Seen("event", "ann", noon, "m-1")))


# What fails, and how it is told.


def test_a_wrong_decision_is_told_as_a_diff() -> None:
    check = given(Orders(), PLACE).when(CHARGED)
    text = failure(lambda: check.then(CancelSchedule(PaymentTimedOut), Publish(OrderAbandoned(ORDER)), Complete()))
    assert (
        text
        == """\
Orders decided something else
  when:     CardCharged(order_id='o-1')
  in state: AwaitingPayment(order_id='o-1', amount=4200)

  CancelSchedule(PaymentTimedOut)
- Publish(OrderAbandoned(order_id='o-1'))
- Complete()
+ Send(ShipOrder(order_id='o-1'))"""
    )


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


def test_an_unexpected_error_fails_with_its_text_and_is_chained() -> None:
    with pytest.raises(AssertionError) as caught:
        given(Orders()).when(CHARGED).then()
    assert isinstance(caught.value.__cause__, CannotBeginError)
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


def test_an_error_of_another_type_is_chained() -> None:
    with pytest.raises(AssertionError, match="raised another error than UnknownTransitionError") as caught:
        given(Orders()).when(CHARGED).then_raises(UnknownTransitionError)
    assert isinstance(caught.value.__cause__, CannotBeginError)


def test_an_error_with_another_text_shows_both() -> None:
    text = failure(lambda: given(Orders()).when(CHARGED).then_raises(CannotBeginError, match="begins with Refund"))
    assert text.splitlines()[4:6] == [
        "- begins with Refund",
        "+ Orders cannot begin with CardCharged: it begins with PlaceOrder.",
    ]


def test_an_error_in_the_past_says_which_item_it_was() -> None:
    with pytest.raises(UnknownTransitionError) as caught:
        given(Orders(), PLACE, PLACE)
    assert caught.value.__notes__[-1] == (
        "while given() took number 2 of its past, PlaceOrder(order_id='o-1', amount=4200)"
    )


def test_the_kits_own_frames_are_hidden_from_pytest() -> None:
    with pytest.raises(AssertionError) as caught:
        given(Orders()).when(PLACE).then()
    shown_frames = [
        frame.f_code.co_filename
        for frame, _ in traceback.walk_tb(caught.tb)
        if not frame.f_locals.get("__tracebackhide__")
    ]
    assert shown_frames == [__file__]


# The purity guard.


class Hasty(Orders):
    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        return [Send(ShipOrder(str(time.time())))]


def test_a_decide_that_looks_at_the_clock_fails() -> None:
    given(Hasty()).when(PLACE).then_raises(ImpureCallError, match="Hasty.decide called time.time")


def test_the_guard_can_be_turned_off() -> None:
    with pytest.raises(AssertionError, match="decided something else"):
        given(Hasty(), guard=False).when(PLACE).then()


# Mistakes in the test itself.


def test_a_class_instead_of_a_workflow_is_refused() -> None:
    assert mistake(lambda: given(untyped(Orders), PLACE)) == (
        "given() needs a workflow's instance and got the class Orders. Write given(Orders(), ...)."
    )


def test_something_else_than_a_workflow_is_refused() -> None:
    assert mistake(lambda: given(untyped("orders"))) == (
        "given() needs a workflow and got 'orders'. Write given(MyWorkflow(), ...)."
    )


def test_a_decision_in_the_past_is_refused() -> None:
    assert mistake(lambda: given(Orders(), untyped(Send(ShipOrder(ORDER))))) == (
        "given() got the decision Send(ShipOrder(order_id='o-1')); the past is made of inputs and events. "
        "Write the event, Sent(message=ShipOrder(order_id='o-1')), or the input that led to it."
    )


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (Received(CHARGED), "Pass the input message itself."),
        (Send(ShipOrder(ORDER)), "Pass the input message itself."),
        (ShipOrder, "ShipOrder is a class. Pass a message: ShipOrder(...)."),
        (envelope(CHARGED), "An envelope was passed."),
    ],
)
def test_something_else_than_a_message_is_refused(message: object, text: str) -> None:
    assert text in mistake(lambda: given(Orders(), PLACE).when(untyped(message)))


@pytest.mark.parametrize(
    ("decision", "text"),
    [
        (Sent(ShipOrder(ORDER)), "Write decisions (Send), or use then_events()."),
        ([Complete()], "Write the decisions one after another"),
        (ShipOrder(ORDER), "which is no decision. Wrap it, as in Send(...)."),
    ],
)
def test_something_else_than_a_decision_is_refused(decision: object, text: str) -> None:
    assert text in mistake(lambda: given(Orders(), PLACE).when(CHARGED).then(untyped(decision)))
