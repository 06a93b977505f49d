"""A shop whose orders meet all that a message can meet: a handler, another workflow, its reply, a timer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from opentelemetry import trace

from mainspring import Complete, Decisions, Event, Mainspring, Publish, Received, Reply, Schedule, Send, Workflow

DAYS = timedelta(days=3)


@dataclass(frozen=True)
class PlaceOrder:
    id: str


@dataclass(frozen=True)
class Charge:
    id: str


@dataclass(frozen=True)
class Charged:
    id: str
    below: str = ""


@dataclass(frozen=True)
class Reserve:
    id: str


@dataclass(frozen=True)
class Reserved:
    id: str


@dataclass(frozen=True)
class Ordered:
    id: str


@dataclass(frozen=True)
class AskHowItWas:
    id: str


@dataclass(frozen=True)
class Open:
    pass


Input = PlaceOrder | Charged | Reserved | AskHowItWas
Output = Charge | Reserve | Ordered


class Orders(Workflow[Input, Open, Output]):
    """Charged, then reserved by another workflow; three days later it ends."""

    begins = PlaceOrder
    initial_state = Open()

    def route(self, message: Input) -> str | None:
        return message.id

    def decide(self, message: Input, state: Open) -> Decisions[Input, Output] | None:
        match message:
            case PlaceOrder(id):
                return [Send(Charge(id))]
            case Charged(id):
                if id.startswith("bad"):
                    raise ValueError("decide has no idea what to do")
                return [Send(Reserve(id))]
            case Reserved(id):
                return [Publish(Ordered(id)), Schedule(AskHowItWas(id), after=DAYS)]
            case AskHowItWas():
                return [Complete()]

    def evolve(self, state: Open, event: Event[Input, Output]) -> Open | None:
        return None


@dataclass(frozen=True)
class Stocked:
    times: int = 0


class Stock(Workflow[Reserve, Stocked, Reserved]):
    initial_state = Stocked()

    def route(self, message: Reserve) -> str | None:
        return f"stock-of-{message.id}"

    def decide(self, message: Reserve, state: Stocked) -> Decisions[Reserve, Reserved] | None:
        return [Reply(Reserved(message.id))]

    def evolve(self, state: Stocked, event: Event[Reserve, Reserved]) -> Stocked | None:
        match event:
            case Received():
                return Stocked(state.times + 1)


def span_id() -> str:
    """Return the id of the span that is current here."""
    return f"{trace.get_current_span().get_span_context().span_id:016x}"


async def charge(command: Charge) -> Charged:
    return Charged(command.id, span_id())


def charge_in_thread(command: Charge) -> Charged:
    return Charged(command.id, span_id())


def charge_in_process(command: Charge) -> Charged:
    return Charged(command.id, span_id())


def shop(app: Mainspring, *, wired: bool = True) -> Mainspring:
    """Return an app with its workflows, and with the plain handler if it is to be `wired`."""
    app.add(Orders(), Stock())
    if wired:
        app.handler(charge)
    return app
