"""A workflow is registered with its messages, which all share, and its states, which are its own."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from mainspring.codec import Codec
from mainspring.core.decisions import Decisions
from mainspring.core.events import Event
from mainspring.core.messages import message
from mainspring.core.workflow import Workflow
from mainspring.errors import UnknownTypeError
from mainspring.testing.samples import Count, Counted, CountedThrice, Counter


def test_a_workflow_brings_its_messages_and_its_states() -> None:
    codec = Codec()
    codec.register_workflow(Counter)
    states = codec.states(Counter)
    codec.register_workflow(Counter)

    assert codec.states(Counter) is states
    assert codec.encode(Count("c")).name == "Count"
    assert codec.encode(CountedThrice("c")).name == "CountedThrice"
    assert codec.states(Counter).encode(Counted(1)).body == b'{"times":1}'


@message(name="Counted")
@dataclass(frozen=True)
class OtherCounted:
    value: str = ""


class OtherCounter(Workflow[Count, OtherCounted, CountedThrice]):
    initial_state = OtherCounted()

    def route(self, message: Count) -> str | None:
        return message.counter

    def decide(self, message: Count, state: OtherCounted) -> Decisions[Count, CountedThrice] | None:
        return []

    def evolve(self, state: OtherCounted, event: Event[Count, CountedThrice]) -> OtherCounted | None:
        return None


def test_two_workflows_may_have_states_of_the_same_name() -> None:
    codec = Codec()
    codec.register_workflow(Counter)
    codec.register_workflow(OtherCounter)

    assert codec.states(Counter).decode("Counted", 1, b'{"times":1}') == Counted(1)
    assert codec.states(OtherCounter).decode("Counted", 1, b'{"value":"a"}') == OtherCounted("a")


def test_the_states_of_an_unregistered_workflow_are_unknown() -> None:
    with pytest.raises(UnknownTypeError, match="Counter: is a workflow that is not registered"):
        Codec().states(Counter)
