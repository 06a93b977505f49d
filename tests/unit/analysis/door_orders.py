"""A small workflow for tests of diagrams: a door that is ordered, built and delivered, or given up."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from mainspring import (
    CancelSchedule,
    Compensate,
    Complete,
    Decisions,
    Event,
    Fail,
    Mainspring,
    Publish,
    Received,
    Schedule,
    Send,
    Workflow,
)
from mainspring.core.events import Compensating, Failed


@dataclass(frozen=True)
class Order:
    id: str


@dataclass(frozen=True)
class Built:
    id: str
    width: int = 90


@dataclass(frozen=True)
class Delivered:
    id: str


@dataclass(frozen=True)
class TooLate:
    id: str


@dataclass(frozen=True)
class GiveUp:
    id: str


@dataclass(frozen=True)
class Look:
    id: str


@dataclass(frozen=True)
class Build:
    id: str


@dataclass(frozen=True)
class TakeApart:
    id: str


@dataclass(frozen=True)
class Hurry:
    id: str


@dataclass(frozen=True)
class New:
    pass


@dataclass(frozen=True)
class Building:
    """The carpenter is at it."""


@dataclass(frozen=True)
class OnTheWay:
    width: int


@dataclass(frozen=True)
class Undoing:
    pass


@dataclass(frozen=True)
class Gone:
    pass


Input = Order | Built | Delivered | TooLate | GiveUp | Look
State = New | Building | OnTheWay | Undoing | Gone
Output = Build | TakeApart | Hurry


class Door(Workflow[Input, State, Output]):
    """A door, from the order to the wall."""

    begins = Order
    initial_state = New()
    again = "anew"

    def route(self, message: Input) -> str | None:
        return message.id

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        match message, state:
            case Order(id), New():
                return [
                    Send(Build(id), compensate=TakeApart(id)),
                    Schedule(TooLate(id), after=timedelta(days=1)),
                ]
            case Built(id, width), Building() if width > 200:
                return [Fail(f"{width} cm is no door")]
            case Built(), Building():
                return []
            case Delivered(), OnTheWay():
                return [CancelSchedule(TooLate), Complete()]
            case TooLate(id), Building():
                return [Publish(Hurry(id))]
            case GiveUp(), Building() | OnTheWay():
                return [Compensate("given up")]
            case Look(), _:
                return []

    def evolve(self, state: State, event: Event[Input, Output]) -> State | None:
        match state, event:
            case New(), Received(Order()):
                return Building()
            case Building(), Received(Built(_, width)):
                return OnTheWay(width)
            case _, Compensating():
                return Undoing()
            case Undoing(), Failed():
                return Gone()


def doors(url: str) -> Mainspring:
    """Return an app with doors, whose commands are carried out elsewhere but for the taking apart."""
    app = Mainspring(url)
    app.add(Door())
    app.external(Build)

    @app.handler
    async def take_apart(command: TakeApart) -> None: ...

    return app
