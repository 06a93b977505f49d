"""A shop whose workflow uses most of what an engine must carry."""

from dataclasses import dataclass
from datetime import timedelta

from mainspring import (
    CancelSchedule,
    Complete,
    Decisions,
    Event,
    Fail,
    Publish,
    Received,
    Reply,
    Schedule,
    Send,
    Workflow,
)


@dataclass(frozen=True)
class PlaceOrder:
    order_id: str
    amount: int = 1


@dataclass(frozen=True)
class Charged:
    order_id: str


@dataclass(frozen=True)
class Shipped:
    order_id: str


@dataclass(frozen=True)
class TimedOut:
    order_id: str


@dataclass(frozen=True)
class Note:
    order_id: str
    text: str


@dataclass(frozen=True)
class Break:
    order_id: str


@dataclass(frozen=True)
class AskTotal:
    order_id: str


Input = PlaceOrder | Charged | Shipped | TimedOut | Note | Break | AskTotal


@dataclass(frozen=True)
class Charge:
    order_id: str
    amount: int


@dataclass(frozen=True)
class Ship:
    order_id: str


@dataclass(frozen=True)
class Abandoned:
    order_id: str


@dataclass(frozen=True)
class Total:
    amount: int


@dataclass(frozen=True)
class Receipted:
    order_id: str
    notes: int


Output = Charge | Ship | Abandoned | Total | Receipted


@dataclass(frozen=True)
class New:
    pass


@dataclass(frozen=True)
class Paying:
    order_id: str
    amount: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Shipping:
    order_id: str
    notes: tuple[str, ...] = ()


State = New | Paying | Shipping

TIMEOUT = timedelta(minutes=5)


class Shop(Workflow[Input, State, Output]):
    begins = PlaceOrder
    initial_state = New()

    def route(self, message: Input) -> str | None:
        return message.order_id

    def evolve(self, state: State, event: Event[Input, Output]) -> State | None:
        match state, event:
            case New(), Received(PlaceOrder(order_id, amount)):
                return Paying(order_id, amount)
            case Paying(order_id, _, notes), Received(Charged()):
                return Shipping(order_id, notes)
            case Paying(order_id, amount, notes), Received(Note(_, text)):
                return Paying(order_id, amount, (*notes, text))

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        match message, state:
            case PlaceOrder(order_id, amount), New():
                return [Send(Charge(order_id, amount)), Schedule(TimedOut(order_id), after=TIMEOUT)]
            case Charged(order_id), Paying():
                return [CancelSchedule(TimedOut), Send(Ship(order_id))]
            case Shipped(order_id), Shipping(_, notes):
                return [Complete(Receipted(order_id, len(notes)))]
            case TimedOut(order_id), Paying():
                return [Publish(Abandoned(order_id)), Fail("nobody paid")]
            case Note(), Paying() | Shipping():
                return []
            case AskTotal(), Paying(_, amount):
                return [Reply(Total(amount))]
            case Break(), Paying():
                raise ZeroDivisionError("broken on purpose")
