"""A child, its result, and its failure.

expect: nothing
"""

from __future__ import annotations

from mainspring import (
    ChildFailed,
    Complete,
    Completed,
    Decisions,
    Event,
    Fail,
    Mainspring,
    Received,
    Send,
    StartChild,
    Workflow,
)
from tests.unit.analysis.lint_corpus.common import Answer, Done, New, Pay, Paying, Place, Ship, Shipped


class Child(Workflow[Pay | Shipped, New | Done, Ship | Answer]):
    begins = Pay
    again = "refuse"
    initial_state = New()

    def route(self, message: Pay | Shipped) -> str | None:
        return message.id

    def decide(self, message: Pay | Shipped, state: New | Done) -> Decisions[Pay | Shipped, Ship | Answer] | None:
        match message:
            case Pay(id):
                return [Send(Ship(id))]
            case Shipped(id):
                return [Complete(Answer(id))]

    def evolve(self, state: New | Done, event: Event[Pay | Shipped, Ship | Answer]) -> New | Done | None:
        return Done() if isinstance(event, Completed) else None


class Orders(Workflow[Place | Answer | ChildFailed, New | Paying, Pay]):
    begins = Place
    again = "refuse"
    initial_state = New()

    def route(self, message: Place | Answer | ChildFailed) -> str | None:
        return None if isinstance(message, ChildFailed) else message.id

    def decide(
        self, message: Place | Answer | ChildFailed, state: New | Paying
    ) -> Decisions[Place | Answer | ChildFailed, Pay] | None:
        match message, state:
            case Place(id), New():
                return [StartChild(Pay(id))]
            case Answer(), Paying():
                return [Complete()]
            case ChildFailed(_, _, reason), Paying():
                return [Fail(reason)]

    def evolve(self, state: New | Paying, event: Event[Place | Answer | ChildFailed, Pay]) -> New | Paying | None:
        return Paying() if isinstance(event, Received) and isinstance(event.message, Place) else None


app = Mainspring("memory://")
app.add(Orders(), Child())


@app.handler
def ship(command: Ship) -> Shipped:
    return Shipped(command.id)
