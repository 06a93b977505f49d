from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import pytest

from mainspring import Complete, Decisions, Event, Received, Send, Workflow
from mainspring.testing import Rehearsal, fuzz
from mainspring.testing.orders import Failure, Move
from mainspring.testing.search import search
from tests.unit.testing.paid_orders import (
    CHARGED,
    MESSAGES,
    PLACE,
    AwaitingPayment,
    AwaitingShipment,
    CardCharged,
    ChargeCard,
    Input,
    Orders,
    Output,
    PaymentTimedOut,
    PlaceOrder,
    ShipOrder,
    State,
)
from tests.unit.testing.stories import PLACED, PLACED_AND_CHARGED, Strict, story

# Planted bugs: each is found, by the right property, with the shortest story.


class Dice(Orders):
    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        match message, state:
            case CardCharged(order_id), AwaitingPayment():
                return [Send(ShipOrder(f"{order_id}-{random.random()}"))]  # noqa: S311  a planted bug
        return super().decide(message, state)


def test_randomness_in_decide_is_found() -> None:
    text = re.sub(r"line \d+", "line N", story(lambda: fuzz(Dice(), MESSAGES)).replace(__file__, "dice.py"))
    assert (
        text
        == f"""\
Dice breaks a property: decide is pure

{PLACED_AND_CHARGED}

{PLACED}

Dice.decide called Random.random (dice.py, line N). \
Let the sender put the value into the message, or ask a handler for it."""
    )


class Numbering(Orders):
    numbers: ClassVar[list[int]] = []

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        match message, state:
            case CardCharged(order_id), AwaitingPayment():
                self.numbers.append(1)
                return [Send(ShipOrder(f"{order_id}-{len(self.numbers) % 2}"))]
        return super().decide(message, state)


def test_a_decide_that_answers_differently_the_second_time_is_found() -> None:
    Numbering.numbers.clear()
    assert (
        story(lambda: fuzz(Numbering(), MESSAGES))
        == f"""\
Numbering breaks a property: decide is deterministic

{PLACED_AND_CHARGED}

{PLACED}

decide(CardCharged(order_id='o-1'), AwaitingPayment(order_id='o-1', amount=4200)) gave two answers:
~ Send(ShipOrder): order_id: first 'o-1-1', then 'o-1-0'"""
    )


class Forgetful(Orders):
    calls: ClassVar[list[int]] = []

    def evolve(self, state: State, event: Event[Input, Output]) -> State | None:
        match state, event:
            case AwaitingPayment(order_id), Received(CardCharged()):
                self.calls.append(1)
                return AwaitingShipment(order_id) if len(self.calls) % 2 else None
        return super().evolve(state, event)


def test_an_evolve_that_answers_differently_the_second_time_is_found() -> None:
    Forgetful.calls.clear()
    text = story(lambda: fuzz(Forgetful(), MESSAGES))
    assert text.splitlines()[0] == "Forgetful breaks a property: evolve is deterministic"
    assert text.splitlines()[-2:] == ["- AwaitingShipment(order_id='o-1')", "+ None"]


@dataclass(frozen=True)
class Basket:
    items: list[str] = field(default_factory=list[str])


@dataclass(frozen=True)
class Put:
    basket: str
    item: str
    tags: list[str] = field(default_factory=list[str])


class MutatingEvolve(Workflow[Put, Basket, Put]):
    initial_state = Basket()

    def route(self, message: Put) -> str | None:
        return message.basket

    def decide(self, message: Put, state: Basket) -> Decisions[Put, Put] | None:
        return []

    def evolve(self, state: Basket, event: Event[Put, Put]) -> Basket | None:
        match event:
            case Received(Put(item=item)):
                state.items.append(item)
                return state


