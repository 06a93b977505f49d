"""Reading decide and evolve: many ways to write the same, and what cannot be read is said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import Enum
from typing import Any, Literal, Never

import pytest
from msgspec import json as msgspec_json

from mainspring import (
    Compensate,
    Compensated,
    Compensating,
    Complete,
    Decisions,
    Event,
    Failed,
    Received,
    Schedule,
    Send,
    Sent,
    Workflow,
)
from mainspring.analysis.diagram.diagram import diagram_of
from mainspring.analysis.diagram.mermaid import to_mermaid
from mainspring.analysis.reading.machine import read_machine
from mainspring.analysis.reading.model import ANY_STATE, UNREAD_GUARD, Machine
from mainspring.styles import HistoryWorkflow
from mainspring.styles.history_words import CompleteWorkflow, HistoryCommand, HistoryEvent
from tests.unit.analysis.one_machine_many_ways import (
    FORMS,
    MACHINE,
    Base,
    Charge,
    Input,
    New,
    Order,
    Output,
    State,
    Waiting,
)

Line = tuple[str, str, str, str, str | None]


def lines(machine: Machine) -> set[Line]:
    """Return the transitions without their guards and details: what every form has in common."""
    return {
        (
            transition.source,
            transition.message,
            ", ".join(f"{output.decision}({output.message or ''})" for output in transition.outputs),
            transition.target,
            transition.ends,
        )
        for transition in machine.transitions
    }


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_however_it_is_written_the_machine_is_the_same(form: type[Workflow[Any, Any, Any]]) -> None:
    machine = read_machine(form)

    assert machine.unresolved == ()
    assert lines(machine) == MACHINE


def test_a_machine_can_be_written_as_json() -> None:
    machine = read_machine(FORMS[0])

    assert msgspec_json.decode(msgspec_json.encode(machine), type=Machine) == machine


# ---- what cannot be read is said


class Computed(Base):
    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        if isinstance(message, Order):
            return msgspec_json.decode(message.id)
        return [Complete()]


def test_decisions_that_cannot_be_read_are_named_and_nothing_is_made_up() -> None:
    machine = read_machine(Computed)

    assert {(unread.source, unread.message) for unread in machine.unresolved} == {
        ("New", "Order"),
        ("Waiting", "Order"),
    }
    assert {unread.reason for unread in machine.unresolved} == {"what decide returns is not a list that could be read"}
    assert [(t.outputs, t.ignored) for t in machine.transitions if t.message == "Order"] == [((), False)] * 2


class Untyped(Base):
    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        return [Send(msgspec_json.decode(message.id))]


def test_a_message_of_a_type_that_cannot_be_read_is_named() -> None:
    reasons = {unread.reason for unread in read_machine(Untyped).unresolved}

    assert reasons == {"the type of its message could not be read"}


class Elsewhere(Base):
    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        return []

    def evolve(self, state: State, event: Event[Input, Output]) -> State | None:
        return msgspec_json.decode("null") if isinstance(event, Received) else None


def test_a_state_that_cannot_be_read_may_be_any() -> None:
    machine = read_machine(Elsewhere)

    assert {transition.target for transition in machine.transitions} == {ANY_STATE}
    assert all(state.reachable for state in machine.states)
    assert {unread.reason for unread in machine.unresolved} == {"the state that evolve returns here could not be read"}


class Greeting(HistoryWorkflow):
    def decide(self, events: Sequence[HistoryEvent], /) -> Sequence[HistoryCommand]:
        return [CompleteWorkflow("greeted")]


def test_the_history_style_has_no_states_to_tell_apart() -> None:
    machine = read_machine(Greeting)

    assert machine.transitions == ()
    assert [unread.text for unread in machine.unresolved] == ["decide(events)"]


class Tangled(Workflow[Order, New, Charge]):
    initial_state = New()

    def route(self, message: Order) -> str | None:
        return message.id

    def decide(self, message: Order, state: New) -> Decisions[Order, Charge] | None:
        decisions = [
            Send(Charge(bit)) for bit in ("a", "b", "c", "d", "e", "f", "g", "h", "i", "j") if bit in message.id
        ]
        return decisions if message.amount else []

    def evolve(self, state: New, event: Event[Order, Charge]) -> New | None:
        return None


def test_more_ways_than_anybody_reads_are_said_to_be_too_many() -> None:
    assert {unread.reason for unread in read_machine(Tangled).unresolved} == {
        "there are too many ways through it to read them all"
    }


class Hostile(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        raise ZeroDivisionError("never ask")

    def __subclasscheck__(cls, subclass: Any) -> bool:
        raise ZeroDivisionError("never ask")


class Trap(metaclass=Hostile):
    pass


class Trapped(Base):
    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        return [Complete()] if isinstance(message, Trap) else []


def test_classes_that_cannot_be_asked_do_not_stop_the_reading() -> None:
    assert {unread.reason for unread in read_machine(Trapped).unresolved} == {
        "reading it failed with ZeroDivisionError: never ask"
    }


# ---- loops, sagas, statuses


class Looped(Base):
    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        if not isinstance(message, Order):
            return [Complete()]
        decisions: list[Any] = []
        for part in message.id.split():
            if part == "stop":
                break
            decisions.append(Send(Charge(part)))
        return decisions


def test_what_a_loop_decides_may_be_none_one_or_many() -> None:
    outputs = {t.outputs for t in read_machine(Looped).transitions if t.message == "Order"}

    assert {tuple(map(str, each)) for each in outputs} == {(), ("*Send(Charge)",)}


class Yielding(Base):
    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        return [*self.charges(message), Complete()]

    def charges(self, message: Input) -> Iterator[Send[Output]]:
        for part in message.id.split():
            yield Send(Charge(part))


def test_what_a_generator_yields_in_a_loop_may_be_none_one_or_many() -> None:
    outputs = {t.outputs for t in read_machine(Yielding).transitions if t.begins}

    assert {tuple(map(str, each)) for each in outputs} == {("*Send(Charge)", "Complete()"), ("Complete()",)}


class Searching(Base):
    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        for part in message.id.split():
            if part == "stop":
                return [Complete()]
        return []


def test_a_guard_that_hangs_on_an_element_is_not_told_as_always() -> None:
    guards = {(t.guard, t.ends) for t in read_machine(Searching).transitions if t.begins}

    assert guards == {(UNREAD_GUARD, "completed"), (UNREAD_GUARD, None)}


class Parsed(Base):
    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        try:
            amount = int(message.id)
        except ValueError:
            return []
        return [Send(Charge(f"{amount}"))]


def test_an_error_that_is_caught_is_one_of_the_ways() -> None:
    guards = {(t.guard, len(t.outputs)) for t in read_machine(Parsed).transitions if t.begins}

    assert guards == {("ValueError is raised", 0), ("ValueError is not raised", 1)}


class Sequenced(Base):
    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        match message.id.split():
            case []:
                return []
            case [_]:
                return [Complete()]
            case [first, *_]:
                return [Send(Charge(first))]


def test_lengths_of_sequences_exclude_each_other() -> None:
    outputs = [tuple(map(str, t.outputs)) for t in read_machine(Sequenced).transitions if t.begins]

    assert sorted(outputs) == [(), ("Complete()",), ("Send(Charge)",)]
    assert [gap.guard for gap in read_machine(Sequenced).gaps if gap.begins] != [""]


@dataclass(frozen=True)
class Undoing:
    pass


@dataclass(frozen=True)
class Undone:
    pass


class Saga(Workflow[Order, New | Waiting | Undoing | Undone, Charge]):
    initial_state = New()

    def route(self, message: Order) -> str | None:
        return message.id

    def decide(self, message: Order, state: Any) -> Decisions[Order, Charge] | None:
        if isinstance(state, Waiting):
            return [Compensate("again", then=message)]
        return [Send(Charge(message.id), compensate=Charge("back"))]

    def evolve(self, state: Any, event: Event[Order, Charge]) -> Any:
        match event:
            case Sent(undoes=None):
                return Waiting(1)
            case Compensating():
                return Undoing()
            case Compensated():
                return Undone()
            case Failed():
                return New()


class Refusing(Workflow[Order, New | Waiting, Charge]):
    again = "refuse"
    initial_state = New()

    def route(self, message: Order) -> str | None:
        return message.id

    def decide(self, message: Order, state: Any) -> Decisions[Order, Charge] | None:
        return [Send(Charge(message.id))]

    def evolve(self, state: Any, event: Event[Order, Charge]) -> Any:
        return Waiting(1) if isinstance(event, Sent) else None


def test_a_second_beginning_that_is_refused_is_no_transition_and_no_arrow() -> None:
    machine = read_machine(Refusing)

    assert [(each.source, each.message, each.begins) for each in machine.transitions] == [("New", "Order", True)]
    assert machine.gaps == ()
    assert "Waiting --> Waiting" not in to_mermaid(diagram_of(machine, None))


class Timed(Refusing):
    """What begins it comes once more, as its own timer: that is no second beginning."""

    def decide(self, message: Order, state: Any) -> Decisions[Order, Charge] | None:
        if isinstance(state, New):
            return [Send(Charge(message.id)), Schedule(message, after=timedelta(days=1))]
        return [Complete()]


def test_what_a_workflow_asks_for_itself_is_never_refused() -> None:
    assert ("Waiting", "completed") in [(each.source, each.ends) for each in read_machine(Timed).transitions]


def test_a_saga_goes_on_when_a_compensation_was_carried_out() -> None:
    machine = read_machine(Saga)

    undone = [(t.source, t.target, t.ends) for t in machine.transitions if t.message == "Compensated"]
    assert machine.unresolved == ()
    assert ("Undoing", "Undone", None) in undone
    assert ("Undone", "New", "failed") in undone
    assert machine.input("Order").ways == ("then",)


class Status(Enum):
    OPEN = 1
    PAID = 2
    SHIPPED = 3


@dataclass(frozen=True)
class Case:
    status: Status = Status.OPEN
    notes: Literal["a", "b"] = "a"


class ByStatus(Workflow[Order, Case, Never]):
    initial_state = Case()

    def route(self, message: Order) -> str | None:
        return message.id

    def decide(self, message: Order, state: Case) -> Decisions[Order, Never] | None:
        if state.status is Status.SHIPPED:
            return [Complete()]
        return []

    def evolve(self, state: Case, event: Event[Order, Never]) -> Case | None:
        match state.status, event:
            case Status.OPEN, Received():
                return replace(state, status=Status.PAID)
            case Status.PAID, Received():
                return Case(Status.SHIPPED, state.notes)


def test_states_of_one_class_may_be_told_apart_by_their_status() -> None:
    machine = read_machine(ByStatus, by_status=True)

    assert [(t.source, t.target, t.ends) for t in machine.transitions] == [
        ("Case[OPEN]", "Case[PAID]", None),
        ("Case[PAID]", "Case[SHIPPED]", None),
        ("Case[SHIPPED]", "Case[SHIPPED]", "completed"),
    ]


def test_without_that_the_guards_tell_them_apart() -> None:
    guards = {(t.guard, t.ends) for t in read_machine(ByStatus).transitions if not t.begins}

    assert ("state.status is Status.SHIPPED", "completed") in guards
