"""What decide returns is made by a function that cannot be read.

expect: MS901
"""

from __future__ import annotations

from mainspring import Decisions, Event, Mainspring, Received, Workflow
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
        return eval(message.id)  # noqa: S307  that is the point

    def evolve(self, state: State, event: Event[Input, Output]) -> State | None:
        match state, event:
            case New(), Received(Place(id)):
                return Paying(id)
            case Paying(), Received(Paid()):
                return Done()


app = Mainspring("memory://")
app.add(Orders())


@app.handler
async def pay(command: Pay) -> Paid:
    return Paid(command.id)