def test_an_evolve_that_changes_the_state_in_place_is_found() -> None:
    assert (
        story(lambda: fuzz(MutatingEvolve(), [Put("b-1", "pen")]))
        == """\
MutatingEvolve breaks a property: evolve leaves its arguments alone

  1. Put(basket='b-1', item='pen', tags=[])

evolve changed what it was given:
~ Basket: items[0]: expected nothing, after it 'pen'"""
    )


def test_a_bug_that_changes_in_place_never_spoils_the_class_itself() -> None:
    story(lambda: fuzz(MutatingEvolve(), [Put("b-1", "pen")]))
    assert MutatingEvolve.initial_state == Basket([])


class MutatingDecide(MutatingEvolve):
    def decide(self, message: Put, state: Basket) -> Decisions[Put, Put] | None:
        message.tags.append("seen")
        return []


def test_a_decide_that_changes_the_message_is_found() -> None:
    text = story(lambda: fuzz(MutatingDecide(), [Put("b-1", "pen")]))
    assert text.splitlines()[0] == "MutatingDecide breaks a property: decide leaves its arguments alone"
    assert text.splitlines()[-1] == "~ Put: tags[0]: expected nothing, after it 'seen'"


class Remembering(Orders):
    last: Input | None = None

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        self.last = message
        return super().decide(message, state)


def test_a_decide_that_keeps_something_in_the_workflow_is_found() -> None:
    text = story(lambda: fuzz(Remembering(), MESSAGES))
    assert text.splitlines()[0] == "Remembering breaks a property: decide leaves the workflow alone"


class Thrifty(Orders):
    @cached_property
    def limit(self) -> int:
        return 10_000

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        return super().decide(message, state) if self.limit else []


def test_a_cached_property_is_no_change_of_the_workflow() -> None:
    fuzz(Thrifty(), MESSAGES, max_examples=20)


class Rates(Orders):
    """decide leaves a note outside of the state, and evolve reads it: live and replayed states part."""

    note: ClassVar[dict[str, int]] = {"amount": 0}

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        self.note["amount"] = message.amount if isinstance(message, PlaceOrder) else 1
        return super().decide(message, state)

    def evolve(self, state: State, event: Event[Input, Output]) -> State | None:
        match event:
            case Received(PlaceOrder(order_id)):
                return AwaitingPayment(order_id, self.note["amount"])
            case Received(CardCharged()):
                return None
        return super().evolve(state, event)


def test_a_replay_that_gives_another_state_is_found() -> None:
    Rates.note["amount"] = 0
    text = story(lambda: fuzz(Rates(), MESSAGES))
    assert text.splitlines()[0] == "Rates breaks a property: a replay of the stream gives the same state"
    assert text.splitlines()[-2:] == [
        "The replay differs:",
        "~ AwaitingPayment: amount: expected 4200, replayed 1",
    ]


class Endless(Orders):
    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        match message, state:
            case PaymentTimedOut(order_id), AwaitingShipment():
                return [Complete(), Send(ShipOrder(order_id))]
        return super().decide(message, state)


def test_a_decision_after_the_end_is_found_by_a_timer_that_was_cancelled() -> None:
    text = story(lambda: fuzz(Endless(), MESSAGES))
    assert text.startswith(f"""\
Endless breaks a property: nothing follows the end

{PLACED_AND_CHARGED}
  3. PaymentTimedOut(order_id='o-1')  (timer, after it was cancelled)

""")


def test_late_timers_can_be_left_out() -> None:
    # So few examples find it where they are not: see above.
    story(lambda: fuzz(Endless(), MESSAGES, max_examples=50))
    fuzz(Endless(), MESSAGES, late_timers=False, max_examples=50)


def test_an_error_that_a_duplicate_raises_is_found() -> None:
    text = story(lambda: fuzz(Strict(), [PLACE, CHARGED]))
    assert (
        text
        == f"""\
Strict breaks a property: no error is raised

  1. PlaceOrder(order_id='o-1', amount=4200)
  2. PlaceOrder(order_id='o-1', amount=4200)

{PLACED}

ValueError: placed twice"""
    )


