from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import strategies as st

from mainspring import Completed, Decisions, Published, Received
from mainspring.styles.history import HistoryWorkflow
from mainspring.styles.history_words import CompleteWorkflow, HistoryCommand, HistoryEvent, ScheduleTask, StartWorkflow
from mainspring.testing import FuzzFailure, Rehearsal, envelope, fuzz
from mainspring.testing.samples import Count, Counter
from tests.unit.testing.paid_orders import (
    CHARGED,
    MESSAGES,
    PLACE,
    SHIPPED,
    CardCharged,
    ChargeCard,
    Input,
    OrderAbandoned,
    Orders,
    OrderShipped,
    Output,
    PaymentTimedOut,
    PlaceOrder,
    ShipOrder,
    State,
)
from tests.unit.testing.stories import Strict, story

# A sound workflow.


def test_a_sound_workflow_passes_and_every_state_is_seen() -> None:
    fuzzed = fuzz(Orders(), MESSAGES)
    assert fuzzed.unseen_states == ()
    assert fuzzed.runs == 200
    assert fuzzed.ended > 20
    assert fuzzed.refused > 20


def test_answers_to_sent_messages_lead_on() -> None:
    answers: dict[type[Any], Callable[[Any], Any]] = {
        ChargeCard: lambda command: st.just(CardCharged(command.order_id)),
        ShipOrder: lambda command: [OrderShipped(command.order_id)],
    }
    assert fuzz(Orders(), [PLACE], answers=answers, max_examples=50).unseen_states == ()


def test_states_that_no_message_leads_to_are_named() -> None:
    assert fuzz(Orders(), [PLACE], max_examples=20).unseen_states == ("AwaitingShipment",)


def test_messages_of_other_instances_are_not_taken() -> None:
    def only_mine(rehearsal: Rehearsal[Any, Any, Any]) -> bool:
        return all(e.message.order_id == "o-1" for e in rehearsal.events if isinstance(e, Received))

    fuzzed = fuzz(Orders(), [PLACE, CardCharged("o-2"), SHIPPED], properties=[only_mine], max_examples=20)
    assert fuzzed.steps > 20
    # What belongs to o-1 was offered, and nothing led on to where only the other one's message leads.
    assert fuzzed.unseen_states == ("AwaitingShipment",)


def test_messages_whose_id_cannot_be_used_are_not_taken() -> None:
    fuzzed = fuzz(Orders(), [PLACE, CardCharged("")], max_examples=20)
    assert fuzzed.unseen_states == ("AwaitingShipment",)


def test_messages_may_be_strategies() -> None:
    amounts: set[int] = set()

    def remember(rehearsal: Rehearsal[Any, Any, Any]) -> None:
        amounts.update(
            e.message.amount for e in rehearsal.events if isinstance(e, Received) and "amount" in vars(e.message)
        )

    fuzz(
        Orders(),
        [st.builds(PlaceOrder, st.just("o-1"), st.integers(1, 3)), CHARGED],
        properties=[remember],
        max_examples=50,
    )
    assert amounts == {1, 2, 3}


def test_messages_may_come_in_envelopes_where_the_actor_matters() -> None:
    actors: set[tuple[str, str | None]] = set()

    def remember(rehearsal: Rehearsal[Any, Any, Any]) -> None:
        actors.update(
            (type(e.event.message).__name__, e.actor) for e in rehearsal.entries if isinstance(e.event, Received)
        )

    messages = [envelope(PLACE, actor="ann"), envelope(CHARGED, actor="bob")]
    fuzz(Orders(), messages, properties=[remember], max_examples=50)
    assert actors == {("PlaceOrder", "ann"), ("CardCharged", "bob"), ("PaymentTimedOut", None)}


def test_the_same_orders_are_tried_every_time() -> None:
    assert fuzz(Orders(), MESSAGES, max_examples=20) == fuzz(Orders(), MESSAGES, max_examples=20)


def test_another_seed_tries_other_orders() -> None:
    assert fuzz(Orders(), MESSAGES, max_examples=20, seed=1) != fuzz(Orders(), MESSAGES, max_examples=20, seed=2)


