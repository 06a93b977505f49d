"""Another workflow's reply is not taken.

expect: MS301
"""

from __future__ import annotations

from mainspring import Complete, Decisions, Event, Mainspring, Received, Reply, Schedule, Send, Workflow
from tests.unit.analysis.lint_corpus.common import SOON, Done, New, Paid, Pay, Paying, Place, Refused, TimedOut


class Bank(Workflow[Pay, New, Paid | Refused]):
    initial_state = New()

    def route(self, message: Pay) -> str | None:
        return message.id

    def decide(self, message: Pay, state: New) -> Decisions[Pay, Paid | Refused] | None:
        return [Reply(Paid(message.id) if message.id else Refused(message.id))]

    def evolve(self, state: New, event: Event[Pay, Paid | Refused]) -> New | None:
        return None


Input = Place | Paid | TimedOut
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
                return [Send(Pay(id)), Schedule(TimedOut(id), after=SOON)]
            case ((Paid() | TimedOut()), Paying()):
                return [Complete()]

    def evolve(self, state: State, event: Event[Input, Output]) -> State | None:
        match state, event:
            case New(), Received(Place(id)):
                return Paying(id)
            case Paying(), Received(Paid() | TimedOut()):
                return Done()


app = Mainspring("memory://")
app.add(Orders(), Bank())
