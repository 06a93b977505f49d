"""What never ends waits by its nature: no timeout is missing.

expect: nothing
"""

from __future__ import annotations

from mainspring import Decisions, Event, Mainspring, Publish, Received, Workflow
from tests.unit.analysis.lint_corpus.common import Answer, New, Paid, Paying, Place

Input = Place | Paid
State = New | Paying
Output = Answer


class Orders(Workflow[Input, State, Output]):
    begins = Place

    initial_state = New()

    def route(self, message: Input) -> str | None:
        return message.id

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        match message:
            case Place() | Paid():
                return [Publish(Answer(message.id))]

    def evolve(self, state: State, event: Event[Input, Output]) -> State | None:
        match event:
            case Received(Place(id)):
                return Paying(id)


app = Mainspring("memory://")
app.add(Orders())
