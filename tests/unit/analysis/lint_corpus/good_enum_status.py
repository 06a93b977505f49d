"""One state with a status: nothing can be said of it that would be wrong.

expect: nothing
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from mainspring import Complete, Decisions, Event, Mainspring, Received, Send, Workflow
from tests.unit.analysis.lint_corpus.common import Paid, Pay, Place


class Status(Enum):
    NEW = "new"
    PAYING = "paying"


@dataclass(frozen=True)
class Case:
    status: Status = Status.NEW


class Orders(Workflow[Place | Paid, Case, Pay]):
    begins = Place
    initial_state = Case()

    def route(self, message: Place | Paid) -> str | None:
        return message.id

    def decide(self, message: Place | Paid, state: Case) -> Decisions[Place | Paid, Pay] | None:
        match message, state.status:
            case Place(id), Status.NEW:
                return [Send(Pay(id))]
            case Paid(), Status.PAYING:
                return [Complete()]
            case _:
                return []

    def evolve(self, state: Case, event: Event[Place | Paid, Pay]) -> Case | None:
        return replace(state, status=Status.PAYING) if isinstance(event, Received) else None


app = Mainspring("memory://")
app.add(Orders())


@app.handler
async def pay(command: Pay) -> Paid:
    return Paid(command.id)
