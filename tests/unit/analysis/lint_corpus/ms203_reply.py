"""Another workflow replies, if it is there at all.

expect: MS203
"""

from __future__ import annotations

from mainspring import Complete, Decisions, Event, Mainspring, Received, Reply, Send, Workflow
from tests.unit.analysis.lint_corpus.common import Done, New, Paid, Pay, Paying, Place


class Bank(Workflow[Pay, New, Paid]):
    initial_state = New()

    def route(self, message: Pay) -> str | None:
        return message.id

    def decide(self, message: Pay, state: New) -> Decisions[Pay, Paid] | None:
        return [Reply(Paid(message.id))]

    def evolve(self, state: New, event: Event[Pay, Paid]) -> New | None:
        return None


Input = Place | Paid
State = New | Paying | Done
Output = Pay


class Orders(Workflow[Input, State, Output]):
    begins = Place
    again = "refuse"
    initial_state = New()

    def route(self, message: Input) -> str | None:
        return message.id

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        match message, state:
            case Place(id), New():
                return [Send(Pay(id))]
            case Paid(), Paying():
                return [Complete()]

    def evolve(self, state: State, event: Event[Input, Output]) -> State | None:
        match state, event:
            case New(), Received(Place(id)):
                return Paying(id)
            case Paying(), Received(Paid()):
                return Done()


app = Mainspring("memory://")
app.add(Orders(), Bank())
