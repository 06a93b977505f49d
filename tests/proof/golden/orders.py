"""Workflows that every commit with a store can run: commands, timers, replies, publications, snapshots, failures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, ClassVar, Final

from mainspring import (
    CancelSchedule,
    Complete,
    Decisions,
    Event,
    Publish,
    Received,
    Replied,
    Reply,
    Schedule,
    Send,
    Workflow,
)

# Longer than a workload takes, and over when a golden file is opened.
SOON: Final = timedelta(seconds=20)
NEVER: Final = timedelta(days=20_000)
STOCKS: Final = 3


@dataclass(frozen=True)
class Place:
    """`path` says how it goes: plain, timer, or one of those that the workload treats otherwise."""

    order: str
    path: str = "plain"


@dataclass(frozen=True)
class Note:
    order: str
    number: int


@dataclass(frozen=True)
class Packed:
    order: str


@dataclass(frozen=True)
class Reserved:
    order: str
    before: int


@dataclass(frozen=True)
class PickupDue:
    order: str


@dataclass(frozen=True)
class NeverDue:
    order: str


@dataclass(frozen=True)
class Pack:
    order: str
    path: str


@dataclass(frozen=True)
class Reserve:
    stock: str
    order: str


@dataclass(frozen=True)
class Shipped:
    order: str
    notes: int


@dataclass(frozen=True)
class New:
    pass


@dataclass(frozen=True)
class Open:
    order: str
    awaits: tuple[str, ...]
    notes: int = 0


@dataclass(frozen=True)
class Gone:
    notes: int


OrderInput = Place | Note | Packed | Reserved | PickupDue | NeverDue
OrderState = New | Open | Gone
OrderOutput = Pack | Reserve | Shipped


def after(state: Open, message: OrderInput) -> Open | Gone:
    """Return the state after a message: gone when nothing is awaited any more."""
    if isinstance(message, Note):
        return replace(state, notes=state.notes + 1)
    name = type(message).__name__
    awaits = tuple(awaited for awaited in state.awaits if awaited != name)
    return replace(state, awaits=awaits) if awaits else Gone(state.notes)


class Order(Workflow[OrderInput, OrderState, OrderOutput]):
    begins = Place
    initial_state = New()
    snapshot_every = 20

    broken: ClassVar = False
    """Whether a note with a negative number is a mistake: it was one when the workload ran, and was mended since."""

    def route(self, message: OrderInput) -> str | None:
        return message.order

    def evolve(self, state: OrderState, event: Event[OrderInput, OrderOutput]) -> OrderState | None:
        match state, event:
            case New(), Received(Place(order, path)):
                return Open(order, ("Packed", "Reserved", *(["PickupDue"] if path == "timer" else [])))
            case Open(), Received(message):
                return after(state, message)

    def decide(self, message: OrderInput, state: OrderState) -> Decisions[OrderInput, OrderOutput] | None:
        match message, state:
            case Place(order, path), New():
                return [
                    Send(Pack(order, path)),
                    Send(Reserve(f"stock-{sum(order.encode()) % STOCKS}", order)),
                    Schedule(NeverDue(order), after=NEVER, key="never"),
                    *([Schedule(PickupDue(order), after=SOON)] if path == "timer" else []),
                ]
            case Note(_, number), (Open() | Gone()):
                return _noted(number)
            case ((Packed() | Reserved() | PickupDue()), Open(order)):
                match after(state, message):
                    case Gone(notes):
                        shipped = Shipped(order, notes)
                        return [CancelSchedule("never"), Publish(shipped), Complete(shipped)]
                    case _:
                        return []


def _noted(number: int) -> list[Any]:
    if Order.broken and number < 0:
        raise ValueError("a note cannot have a negative number")
    return []


@dataclass(frozen=True)
class Level:
    reserved: int = 0


class Stock(Workflow[Reserve, Level, Reserved]):
    """A hot instance: many orders ask it, and it replies."""

    initial_state = Level()
    snapshot_every = 20

    def route(self, message: Reserve) -> str | None:
        return message.stock

    def evolve(self, state: Level, event: Event[Reserve, Reserved]) -> Level | None:
        return Level(state.reserved + 1) if isinstance(event, Replied) else None

    def decide(self, message: Reserve, state: Level) -> Decisions[Reserve, Reserved] | None:
        return [Reply(Reserved(message.order, state.reserved))]


@dataclass(frozen=True)
class Count:
    number: int = 0


class Tally(Workflow[Shipped, Count, Shipped]):
    """One instance for all that was shipped."""

    initial_state = Count()

    def route(self, message: Shipped) -> str | None:
        return "all"

    def evolve(self, state: Count, event: Event[Shipped, Shipped]) -> Count | None:
        return Count(state.number + 1) if isinstance(event, Received) else None

    def decide(self, message: Shipped, state: Count) -> Decisions[Shipped, Shipped] | None:
        return []


WORKFLOWS: Final = (Order, Stock, Tally)
