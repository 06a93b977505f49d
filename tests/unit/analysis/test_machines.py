"""The machines read from the examples are those that a person reads in them, and nothing happens beside them."""

from __future__ import annotations

import inspect
from functools import cache
from importlib import import_module
from typing import Any

import pytest
from msgspec.structs import replace

from examples.stories import Story
from mainspring import Kind
from mainspring.analysis.reading.machine import read_machine
from mainspring.analysis.reading.model import Transition
from mainspring.testing import Rehearsal, fuzz
from mainspring.testing.envelopes import envelope
from tests.unit.analysis.example_apps import WORKFLOWS
from tests.unit.analysis.expected_machines import EXPECTED, Row
from tests.unit.analysis.observed import is_known, observed

ALL = {cls.__name__: cls for classes in WORKFLOWS.values() for cls in classes}
FUZZED = 8
STORIES: list[Story] = [story for example in WORKFLOWS for story in import_module(f"examples.{example}.story").STORIES]


read = cache(read_machine)


def row_of(transition: Transition) -> Row:
    return (
        transition.source,
        f"{'+' if transition.begins else ''}{transition.message}",
        transition.guard,
        "=" if transition.ignored else ", ".join(map(str, transition.outputs)),
        transition.target,
        transition.ends or "",
    )


@pytest.mark.parametrize("name", ALL)
def test_an_examples_machine_is_the_one_that_was_written_down_by_hand(name: str) -> None:
    machine = read(ALL[name])

    assert sorted(map(row_of, machine.transitions)) == sorted(EXPECTED[name])
    assert machine.unresolved == ()


def test_states_say_what_they_are() -> None:
    machine = read(ALL["OrderProcessing"])

    assert [state.name for state in machine.states if state.initial] == ["New"]
    assert [state.name for state in machine.states if state.ended] == ["Fulfilled", "Abandoned"]
    assert all(state.reachable for state in machine.states)
    assert [(field.name, field.type) for field in machine.state("AwaitingPayment").fields] == [("order", "PlaceOrder")]


def test_inputs_say_how_they_come_and_what_they_are_for() -> None:
    machine = read(ALL["ExpenseApproval"])

    assert machine.input("SubmitExpense").begins
    assert machine.input("ApproveExpense").ways == ("answer",)
    assert machine.input("EscalationDue").ways == ("timer",)
    assert machine.input("ExpenseReimbursed").ways == ("message",)
    assert machine.doc == "One expense, from the employee's form to the money or the no."


def test_a_transition_names_the_lines_of_its_cases() -> None:
    cls = ALL["TrafficFine"]
    lines, _ = inspect.getsourcelines(inspect.getmodule(cls) or cls)
    machine = read(cls)
    (issued,) = [t for t in machine.transitions if t.target == "FineIssued"]
    assert issued.decided is not None

    assert lines[issued.decided.line - 1].strip().startswith("case IdentificationCodeGenerated(report_id, code)")
    assert [lines[place.line - 1].strip() for place in issued.evolved] == [
        "case AwaitingIdentificationCode(_, system_number), Received(IdentificationCodeGenerated()):"
    ]


# ---- nothing happens that the machine does not know


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.title)
def test_every_step_of_a_story_is_a_transition_of_the_machine(story: Story) -> None:
    machine = read(type(story.workflow))

    steps = observed(story.workflow, story.rehearse().events)

    assert len(steps) >= len(story.messages)
    assert [step for step in steps if not is_known(machine, step)] == []


@pytest.mark.parametrize("name", ALL)
def test_no_order_of_messages_leads_beside_the_machine(name: str) -> None:
    workflow = ALL[name]()
    machine = read(type(workflow))
    told = [story for story in STORIES if type(story.workflow) is type(workflow)]
    messages = [_alike(item) for story in told for item in story.messages]

    def stays_inside(rehearsal: Rehearsal[Any, Any, Any]) -> bool:
        return all(is_known(machine, step) for step in observed(workflow, rehearsal.events))

    assert fuzz(workflow, messages, properties=[stays_inside], max_examples=FUZZED).steps > FUZZED


def test_a_transition_that_is_missing_would_be_seen() -> None:
    story = STORIES[0]
    machine = read(type(story.workflow))
    maimed = replace(machine, transitions=machine.transitions[1:])

    steps = observed(story.workflow, story.rehearse().events)

    assert [step.message for step in steps if not is_known(maimed, step)] == [steps[0].message]


def _alike(item: Any) -> Any:
    """Return a story's message as fuzz takes it: in an envelope where it has to say who acts."""
    match item:
        case (message, str(actor)):
            return envelope(message, actor=actor)
        case (message, Kind()):
            return message
        case message:
            return message
