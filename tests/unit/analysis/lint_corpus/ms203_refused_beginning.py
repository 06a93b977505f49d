"""Somebody outside is waited for; a second beginning, which would lead on, is refused.

expect: MS203
"""

from __future__ import annotations

from mainspring import Complete, Decisions, Event, Mainspring, Received, Send, Workflow
from tests.unit.analysis.lint_corpus.common import New, Paid, Pay, Paying, Place

Input = Place | Paid
State = New | Paying
Output = Pay


class Orders(Workflow[Input, State, Output]):
    begins = Place
    again = "refuse"
    initial_state = New()

    def route(self, message: Input) -> str | None:
        return message.id

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        if isinstance(state, New) and isinstance(message, Place):
            return [Send(Pay(message.id))]
        return [Complete()]

    def evolve(self, state: State, event: Event[Input, Output]) -> State | None:
        match event:
            case Received(Place(id)):
                return Paying(id)


app = Mainspring("memory://")
app.add(Orders())
app.external(Pay)
