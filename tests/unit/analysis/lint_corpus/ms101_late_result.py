"""A result that comes after the timer: nobody has a case for it.

expect: MS101
"""

from __future__ import annotations

from mainspring import Complete, Decisions, Event, Mainspring, Received, Schedule, Send, Workflow
from tests.unit.analysis.lint_corpus.common import (
    SOON,
    Done,
    New,
    Paid,
    Pay,
    Paying,
    Place,
    Ship,
    Shipped,
    Shipping,
    TimedOut,
)

Input = Place | Paid | TimedOut | Shipped
State = New | Paying | Shipping | Done
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
                return [Send(Pay(id)), Schedule(TimedOut(id), after=SOON)]
            case Paid(), Paying():
                return [Complete()]
            case TimedOut(id), Paying():
                return [Send(Ship(id))]
            case Shipped(), Shipping():
                return [Complete()]

    def evolve(self, state: State, event: Event[Input, Output]) -> State | None:
        match state, event:
            case New(), Received(Place(id)):
                return Paying(id)
            case Paying(), Received(Paid()):
                return Done()

            case Paying(), Received(TimedOut()):
                return Shipping()


app = Mainspring("memory://")
app.add(Orders())


@app.handler
async def pay(command: Pay) -> Paid:
    return Paid(command.id)


@app.handler
def ship(command: Ship) -> Shipped:
    return Shipped(command.id)
