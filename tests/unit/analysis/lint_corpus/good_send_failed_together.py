"""Two commands on their way at once: the failure of each is taken by the case of its type, and by no other.

If the failure of Pay could be taken as that of Ship, an instance would wait for nothing (MS203).

expect: nothing
"""

from __future__ import annotations

from typing import Any

from mainspring import Complete, Decisions, Event, Fail, Mainspring, Received, Send, SendFailed, Workflow
from tests.unit.analysis.lint_corpus.common import New, Paid, Pay, Paying, Place, Ship, Shipped

Input = Place | Paid | Shipped | SendFailed
State = New | Paying
Output = Pay | Ship


class Positional(Workflow[Input, State, Output]):
    begins = Place
    again = "refuse"
    initial_state = New()

    def route(self, message: Input) -> str | None:
        return None if isinstance(message, SendFailed) else message.id

    def decide(self, message: Any, state: Any) -> Decisions[Input, Output] | None:
        match message, state:
            case SendFailed("Ship"), Paying():
                return []
            case SendFailed("Pay"), Paying():
                return [Fail("not paid")]
        return self.others(message, state)

    def others(self, message: Any, state: Any) -> Decisions[Input, Output] | None:
        match message, state:
            case Place(id), New():
                return [Send(Pay(id)), Send(Ship(id))]
            case Paid(), Paying():
                return [Complete()]
            case Shipped(), Paying():
                return []

    def evolve(self, state: State, event: Event[Input, Output]) -> State | None:
        match state, event:
            case New(), Received(Place(id)):
                return Paying(id)


class Keywords(Positional):
    def decide(self, message: Any, state: Any) -> Decisions[Input, Output] | None:
        match message, state:
            case SendFailed(type="Ship"), Paying():
                return []
            case SendFailed(type="Pay", error=error), Paying():
                return [Fail(error)]
        return self.others(message, state)


class Guards(Positional):
    def decide(self, message: Any, state: Any) -> Decisions[Input, Output] | None:
        match message, state:
            case SendFailed() as failed, Paying() if failed.type == "Ship":
                return []
            case SendFailed() as failed, Paying() if failed.type == "Pay":
                return [Fail("not paid")]
        return self.others(message, state)


class Ifs(Positional):
    def decide(self, message: Any, state: Any) -> Decisions[Input, Output] | None:
        if isinstance(message, SendFailed):
            return [] if message.type in ("Ship", "Label") else [Fail("not paid")]
        return self.others(message, state)


class Sets(Positional):
    def decide(self, message: Any, state: Any) -> Decisions[Input, Output] | None:
        match message:
            case SendFailed() if message.type in {"Ship", "Label"}:
                return []
            case SendFailed():
                return [Fail("not paid")]
        return self.others(message, state)


app = Mainspring("memory://")
for workflow in (Positional(), Keywords(), Guards(), Ifs(), Sets()):
    app.add(workflow)


@app.handler
async def pay(command: Pay) -> Paid:
    return Paid(command.id)


@app.handler
async def ship(command: Ship) -> Shipped:
    return Shipped(command.id)