class Lost(Orders):
    def route(self, message: Input) -> str | None:
        return {"PlaceOrder": "o-1"}[type(message).__name__]


def test_an_error_in_route_is_found() -> None:
    text = story(lambda: fuzz(Lost(), MESSAGES))
    assert text.splitlines()[0] == "Lost breaks a property: no error is raised"
    assert text.splitlines()[-1].startswith(
        "Lost could not route CardCharged(order_id='o-1'): KeyError: 'CardCharged'."
    )


def test_a_message_without_a_transition_is_found_when_asked_for() -> None:
    text = story(lambda: fuzz(Orders(), [PLACE], fail_on_unknown=True))
    assert text.startswith(f"""\
Orders breaks a property: every message has a transition

  1. PlaceOrder(order_id='o-1', amount=4200)
  2. PlaceOrder(order_id='o-1', amount=4200)  (refused: UnknownTransitionError)

{PLACED}

Orders has no transition for PlaceOrder in state AwaitingPayment.
""")


class Patient(Orders):
    unknown_transition = "ignore"


def charged_once(rehearsal: Rehearsal[Any, Any, Any]) -> bool:
    return sum(isinstance(e, Received) and isinstance(e.message, CardCharged) for e in rehearsal.events) < 2


CHARGES: dict[type[Any], Callable[[Any], Any]] = {ChargeCard: lambda command: CardCharged(command.order_id)}


def test_answers_come_twice() -> None:
    text = story(lambda: fuzz(Patient(), [PLACE], answers=CHARGES, properties=[charged_once]))
    assert text.splitlines()[2:5] == [
        "  1. PlaceOrder(order_id='o-1', amount=4200)",
        "  2. CardCharged(order_id='o-1')  (answer to ChargeCard)",
        "  3. CardCharged(order_id='o-1')  (again)",
    ]


def test_duplicates_can_be_left_out() -> None:
    story(lambda: fuzz(Patient(), [PLACE], answers=CHARGES, properties=[charged_once], max_examples=50))
    fuzz(Patient(), [PLACE], answers=CHARGES, properties=[charged_once], duplicates=False, max_examples=50)


class Moody(Orders):
    """Fails a few times, then never again."""

    left: ClassVar[list[int]] = []

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        if isinstance(message, CardCharged) and self.left:
            self.left.pop()
            raise ValueError("not in the mood")
        return super().decide(message, state)


def test_a_failure_that_does_not_come_again_is_told_as_such() -> None:
    Moody.left[:] = [1]
    text = story(lambda: fuzz(Moody(), MESSAGES))
    assert text.endswith("The same messages did not fail again: something besides message and state takes part.")


@dataclass(frozen=True)
class Measure:
    value: float = math.nan


class Meter(Workflow[Measure, Measure, Measure]):
    initial_state = Measure()

    def route(self, message: Measure) -> str | None:
        return "m-1"

    def decide(self, message: Measure, state: Measure) -> Decisions[Measure, Measure] | None:
        return [Send(Measure(float("nan")))]

    def evolve(self, state: Measure, event: Event[Measure, Measure]) -> Measure | None:
        return Measure(float("nan"))


def test_a_value_that_is_not_equal_to_itself_raises_no_alarm() -> None:
    fuzz(Meter(), [Measure()], max_examples=20)


@pytest.mark.parametrize("seed", range(5))
def test_shrinking_never_slips_from_one_bug_to_another(seed: int) -> None:
    seen: list[str] = []

    def play(_: object, moves: Sequence[Move], __: object) -> Failure | None:
        bug = {3: "short", 12: "long"}.get(len(moves))
        seen.extend([] if bug is None else [bug])
        return None if bug is None else Failure(bug, "", (), None)

    found = search(play, [PLACE], answers=False, max_examples=500, max_steps=30, seed=seed)
    assert found is not None
    assert found[0].property == seen[0]
