"""The state-returning style.

expect: nothing
"""

from __future__ import annotations

from mainspring import Complete, Decisions, Mainspring, Send
from mainspring.styles import StateReturningWorkflow
from tests.unit.analysis.lint_corpus.common import Done, New, Paid, Pay, Paying, Place


class Orders(StateReturningWorkflow[Place | Paid, New | Paying | Done, Pay]):
    begins = Place
    again = "refuse"
    initial_state = New()

    def route(self, message: Place | Paid) -> str | None:
        return message.id

    def decide(
        self, message: Place | Paid, state: New | Paying | Done
    ) -> tuple[New | Paying | Done, Decisions[Place | Paid, Pay]] | None:
        match message, state:
            case Place(id), New():
                return Paying(id), [Send(Pay(id))]
            case Paid(), Paying():
                return Done(), [Complete()]


app = Mainspring("memory://")
app.add(Orders())


@app.handler
async def pay(command: Pay) -> Paid:
    return Paid(command.id)
