"""A stay in a hotel, which has to end within a day: a workflow with a deadline."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from mainspring import Complete, DeadlinePassed, Decisions, Event, Mainspring, Received, Send, Workflow


@dataclass(frozen=True)
class Arrive:
    guest: str


@dataclass(frozen=True)
class Leave:
    guest: str


@dataclass(frozen=True)
class OpenRoom:
    guest: str


@dataclass(frozen=True)
class CloseRoom:
    guest: str


@dataclass(frozen=True)
class New: ...


@dataclass(frozen=True)
class Staying:
    guest: str


Input = Arrive | Leave | DeadlinePassed
State = New | Staying
Output = OpenRoom | CloseRoom


class Stay(Workflow[Input, State, Output]):
    begins = Arrive
    again = "refuse"
    initial_state = New()
    deadline = timedelta(days=1)

    def route(self, message: Input) -> str | None:
        return None if isinstance(message, DeadlinePassed) else message.guest

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        match message, state:
            case Arrive(guest), New():
                return [Send(OpenRoom(guest), compensate=CloseRoom(guest))]
            case Leave(), Staying():
                return [Complete()]

    def evolve(self, state: State, event: Event[Input, Output]) -> State | None:
        match event:
            case Received(Arrive(guest)):
                return Staying(guest)


class OpenEnded(Workflow[Arrive | Leave, State, Output]):
    """The same in code that knows of no deadline."""

    name = "Stay"
    begins = Arrive
    again = "refuse"
    initial_state = New()

    def route(self, message: Arrive | Leave) -> str | None:
        return message.guest

    def decide(self, message: Arrive | Leave, state: State) -> Decisions[Arrive | Leave, Output] | None:
        match message, state:
            case Arrive(guest), New():
                return [Send(OpenRoom(guest), compensate=CloseRoom(guest))]
            case Leave(), Staying():
                return [Complete()]

    def evolve(self, state: State, event: Event[Arrive | Leave, Output]) -> State | None:
        match event:
            case Received(Arrive(guest)):
                return Staying(guest)


def hotel(app: Mainspring, workflow: Workflow[Any, State, Output] | None = None) -> list[str]:
    """Add the workflow and its handlers to an app, and return where they note what they did."""
    done: list[str] = []
    app.add(workflow or Stay())

    @app.handler
    async def opens(command: OpenRoom) -> None:
        done.append(f"opened for {command.guest}")

    @app.handler
    async def closes(command: CloseRoom) -> None:
        done.append(f"closed for {command.guest}")

    return done
