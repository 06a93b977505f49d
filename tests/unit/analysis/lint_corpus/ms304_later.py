"""Whoever began it gets a reply at the end, but not when it fails.

expect: MS304
"""

from __future__ import annotations

from mainspring import Complete, Decisions, Event, Fail, Mainspring, Received, Reply, Send, Workflow
from tests.unit.analysis.lint_corpus.common import Answer, Done, New, Paid, Pay, Paying, Place, Refused

Input = Place | Paid | Refused
State = New | Paying | Done
Output = Pay | Answer


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
            case Paid(id), Paying():
                return [Reply(Answer(id)), Complete()]
            case Refused(), Paying():
                return [Fail("refused")]

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
