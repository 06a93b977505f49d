"""A task whose answers nobody can read from the code.

expect: MS901
"""

from __future__ import annotations

from typing import Any, Never

from mainspring import Ask, Complete, Decisions, Event, Mainspring, Received, Schedule, Workflow
from tests.unit.analysis.lint_corpus.common import SOON, Done, New, Paid, Paying, Place, Refused, TimedOut

Input = Place | Paid | Refused | TimedOut
State = New | Paying | Done
Output = Never


class Orders(Workflow[Input, State, Output]):
    begins = Place
    again = "refuse"
    initial_state = New()

    def route(self, message: Input) -> str | None:
        return message.id

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        match message, state:
            case Place(id), New():
                timer = Schedule(TimedOut(id), after=SOON)
                return [asked(timer, Paid | Refused)]
            case Paid() | Refused() | TimedOut(), Paying():
                return [Complete()]

    def evolve(self, state: State, event: Event[Input, Output]) -> State | None:
        match state, event:
            case New(), Received(Place(id)):
                return Paying(id)
            case Paying(), Received(Paid() | Refused() | TimedOut()):
                return Done()


def asked(timer: Schedule[Input], answer: Any) -> Ask[Input]:
    return Ask("Pay?", answer, role="clerk", due=SOON, escalate=timer)


app = Mainspring("memory://")
app.add(Orders())
