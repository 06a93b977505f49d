"""Waiting for an event that may never come, and a deadline for the whole instance, which needs no case.

expect: nothing
"""

from __future__ import annotations

from datetime import timedelta
from typing import Never

from mainspring import Complete, DeadlinePassed, Decisions, Event, Mainspring, Received, Workflow
from tests.unit.analysis.lint_corpus.common import Done, New, Paid, Paying, Place

Input = Place | Paid | DeadlinePassed
State = New | Paying | Done
Output = Never


class Orders(Workflow[Input, State, Output]):
    begins = Place
    again = "refuse"
    initial_state = New()
    deadline = timedelta(days=30)

    def route(self, message: Input) -> str | None:
        return None if isinstance(message, DeadlinePassed) else message.id

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        match message, state:
            case Place(), New():
                return []
            case Paid(), Paying():
                return [Complete()]

    def evolve(self, state: State, event: Event[Input, Output]) -> State | None:
        match state, event:
            case New(), Received(Place(id)):
                return Paying(id)
            case Paying(), Received(Paid()):
                return Done()


app = Mainspring("memory://")
app.add(Orders())
