"""One of the two answers to a task has no case.

expect: MS101
"""

from __future__ import annotations

from typing import Never

from mainspring import Ask, Complete, Decisions, Event, Mainspring, Received, Workflow
from tests.unit.analysis.lint_corpus.common import SOON, Done, New, Paid, Paying, Place, Refused

Input = Place | Paid | Refused
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
            case Place(), New():
                return [Ask("Pay?", Paid | Refused, role="clerk", due=SOON)]
            case Paid(), Paying():
                return [Complete()]
            case Refused(id), Paying(known) if id == known:
                return [Complete()]

    def evolve(self, state: State, event: Event[Input, Output]) -> State | None:
        match state, event:
            case New(), Received(Place(id)):
                return Paying(id)
            case Paying(), Received(Paid()):
                return Done()


app = Mainspring("memory://")
app.add(Orders())
