"""Failures that are told apart by the type of their command, in every way in which people write it.

expect: nothing
"""

from __future__ import annotations

from typing import Any, Final

from mainspring import Complete, Decisions, Event, Fail, Mainspring, Received, Send, SendFailed, Workflow
from tests.unit.analysis.lint_corpus.common import New, Paid, Pay, Paying, Place, Ship, Shipped, Shipping

Input = Place | Paid | Shipped | SendFailed
State = New | Paying | Shipping
Output = Pay | Ship

PAY: Final = "Pay"


class Orders(Workflow[Input, State, Output]):
    """Each side by its own state: the type of a keyword pattern, and of a positional one."""

    begins = Place
    again = "refuse"
    initial_state = New()

    def route(self, message: Input) -> str | None:
        return None if isinstance(message, SendFailed) else message.id

    def decide(self, message: Any, state: Any) -> Decisions[Input, Output] | None:
        match message, state:
            case SendFailed(type="Pay"), Paying():
                return [Fail("not paid")]
            case SendFailed("Ship"), Shipping():
                return [Fail("not shipped")]
        return self.others(message, state)

    def others(self, message: Any, state: Any) -> Decisions[Input, Output] | None:
        match message, state:
            case Place(id), New():
                return [Send(Pay(id))]
            case Paid(id), Paying():
                return [Send(Ship(id))]
            case Shipped(), Shipping():
                return [Complete()]

    def evolve(self, state: State, event: Event[Input, Output]) -> State | None:
        match state, event:
            case New(), Received(Place(id)):
                return Paying(id)
            case Paying(), Received(Paid(id)):
                return Shipping(id)


class Guards(Orders):
    def decide(self, message: Any, state: Any) -> Decisions[Input, Output] | None:
        match message, state:
            case SendFailed(), Paying() if message.type == PAY:
                return [Fail("not paid")]
            case SendFailed(type=name), Shipping() if name in ("Ship", "Send"):
                return [Fail("not shipped")]
        return self.others(message, state)


class Nested(Orders):
    def decide(self, message: Any, state: Any) -> Decisions[Input, Output] | None:
        match message:
            case SendFailed(type=name):
                match name:
                    case "Pay":
                        return [Fail("not paid")]
                    case "Ship":
                        return [Fail("not shipped")]
        return self.others(message, state)


class Ifs(Orders):
    def decide(self, message: Any, state: Any) -> Decisions[Input, Output] | None:
        if isinstance(message, SendFailed) and message.type == Pay.__name__:
            return [Fail("not paid")]
        if isinstance(message, SendFailed) and is_of_shipping(message):
            return [Fail("not shipped")]
        return self.others(message, state)


class Either(Orders):
    def decide(self, message: Any, state: Any) -> Decisions[Input, Output] | None:
        match message:
            case SendFailed(type="Pay" | "Ship"):
                return [Fail("not done")]
        return self.others(message, state)


def is_of_shipping(failed: SendFailed) -> bool:
    return failed.type == "Ship"


app = Mainspring("memory://")
for workflow in (Orders(), Guards(), Nested(), Ifs(), Either()):
    app.add(workflow)


@app.handler
async def pay(command: Pay) -> Paid:
    return Paid(command.id)


@app.handler
async def ship(command: Ship) -> Shipped:
    return Shipped(command.id)
