"""A workflow of the commits that know tasks, compensations and children."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from mainspring import (
    Ask,
    Compensate,
    Complete,
    Decisions,
    Event,
    Received,
    Schedule,
    Send,
    StartChild,
    Workflow,
)
from tests.proof.golden.orders import Place, Shipped

REMINDED: Final = timedelta(days=10_000)


@dataclass(frozen=True)
class Book:
    trip: str
    path: str = "plain"


@dataclass(frozen=True)
class SeatTaken:
    trip: str


@dataclass(frozen=True)
class Approve:
    trip: str


@dataclass(frozen=True)
class Refuse:
    trip: str


@dataclass(frozen=True)
class Remind:
    trip: str


@dataclass(frozen=True)
class TakeSeat:
    trip: str
    path: str


@dataclass(frozen=True)
class FreeSeat:
    trip: str
    path: str


@dataclass(frozen=True)
class Booked:
    trip: str


@dataclass(frozen=True)
class Asking:
    """`seat` tells whether it is taken."""

    trip: str = ""
    seat: bool = False


@dataclass(frozen=True)
class Shipping:
    trip: str


TripInput = Book | SeatTaken | Approve | Refuse | Remind | Shipped
TripState = Asking | Shipping
TripOutput = TakeSeat | FreeSeat | Place | Booked


class Trip(Workflow[TripInput, TripState, TripOutput]):
    """Takes a seat, asks a clerk, and then ships the luggage as a child; what is refused is undone."""

    begins = Book
    initial_state = Asking()

    def route(self, message: TripInput) -> str | None:
        return None if isinstance(message, Shipped) else message.trip

    def evolve(self, state: TripState, event: Event[TripInput, TripOutput]) -> TripState | None:
        match state, event:
            case Asking(), Received(Book(trip)):
                return Asking(trip)
            case Asking(trip), Received(SeatTaken()):
                return Asking(trip, seat=True)
            case Asking(trip), Received(Approve()):
                return Shipping(trip)

    def decide(self, message: TripInput, state: TripState) -> Decisions[TripInput, TripOutput] | None:
        match message, state:
            case Book(trip, path), Asking():
                reminder: Schedule[Any] = Schedule(Remind(trip), after=REMINDED)
                return [
                    Send(TakeSeat(trip, path), compensate=FreeSeat(trip, path)),
                    Ask(f"Approve {trip}", (Approve, Refuse), role="clerk", reject=Refuse, remind=reminder),
                ]
            case SeatTaken(), _:
                return []
            case Approve(trip), Asking():
                return [StartChild(Place(f"luggage-{trip}"))]
            case Refuse(), Asking():
                return [Compensate("refused")]
            case Shipped(), Shipping(trip):
                return [Complete(Booked(trip))]


WORKFLOWS: Final = (Trip,)
