"""Many commands, one join.

expect: nothing
"""

from __future__ import annotations

from dataclasses import dataclass

from mainspring import ChildFailed, Complete, Decisions, Event, FannedOut, FanOut, Mainspring, Workflow
from tests.unit.analysis.lint_corpus.common import New, Paid, Pay, Paying, Place


@dataclass(frozen=True)
class AllPaid:
    results: tuple[Paid, ...]
    failures: tuple[ChildFailed, ...]


class Orders(Workflow[Place | AllPaid, New | Paying, Pay]):
    begins = Place
    again = "refuse"
    initial_state = New()

    def route(self, message: Place | AllPaid) -> str | None:
        return message.id if isinstance(message, Place) else None

    def decide(self, message: Place | AllPaid, state: New | Paying) -> Decisions[Place | AllPaid, Pay] | None:
        match message, state:
            case Place(id, amount), New():
                return [FanOut([Pay(f"{id}-{part}") for part in range(amount)], into=AllPaid)]
            case AllPaid(), Paying():
                return [Complete()]

    def evolve(self, state: New | Paying, event: Event[Place | AllPaid, Pay]) -> New | Paying | None:
        return Paying() if isinstance(event, FannedOut) else None


app = Mainspring("memory://")
app.add(Orders())


@app.handler
async def pay(command: Pay) -> Paid:
    return Paid(command.id)
