"""Two states that lead to each other, and nothing leads to them.

expect: MS201 MS201
"""

from __future__ import annotations

from dataclasses import dataclass

from mainspring import Complete, Decisions, Event, Mainspring, Received, Send, Workflow
from tests.unit.analysis.lint_corpus.common import Done, New, Paid, Pay, Paying, Place, Shipping


@dataclass(frozen=True)
class Lost:
    pass


Input = Place | Paid
State = New | Paying | Shipping | Done | Lost
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

            case Paid(id), Shipping():
                return [Send(Pay(id))]

    def evolve(self, state: State, event: Event[Input, Output]) -> State | None:
        match state, event:
            case New(), Received(Place(id)):
                return Paying(id)
            case Paying(), Received(Paid()):
                return Done()

            case Shipping(), Received(Paid()):
                return Lost()


app = Mainspring("memory://")
app.add(Orders())


@app.handler
async def pay(command: Pay) -> Paid:
    return Paid(command.id)
