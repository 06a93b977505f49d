"""A workflow before and after each kind of change that a deploy brings, for workers of both to meet on one database.

A trip takes three rounds: a command, its result, a timer. `release(app, change)` is the release with that change,
`release(app, None)` the one before it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Literal, TypeAlias, get_args

from mainspring import Complete, Decisions, Mainspring, Received, Schedule, Send, Workflow, message

ROUNDS: Final = 3
TICK_MS: Final = 20

Change: TypeAlias = Literal["command", "timer", "input", "message version", "workflow version", "evolve"]
CHANGES: Final[tuple[Change, ...]] = get_args(Change)


@dataclass(frozen=True)
class Go:
    id: str


@dataclass(frozen=True)
class Walk:
    id: str
    round: int


@dataclass(frozen=True)
class Walked:
    id: str
    round: int


@dataclass(frozen=True)
class Rested:
    id: str


@dataclass(frozen=True)
class Going:
    rounds: int = 0
    at: int = 0


# ---- what changes bring


@dataclass(frozen=True)
class Ride:
    id: str
    round: int


@dataclass(frozen=True)
class Slept:
    id: str


@dataclass(frozen=True)
class Ridden:
    id: str
    round: int


@message(name="Walk", version=2, upcasters=[lambda body: body | {"shoes": "old"}])
@dataclass(frozen=True)
class WalkIn:
    id: str
    round: int
    shoes: str


@message(name="Walked", version=2, upcasters=[lambda body: body | {"km": 1}])
@dataclass(frozen=True)
class WalkedFar:
    id: str
    round: int
    km: int


@message(name="Rested", version=2, upcasters=[lambda body: body | {"well": True}])
@dataclass(frozen=True)
class RestedWell:
    id: str
    well: bool


@message(name="Go", version=2, upcasters=[lambda body: body | {"far": False}])
@dataclass(frozen=True)
class GoFar:
    id: str
    far: bool = True


class Rules:
    """What all releases have in common."""

    def command(self, id: str, round: int) -> Any:
        return Walk(id, round)

    def rest(self, id: str) -> Any:
        return Rested(id)

    def route(self, message: Any) -> str | None:
        return message.id

    def decide(self, message: Any, state: Going) -> Decisions[Any, Any] | None:
        if isinstance(message, Go | GoFar):
            return [Send(self.command(message.id, 1))]
        if isinstance(message, Rested | RestedWell | Slept):
            return [Send(self.command(message.id, state.rounds + 1))]
        if state.rounds + 1 == ROUNDS:
            return [Complete()]
        return [Schedule(self.rest(message.id), after=timedelta(milliseconds=TICK_MS), key="rest")]

    def evolve(self, state: Going, event: Any) -> Going | None:
        if isinstance(event, Received) and hasattr(event.message, "round"):
            return Going(state.rounds + 1)
        return None


class Trip(Rules, Workflow[Go | Walked | Rested, Going, Walk]):
    begins = Go
    initial_state = Going()


class TripByBike(Rules, Workflow[Go | Walked | Rested, Going, Walk | Ride]):
    name = "Trip"
    begins = Go
    initial_state = Going()

    def command(self, id: str, round: int) -> Any:
        return Ride(id, round)


class TripBySleep(Rules, Workflow[Go | Walked | Rested | Slept, Going, Walk]):
    name = "Trip"
    begins = Go
    initial_state = Going()

    def rest(self, id: str) -> Any:
        return Slept(id)


class TripRidden(Rules, Workflow[Go | Walked | Rested | Ridden, Going, Walk]):
    name = "Trip"
    begins = Go
    initial_state = Going()


class TripFar(Rules, Workflow[GoFar | WalkedFar | RestedWell, Going, WalkIn]):
    name = "Trip"
    begins = GoFar
    initial_state = Going()

    def command(self, id: str, round: int) -> Any:
        return WalkIn(id, round, "new")

    def rest(self, id: str) -> Any:
        return RestedWell(id, well=True)


class TripOfTomorrow(Rules, Workflow[Go | Walked | Rested, Going, Walk]):
    name = "Trip"
    version = 2
    begins = Go
    initial_state = Going()


class TripSeenOtherwise(Rules, Workflow[Go | Walked | Rested, Going, Walk]):
    name = "Trip"
    begins = Go
    initial_state = Going()
    snapshot_every = 2

    def evolve(self, state: Going, event: Any) -> Going | None:
        seen = super().evolve(state, event)
        return Going(state.rounds, state.at + 1) if seen is None else Going(seen.rounds, state.at + 1)


async def _at_once(_: str) -> None:
    pass


def release(app: Mainspring, change: Change | None, before: Callable[[str], Awaitable[None]] = _at_once) -> Mainspring:
    """Return the app with what belongs to a release. `before` is awaited in every handler with the trip's id."""
    by_change: dict[Change | None, tuple[Any, ...]] = {
        None: (Trip(),),
        "command": (TripByBike(),),
        "timer": (TripBySleep(),),
        "input": (TripRidden(),),
        "message version": (TripFar(),),
        "workflow version": (Trip(), TripOfTomorrow()),
        "evolve": (TripSeenOtherwise(),),
    }
    app.add(*by_change[change])

    if change == "message version":

        @app.handler
        async def walk_in(command: WalkIn) -> WalkedFar:  # pyright: ignore[reportUnusedFunction]
            await before(command.id)
            return WalkedFar(command.id, command.round, 2)

    elif change == "input":

        @app.handler
        async def ridden(command: Walk) -> Ridden:  # pyright: ignore[reportUnusedFunction]
            await before(command.id)
            return Ridden(command.id, command.round)

    else:

        @app.handler
        async def walk(command: Walk) -> Walked:  # pyright: ignore[reportUnusedFunction]
            await before(command.id)
            return Walked(command.id, command.round)

    if change == "command":

        @app.handler
        async def ride(command: Ride) -> Walked:  # pyright: ignore[reportUnusedFunction]
            await before(command.id)
            return Walked(command.id, command.round)

    return app


def begin(change: Change | None, id: str) -> Any:
    """Return the message that begins a trip in a release."""
    return GoFar(id) if change == "message version" else Go(id)