def test_other_authoring_styles_can_be_fuzzed() -> None:
    class Greeting(HistoryWorkflow):
        def decide(self, events: Any) -> list[HistoryCommand]:
            history: list[HistoryEvent] = list(events)
            return [ScheduleTask("greet-1", "greet", None)] if len(history) == 1 else [CompleteWorkflow("greeted")]

    assert fuzz(Greeting(), [StartWorkflow("g-1", "Ada")], max_examples=20).steps > 20


# The author's own properties.


def abandoned_orders_are_never_shipped(rehearsal: Rehearsal[Any, Any, Any]) -> None:
    outputs = [type(e.message) for e in rehearsal.events if isinstance(e, Published)]
    shipped = [e for e in rehearsal.events if isinstance(e, Received) and isinstance(e.message, OrderShipped)]
    if OrderAbandoned in outputs and shipped:
        raise AssertionError("shipped although abandoned")


class Generous(Orders):
    """Abandons late payers, and does not end there."""

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        decided = super().decide(message, state)
        return decided[:1] if isinstance(message, PaymentTimedOut) and decided else decided


def test_a_property_of_ones_own_is_told_by_its_name_with_the_whole_stream() -> None:
    text = story(lambda: fuzz(Generous(), MESSAGES, properties=[abandoned_orders_are_never_shipped]))
    assert (
        text
        == """\
Generous breaks a property: abandoned_orders_are_never_shipped

  1. PlaceOrder(order_id='o-1', amount=4200)
  2. PaymentTimedOut(order_id='o-1')  (timer)
  3. CardCharged(order_id='o-1')
  4. OrderShipped(order_id='o-1')

position  kind     direction  event              message
1                             Began
2         command  input      InitiatedBy        PlaceOrder(order_id='o-1', amount=4200)
3         command  output     Sent               ChargeCard(order_id='o-1', amount=4200)
4         timer    output     Scheduled          PaymentTimedOut(order_id='o-1') after 5 min
5         timer    input      Received           PaymentTimedOut(order_id='o-1')
6         event    output     Published          OrderAbandoned(order_id='o-1')
7         command  input      Received           CardCharged(order_id='o-1')
8         timer    output     ScheduleCancelled  'PaymentTimedOut'
9         command  output     Sent               ShipOrder(order_id='o-1')
10        command  input      Received           OrderShipped(order_id='o-1')
11                            Completed

AssertionError: shipped although abandoned"""
    )


def test_a_property_may_return_false() -> None:
    def never_ends(rehearsal: Rehearsal[Any, Any, Any]) -> bool:
        return not isinstance(rehearsal.end, Completed)

    text = story(lambda: fuzz(Counter(), [Count("c-1")], properties=[never_ends]))
    assert text.splitlines()[0] == "Counter breaks a property: never_ends"
    assert text.splitlines()[-1] == "It returned False in state Counted(times=3)."


def test_the_failure_names_its_property_and_messages() -> None:
    with pytest.raises(FuzzFailure) as caught:
        fuzz(Strict(), [PLACE])
    assert caught.value.property == "no error is raised"
    assert caught.value.messages == [PLACE, PLACE]
    assert isinstance(caught.value.__cause__, ValueError)


def test_a_seed_that_found_something_is_told() -> None:
    assert story(lambda: fuzz(Strict(), [PLACE], seed=7)).endswith("\n\nFound with seed=7.")


# Mistakes in the call.


def test_messages_that_cannot_begin_are_a_mistake_not_a_success() -> None:
    with pytest.raises(
        ValueError, match="no message that Orders would begin with, so nothing was tried: it begins with PlaceOrder"
    ):
        fuzz(Orders(), [CHARGED], max_examples=5)


@pytest.mark.parametrize("messages", [[], PLACE, "PlaceOrder"])
def test_something_else_than_a_list_of_messages_is_refused(messages: Any) -> None:
    with pytest.raises(TypeError, match="needs a list of messages"):
        fuzz(Orders(), messages)


