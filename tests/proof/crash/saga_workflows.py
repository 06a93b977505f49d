"""Errands: what journeys do not use. A saga that asks people, with a child and a fan-out; a state without history."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from mainspring import (
    Ask,
    Compensate,
    Complete,
    Decisions,
    Event,
    FanOut,
    Received,
    Reply,
    Send,
    StartChild,
    Workflow,
)
from mainspring.core.failures import ChildFailed

ROLE: Final = "clerk"
PARTS: Final = 3
THINGS: Final = ("hotel", "car")


@dataclass(frozen=True)
class RunErrand:
    errand: str
    stubborn: bool


@dataclass(frozen=True)
class Booked:
    errand: str
    thing: str


@dataclass(frozen=True)
class Approve:
    errand: str


@dataclass(frozen=True)
class Refuse:
    errand: str


@dataclass(frozen=True)
class Delivered:
    """The result of the child."""

    errand: str


@dataclass(frozen=True)
class Stamped:
    number: int


@dataclass(frozen=True)
class AllStamped:
    """Joins the fan-out."""

    results: tuple[Stamped, ...]
    failures: tuple[ChildFailed, ...]


@dataclass(frozen=True)
class Mended:
    errand: str


@dataclass(frozen=True)
class Book:
    errand: str
    thing: str


@dataclass(frozen=True)
class Unbook:
    errand: str
    thing: str


@dataclass(frozen=True)
class Deliver:
    errand: str


@dataclass(frozen=True)
class Stamp:
    errand: str
    number: int


@dataclass(frozen=True)
class Mend:
    """Works only after somebody has looked into it: until then it ends as a dead letter."""

    errand: str


@dataclass(frozen=True)
class ErrandDone:
    errand: str
    stamps: int


@dataclass(frozen=True)
class Waiting:
    """What an errand waits for: `awaits` are names of messages."""

    errand: str = ""
    stubborn: bool = False
    awaits: tuple[str, ...] = ()
    stamps: int = 0


ErrandInput = RunErrand | Booked | Approve | Refuse | Delivered | AllStamped | Mended
ErrandOutput = Book | Unbook | Deliver | Stamp | Mend | ErrandDone


def _after(state: Waiting, message: ErrandInput) -> Waiting:
    match message:
        case RunErrand(errand, stubborn):
            return Waiting(errand, stubborn)
        case Approve():
            return replace(state, awaits=("Delivered", "AllStamped"))
        case AllStamped(results, _):
            state = replace(state, stamps=len(results))
        case _:
            pass
    return replace(state, awaits=tuple(name for name in state.awaits if name != type(message).__name__))


class Errand(Workflow[ErrandInput, Waiting, ErrandOutput]):
    """Books, asks a person, and then has it delivered and stamped; who is refused undoes what was booked."""

    begins = RunErrand
    initial_state = Waiting()

    def route(self, message: ErrandInput) -> str | None:
        return None if isinstance(message, AllStamped) else message.errand

    def evolve(self, state: Waiting, event: Event[ErrandInput, ErrandOutput]) -> Waiting | None:
        return _after(state, event.message) if isinstance(event, Received) else None

    def decide(self, message: ErrandInput, state: Waiting) -> Decisions[ErrandInput, ErrandOutput] | None:
        match message:
            case RunErrand(errand):
                return [self._book(errand, THINGS[0])]
            case Booked(errand, "hotel"):
                return [self._book(errand, THINGS[1])]
            case Booked(errand):
                return [Ask(f"May {errand} be run?", answer=Approve | Refuse, role=ROLE, reject=Refuse)]
            case Refuse():
                return [Compensate("refused")]
            case Approve(errand):
                stamps = [Stamp(errand, number) for number in range(PARTS)]
                return [StartChild(Deliver(errand)), FanOut(stamps, into=AllStamped)]
            case Delivered() | AllStamped():
                after = _after(state, message)
                if after.awaits:
                    return []
                return [Send(Mend(state.errand))] if state.stubborn else self._end(after)
            case Mended():
                return self._end(state)

    def _book(self, errand: str, thing: str) -> Send[ErrandOutput]:
        return Send(Book(errand, thing), compensate=Unbook(errand, thing))

    def _end(self, state: Waiting) -> list[Complete[ErrandOutput]]:
        return [Complete(ErrandDone(state.errand, state.stamps))]


@dataclass(frozen=True)
class Carry:
    errand: str


@dataclass(frozen=True)
class Carried:
    errand: str


@dataclass(frozen=True)
class Loaded:
    pass


class Delivery(Workflow[Deliver | Carried, Loaded, Carry | Delivered]):
    """The child of an errand."""

    begins = Deliver
    initial_state = Loaded()

    def route(self, message: Deliver | Carried) -> str | None:
        return message.errand

    def evolve(self, state: Loaded, event: Event[Deliver | Carried, Carry | Delivered]) -> Loaded | None:
        return None

    def decide(self, message: Deliver | Carried, state: Loaded) -> Decisions[Deliver | Carried, Carry | Delivered]:
        match message:
            case Deliver(errand):
                return [Send(Carry(errand))]
            case Carried(errand):
                return [Complete(Delivered(errand))]


@dataclass(frozen=True)
class Turn:
    meter: str
    number: int


@dataclass(frozen=True)
class Peek:
    """A request."""

    meter: str


@dataclass(frozen=True)
class Print:
    meter: str
    number: int


@dataclass(frozen=True)
class Reading:
    turns: int


@dataclass(frozen=True)
class Turned:
    numbers: tuple[int, ...] = ()


class Meter(Workflow[Turn | Peek, Turned, Print | Reading]):
    """Counts turns; only its state is stored."""

    initial_state = Turned()
    begins = Turn | Peek
    history = "state"

    def route(self, message: Turn | Peek) -> str | None:
        return message.meter

    def evolve(self, state: Turned, event: Event[Turn | Peek, Print | Reading]) -> Turned | None:
        match event:
            case Received(Turn(_, number)):
                return Turned((*state.numbers, number))
            case _:
                return None

    def decide(self, message: Turn | Peek, state: Turned) -> Decisions[Turn | Peek, Print | Reading]:
        match message:
            case Turn(meter, number):
                return [Send(Print(meter, number))]
            case Peek():
                return [Reply(Reading(len(state.numbers)))]


WORKFLOWS: Final[dict[str, Workflow[Any, Any, Any]]] = {
    type(workflow).__name__: workflow for workflow in (Errand(), Delivery(), Meter())
}
