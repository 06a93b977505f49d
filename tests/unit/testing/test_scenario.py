from __future__ import annotations

import time
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
from mainspring.errors import (
    CannotBeginError,
    DefinitionError,
    ImpureCallError,
    InstanceEndedError,
    StepError,
    UnknownTransitionError,
)
from mainspring.testing import Rehearsal, envelope, fuzz, given
from tests.unit.testing.paid_orders import (
    CHARGED,
    ORDER,
    PLACE,
    SHIPPED,
    TIMED_OUT,
    AwaitingPayment,
    AwaitingShipment,
    ChargeCard,
    Input,
    OrderAbandoned,
    Orders,
    Output,
    PaymentTimedOut,
    ShipOrder,
    State,
)
from tests.unit.testing.stories import failure

CHARGE = Send(ChargeCard(ORDER, 4200))
TIMEOUT = Schedule(TIMED_OUT, after=timedelta(minutes=5))


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


def test_an_envelope_is_taken_as_it_is() -> None:
    noon = datetime(2026, 5, 1, 12, tzinfo=UTC)
    whole = envelope(Witness.initial_state, kind=Kind.EVENT, actor="ann", time=noon, reply_to="m-1")
    given(Witness()).when(whole).then(Reply(Seen("event", "ann", noon, "m-1")))


def test_who_did_what_in_the_past_is_told_by_envelopes() -> None:
    ann, bob = envelope(Name("n-1"), actor="ann"), envelope(Name("n-1"), actor="bob")
    given(Guests(), ann, bob, Name("n-1")).when(ann).then_state(Names(("ann", "bob", "nobody", "ann")))


def test_an_envelope_and_context_beside_it_are_refused() -> None:
    text = mistake(lambda: given(Orders()).when(envelope(PLACE), actor="ann"))
    assert text.startswith("An envelope has its own kind, actor, reply_to, time and command.")


@dataclass(frozen=True)
class Name:
    book: str
    text: str = ""


@dataclass(frozen=True)
class Names:
    names: tuple[str, ...] = ()


class Guests(Workflow[Name, Names, Name]):
    """Writes down who came, which only the envelope knows."""

    initial_state = Names()

    def route(self, message: Name) -> str | None:
        return message.book

    def decide(self, message: Envelope[Name], state: Names) -> Decisions[Name, Name] | None:
        return [Send(Name(message.message.book, message.actor or "nobody"))]

    def evolve(self, state: Names, event: Event[Name, Name]) -> Names | None:
        return Names((*state.names, event.message.text)) if isinstance(event, Sent) else None


# What must not reach beyond one scenario.


@dataclass(frozen=True)
class Basket:
    items: list[str]


class Careless(Workflow[Name, Basket, Name]):
    initial_state = Basket([])

    def route(self, message: Name) -> str | None:
        return message.book

    def decide(self, message: Name, state: Basket) -> Decisions[Name, Name] | None:
        return []

    def evolve(self, state: Basket, event: Event[Name, Name]) -> Basket | None:
        if isinstance(event, Received):
            state.items.append(event.message.text)


def test_an_evolve_that_changes_its_state_in_place_never_spoils_the_class() -> None:
    given(Careless(), Name("b-1", "pen")).when(Name("b-1", "ink")).then_state(Basket(["pen", "ink"]))
    assert Careless.initial_state == Basket([])


# A class that cannot work.


class Broken(Orders):
    begins = ShipOrder


class Stateless(Workflow[Name, Names, Name]):
    def route(self, message: Name) -> str | None:
        return message.book

    def decide(self, message: Name, state: Names) -> Decisions[Name, Name] | None:
        return []

    def evolve(self, state: Names, event: Event[Name, Name]) -> Names | None:
        return None


@pytest.mark.parametrize("workflow", [Broken(), Stateless()])
@pytest.mark.parametrize("begin", [given, Rehearsal, lambda workflow: fuzz(workflow, [PLACE])])
def test_a_class_that_cannot_work_is_refused_before_anything_is_tried(
    begin: Callable[[Any], object], workflow: Workflow[Any, Any, Any]
) -> None:
    with pytest.raises(DefinitionError, match=r"has no initial state|begins with ShipOrder"):
        begin(workflow)


# What fails; how the rest is told stands in test_scenario_failures.


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
        (envelope(Received(CHARGED)), "Pass the input message itself."),
        (envelope(ShipOrder), "ShipOrder is a class. Pass a message: ShipOrder(...)."),
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
