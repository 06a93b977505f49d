"""A step that says how it is undone.

expect: nothing
"""

from __future__ import annotations

from mainspring import Compensate, Complete, Decisions, Event, Mainspring, Received, Send, Workflow
from tests.unit.analysis.lint_corpus.common import Done, New, Paid, Pay, Paying, Place, Refused, Ship

Input = Place | Paid | Refused
State = New | Paying | Done
Output = Pay | Ship


class Orders(Workflow[Input, State, Output]):
    begins = Place
    again = "refuse"
    initial_state = New()

    def route(self, message: Input) -> str | None:
        return message.id

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        match message, state:
            case Place(id), New():
                return [Send(Pay(id), compensate=Ship(id))]
            case Paid(), Paying():
                return [Complete()]
            case Refused(), Paying():
                return [Compensate("refused")]

    def evolve(self, state: State, event: Event[Input, Output]) -> State | None:
        match state, event:
            case New(), Received(Place(id)):
                return Paying(id)
            case Paying(), Received(Paid()):
                return Done()


app = Mainspring("memory://")
app.add(Orders())


@app.handler
async def pay(command: Pay) -> Paid | Refused:
    return Paid(command.id)


@app.handler
async def take_back(command: Ship) -> None:
    return None
