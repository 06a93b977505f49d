"""A family: a trip that books its legs as children, and legs that may take long, fail, or have legs of their own."""

from dataclasses import dataclass
from typing import Any

from mainspring import (
    ChildCompleted,
    ChildFailed,
    Complete,
    Decisions,
    Event,
    Fail,
    FanOut,
    Mainspring,
    Received,
    Reply,
    StartChild,
    Workflow,
)


@dataclass(frozen=True)
class PlanTrip:
    """`how` says what each leg does: book, silent (no result), fail, wait, deep (has a leg of its own)."""

    trip_id: str
    legs: tuple[str, ...]
    abandon: bool = False


@dataclass(frozen=True)
class EndTrip:
    trip_id: str
    well: bool = True


@dataclass(frozen=True)
class BookLeg:
    leg_id: str
    how: str


@dataclass(frozen=True)
class GoOn:
    leg_id: str


@dataclass(frozen=True)
class LegBooked:
    leg_id: str


@dataclass(frozen=True)
class Travelling:
    booked: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()
    open: int = 0


TripInput = PlanTrip | EndTrip | LegBooked | ChildCompleted | ChildFailed


class Trip(Workflow[TripInput, Travelling, BookLeg]):
    begins = PlanTrip
    initial_state = Travelling()

    def route(self, message: TripInput) -> str | None:
        return message.trip_id if isinstance(message, PlanTrip | EndTrip) else None

    def evolve(self, state: Travelling, event: Event[TripInput, BookLeg]) -> Travelling | None:
        match event:
            case Received(PlanTrip(_, legs)):
                return Travelling(open=len(legs))
            case Received(LegBooked(leg)):
                return Travelling((*state.booked, leg), state.silent, state.failed, state.open - 1)
            case Received(ChildCompleted(child)):
                return Travelling(state.booked, (*state.silent, child), state.failed, state.open - 1)
            case Received(ChildFailed(child, status)):
                return Travelling(state.booked, state.silent, (*state.failed, (child, status)), state.open - 1)

    def decide(self, message: TripInput, state: Travelling) -> Decisions[TripInput, BookLeg] | None:
        match message:
            case PlanTrip(trip, legs, abandon):
                when = "abandon" if abandon else "cancel"
                return [StartChild(BookLeg(f"{trip}.{n}", how), when) for n, how in enumerate(legs)]
            case EndTrip(_, well):
                return [Complete() if well else Fail("called off")]
            case _:
                return [Complete()] if state.open == 1 else []


@dataclass(frozen=True)
class Booking:
    leg_id: str = ""
    how: str = ""


LegInput = BookLeg | GoOn | LegBooked | ChildFailed


class Leg(Workflow[LegInput, Booking, LegBooked | BookLeg]):
    begins = BookLeg
    initial_state = Booking()

    def route(self, message: LegInput) -> str | None:
        return None if isinstance(message, ChildFailed) else message.leg_id

    def evolve(self, state: Booking, event: Event[LegInput, Any]) -> Booking | None:
        match event:
            case Received(BookLeg(leg, how)):
                return Booking(leg, how)

    def decide(self, message: LegInput, state: Booking) -> Decisions[LegInput, LegBooked | BookLeg] | None:
        match message:
            case BookLeg(leg, "book"):
                return [Complete(LegBooked(leg))]
            case BookLeg(_, "silent"):
                return [Complete()]
            case BookLeg(_, "fail"):
                return [Fail("no seats")]
            case BookLeg(_, "wait"):
                return []
            case BookLeg(leg, "deep"):
                return [StartChild(BookLeg(f"{leg}.deep", "wait"))]
            case BookLeg(_, "broken"):
                raise ZeroDivisionError("broken on purpose")
            case GoOn() | LegBooked():
                return [Complete(LegBooked(state.leg_id))]
            case ChildFailed(error=reason):
                return [Fail(reason)]


@dataclass(frozen=True)
class Sum:
    id: str
    numbers: tuple[int, ...]
    squares: bool = False


@dataclass(frozen=True)
class Half:
    """Is carried out by a handler."""

    number: int


@dataclass(frozen=True)
class Square:
    """Is a child."""

    id: str
    number: int


@dataclass(frozen=True)
class Proceed:
    id: str


@dataclass(frozen=True)
class Number:
    value: int


@dataclass(frozen=True)
class PartsDone:
    results: tuple[Number, ...]
    failures: tuple[ChildFailed, ...]
    key: str = ""


@dataclass(frozen=True)
class Summed:
    total: int
    failed: tuple[int, ...]
    key: str


@dataclass(frozen=True)
class Summing:
    pass


class Adder(Workflow[Sum | PartsDone, Summing, Half | Square | Summed]):
    begins = Sum
    initial_state = Summing()

    def route(self, message: Sum | PartsDone) -> str | None:
        return message.id if isinstance(message, Sum) else None

    def evolve(self, state: Summing, event: Event[Any, Any]) -> Summing | None:
        return None

    def decide(self, message: Sum | PartsDone, state: Summing) -> Decisions[Any, Any] | None:
        match message:
            case Sum(id, numbers, True):
                return [FanOut([Square(f"{id}-{n}", n) for n in numbers], into=PartsDone, key="squares")]
            case Sum(_, numbers):
                return [FanOut([Half(n) for n in numbers], into=PartsDone)]
            case PartsDone(results, failures, key):
                total = sum(number.value for number in results)
                summed = Summed(total, tuple(failure.part or 0 for failure in failures), key)
                return [Reply(summed), Complete(summed)]


class Squaring(Workflow[Square | Proceed, Booking, Number]):
    """Squares a number; a negative one fails, zero waits for Proceed."""

    begins = Square
    initial_state = Booking()

    def route(self, message: Square | Proceed) -> str | None:
        return message.id

    def evolve(self, state: Booking, event: Event[Any, Any]) -> Booking | None:
        return None

    def decide(self, message: Square | Proceed, state: Booking) -> Decisions[Any, Number] | None:
        match message:
            case Square(_, number) if number < 0:
                return [Fail("negative")]
            case Square(_, 0):
                return []
            case Square(_, number):
                return [Complete(Number(number * number))]
            case Proceed():
                return [Complete(Number(0))]


def travel(app: Mainspring) -> Mainspring:
    app.add(Trip(), Leg())
    return app


def adding(app: Mainspring, handler: Any = None) -> Mainspring:
    async def half(command: Half) -> Number:
        return Number(command.number // 2)

    app.add(Adder(), Squaring())
    app.handler(handler or half)
    return app
