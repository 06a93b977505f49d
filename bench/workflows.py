"""The workflows that are measured, and their messages of about 200 bytes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from mainspring import Complete, Decisions, Event, Received, Schedule, Send, Workflow

# ---- the order, and what is done with it


@dataclass(frozen=True)
class Line:
    sku: str
    qty: int
    price: int


@dataclass(frozen=True)
class Address:
    city: str
    zip: str


@dataclass(frozen=True)
class Order:
    """About 200 bytes of JSON."""

    id: str
    customer: str
    currency: str
    lines: tuple[Line, ...]
    address: Address
    note: str


@dataclass(frozen=True)
class Validate:
    order: Order


@dataclass(frozen=True)
class Charge:
    order: Order


@dataclass(frozen=True)
class Ship:
    order: Order


@dataclass(frozen=True)
class Validated:
    id: str
    step: str
    ok: bool


@dataclass(frozen=True)
class Charged:
    id: str
    step: str
    ok: bool


@dataclass(frozen=True)
class Shipped:
    id: str
    step: str
    ok: bool


def order_id(number: int) -> str:
    return f"order-{number:07d}"


def order(number: int) -> Order:
    return Order(
        id=order_id(number),
        customer="c-4711",
        currency="EUR",
        lines=(Line("A-100", 1, 1999), Line("B-200", 3, 499)),
        address=Address("Utrecht", "3511"),
        note="leave at the door",
    )


# ---- W1, W2, W5: order placed → validate → charge → ship → completed


@dataclass(frozen=True)
class New:
    pass


@dataclass(frozen=True)
class Validating:
    order: Order


@dataclass(frozen=True)
class Charging:
    order: Order


@dataclass(frozen=True)
class Shipping:
    id: str


OrderInput = Order | Validated | Charged | Shipped
OrderState = New | Validating | Charging | Shipping
OrderOutput = Validate | Charge | Ship


class Orders(Workflow[OrderInput, OrderState, OrderOutput]):
    begins = Order
    initial_state = New()

    def route(self, message: OrderInput) -> str | None:
        return message.id

    def decide(self, message: OrderInput, state: OrderState) -> Decisions[OrderInput, OrderOutput] | None:
        match message, state:
            case Order(), New():
                return [Send(Validate(message))]
            case Validated(), Validating(order):
                return [Send(Charge(order))]
            case Charged(), Charging(order):
                return [Send(Ship(order))]
            case Shipped(), Shipping():
                return [Complete()]

    def evolve(self, state: OrderState, event: Event[OrderInput, OrderOutput]) -> OrderState | None:
        match state, event:
            case New(), Received(Order() as order):
                return Validating(order)
            case Validating(order), Received(Validated()):
                return Charging(order)
            case Charging(order), Received(Charged()):
                return Shipping(order.id)


# ---- W3: one handler call after the other


@dataclass(frozen=True)
class BeginChain:
    id: str
    calls: int


@dataclass(frozen=True)
class Call:
    number: int
    order: Order


@dataclass(frozen=True)
class Called:
    id: str
    number: int
    ok: bool


@dataclass(frozen=True)
class Calling:
    calls: int = 0
    made: int = 0


@dataclass(frozen=True)
class ChainEnded:
    made: int


ChainInput = BeginChain | Called
ChainOutput = Call | ChainEnded


class Chain(Workflow[ChainInput, Calling, ChainOutput]):
    begins = BeginChain
    initial_state = Calling()

    def route(self, message: ChainInput) -> str | None:
        return message.id

    def decide(self, message: ChainInput, state: Calling) -> Decisions[ChainInput, ChainOutput] | None:
        match message:
            case BeginChain():
                return [Send(Call(1, order(1)))]
            case Called(_, number) if number < state.calls:
                return [Send(Call(number + 1, order(number + 1)))]
            case Called(_, number):
                return [Complete(ChainEnded(number))]

    def evolve(self, state: Calling, event: Event[ChainInput, ChainOutput]) -> Calling | None:
        match event:
            case Received(BeginChain(_, calls)):
                return Calling(calls)
            case Received(Called(_, number)):
                return Calling(state.calls, number)
            case _:
                return None


class ChainWithoutSnapshots(Chain):
    """The same, but its state is only in its stream."""

    snapshot_every: ClassVar[int | None] = None


# ---- W4: many commands at once, and their results joined


@dataclass(frozen=True)
class BeginFanOut:
    id: str
    branches: int


@dataclass(frozen=True)
class Branch:
    number: int
    order: Order


@dataclass(frozen=True)
class BranchDone:
    id: str
    number: int
    ok: bool


@dataclass(frozen=True)
class Joining:
    """Keeps every result, in the order in which they came."""

    branches: int = 0
    results: tuple[int, ...] = ()


@dataclass(frozen=True)
class Joined:
    results: tuple[int, ...]


FanOutInput = BeginFanOut | BranchDone
FanOutOutput = Branch | Joined


class FanOut(Workflow[FanOutInput, Joining, FanOutOutput]):
    begins = BeginFanOut
    initial_state = Joining()

    def route(self, message: FanOutInput) -> str | None:
        return message.id

    def decide(self, message: FanOutInput, state: Joining) -> Decisions[FanOutInput, FanOutOutput] | None:
        match message:
            case BeginFanOut(_, branches):
                return [Send(Branch(number, order(number))) for number in range(branches)]
            case BranchDone(_, number) if len(state.results) + 1 == state.branches:
                return [Complete(Joined((*state.results, number)))]
            case BranchDone():
                return []

    def evolve(self, state: Joining, event: Event[FanOutInput, FanOutOutput]) -> Joining | None:
        match event:
            case Received(BeginFanOut(_, branches)):
                return Joining(branches)
            case Received(BranchDone(_, number)):
                return Joining(state.branches, (*state.results, number))
            case _:
                return None


# ---- W6: asleep until a moment


@dataclass(frozen=True)
class Sleep:
    order: Order
    until: datetime


@dataclass(frozen=True)
class Wake:
    order: Order


@dataclass(frozen=True)
class Awake:
    pass


@dataclass(frozen=True)
class Asleep:
    id: str


SleeperInput = Sleep | Wake


class Sleeper(Workflow[SleeperInput, Awake | Asleep, Awake]):
    begins = Sleep
    initial_state = Awake()

    def route(self, message: SleeperInput) -> str | None:
        return message.order.id

    def decide(self, message: SleeperInput, state: Awake | Asleep) -> Decisions[SleeperInput, Awake] | None:
        match message, state:
            case Sleep(order, until), Awake():
                return [Schedule(Wake(order), at=until)]
            case Wake(), Asleep():
                return [Complete()]

    def evolve(self, state: Awake | Asleep, event: Event[SleeperInput, Awake]) -> Awake | Asleep | None:
        match state, event:
            case Awake(), Received(Sleep(order)):
                return Asleep(order.id)