def test_a_class_among_the_messages_is_refused() -> None:
    messages: Any = [PlaceOrder]
    with pytest.raises(TypeError, match=r"Give fuzz\(\) a message, PlaceOrder\(\.\.\.\)"):
        fuzz(Orders(), messages)


def test_a_class_instead_of_a_workflow_is_refused() -> None:
    workflow: Any = Orders
    with pytest.raises(TypeError, match=r"Write fuzz\(Orders\(\), \.\.\.\)"):
        fuzz(workflow, MESSAGES)


# hypothesis is an extra.


def run_python(code: str) -> str:
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  our own code
    return done.stdout + done.stderr


def test_the_kit_is_imported_without_hypothesis() -> None:
    assert run_python("import sys, mainspring.testing; print('hypothesis' in sys.modules)") == "False\n"


def test_without_hypothesis_fuzz_says_what_to_install() -> None:
    code = """
import sys
sys.modules["hypothesis"] = None
from mainspring.testing import fuzz
from mainspring.testing.samples import Count, Counter
fuzz(Counter(), [Count("c-1")])
"""
    assert run_python(code).splitlines()[-1] == (
        "ModuleNotFoundError: fuzz() needs hypothesis, which is not installed. "
        "Install it with: pip install 'mainspring[testing]'"
    )


class OutOfStock(Exception):  # noqa: N818  a word of its business
    """Raised by decide on purpose."""


class Shelf(Counter):
    """Holds two pieces; `where` says which method raises beside decide."""

    where = "decide"

    def decide(self, message: Count, state: Any) -> Any:
        if state.times == 2:
            raise OutOfStock(message.counter)
        return super().decide(message, state)

    def evolve(self, state: Any, event: Any) -> Any:
        if self.where == "evolve" and state.times == 1:
            raise OutOfStock("in evolve")
        return super().evolve(state, event)

    def route(self, message: Count) -> str | None:
        if self.where == "route":
            raise OutOfStock("in route")
        return super().route(message)


class LeakyShelf(Shelf):
    where = "evolve"


class LostShelf(Shelf):
    where = "route"


@pytest.mark.parametrize("raises", [OutOfStock, (OutOfStock, LookupError)])
def test_an_error_that_decide_raises_on_purpose_refuses_its_message(raises: Any) -> None:
    seen = fuzz(Shelf(), [Count("c-1")], max_examples=30, raises=raises)

    assert seen.refused > 0
    assert seen.ended == 0


def test_an_error_of_decide_that_nobody_expects_is_a_failure() -> None:
    for raises in ((), (LookupError,)):
        with pytest.raises(FuzzFailure, match="OutOfStock: c-1") as failed:
            fuzz(Shelf(), [Count("c-1")], max_examples=30, raises=raises)
        assert failed.value.property == "no error is raised"


@pytest.mark.parametrize("shelf", [LeakyShelf(), LostShelf()])
def test_the_same_error_from_evolve_or_route_is_a_failure(shelf: Shelf) -> None:
    with pytest.raises(FuzzFailure, match="OutOfStock: in ") as failed:
        fuzz(shelf, [Count("c-1")], max_examples=30, raises=(OutOfStock,))
    assert failed.value.property == "no error is raised"


def test_a_decide_that_changes_its_message_before_it_raises_on_purpose_is_found() -> None:
    class Scribbling(Shelf):
        def decide(self, message: Count, state: Any) -> Any:
            object.__setattr__(message, "counter", "c-2")
            raise OutOfStock

    with pytest.raises(FuzzFailure, match="decide changed what it was given"):
        fuzz(Scribbling(), [Count("c-1")], max_examples=5, raises=OutOfStock)


@pytest.mark.parametrize("raises", ["OutOfStock", (OutOfStock("c-1"),), (int,)])
def test_what_is_no_class_of_errors_is_refused(raises: Any) -> None:
    with pytest.raises(TypeError, match=r"Give it classes of errors: raises=\(OutOfStock,\)"):
        fuzz(Shelf(), [Count("c-1")], raises=raises)
