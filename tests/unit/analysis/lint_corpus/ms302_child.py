"""A child of which there is no workflow.

expect: MS302 MS203
"""

from __future__ import annotations

from mainspring import Complete, Decisions, Event, Mainspring, Received, StartChild, Workflow
from tests.unit.analysis.lint_corpus.common import Done, New, Paid, Pay, Paying, Place

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
                return [StartChild(Pay(id))]
            case Paid(), Paying():
                return [Complete()]

    def evolve(self, state: State, event: Event[Input, Output]) -> State | None:
        match state, event:
            case New(), Received(Place(id)):
                return Paying(id)
            case Paying(), Received(Paid()):
                return Done()


app = Mainspring("memory://")
app.add(Orders())
