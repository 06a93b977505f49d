"""States that are texts: which of them a message meets, no reader can say.

expect: MS901
"""

from __future__ import annotations

from mainspring import Complete, Decisions, Event, Mainspring, Received, Send, Workflow
from tests.unit.analysis.lint_corpus.common import Paid, Pay, Place

Input = Place | Paid


class Orders(Workflow[Input, str, Pay]):
    begins = Place
    again = "refuse"
    initial_state = "new"

    def route(self, message: Input) -> str | None:
        return message.id

    def decide(self, message: Input, state: str) -> Decisions[Input, Pay] | None:
        match message, state:
            case Place(id), "new":
                return [Send(Pay(id))]
            case Paid(), "paying":
                return [Complete()]

    def evolve(self, state: str, event: Event[Input, Pay]) -> str | None:
        match state, event:
            case "new", Received(Place()):
                return "paying"


app = Mainspring("memory://")
app.add(Orders())


@app.handler
async def pay(command: Pay) -> Paid:
    return Paid(command.id)
