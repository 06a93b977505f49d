"""A saga of six steps whose handlers can be told to fail, and a world that they change."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from mainspring import (
    Compensate,
    Complete,
    Context,
    DoNotRetryError,
    Event,
    Mainspring,
    Received,
    Retry,
    Send,
    SendFailed,
    Workflow,
)

STEPS = ("flight", "hotel", "car", "tour", "meal", "visa")
QUICK = Retry(max_attempts=3, first=timedelta(milliseconds=1), jitter=False)
LATE = Retry(max_attempts=3, first=timedelta(seconds=60), jitter=False)


@dataclass(frozen=True)
class PlanTrip:
    trip: str
    steps: tuple[str, ...] = STEPS
    instead: str | None = None


@dataclass(frozen=True)
class Book:
    trip: str
    step: str


@dataclass(frozen=True)
class CancelBooking:
    trip: str
    step: str


@dataclass(frozen=True)
class Booked:
    step: str


@dataclass(frozen=True)
class Freed:
    step: str


@dataclass(frozen=True)
class Replan:
    step: str


@dataclass(frozen=True)
class GiveUp:
    trip: str


@dataclass(frozen=True)
class Planning:
    trip: str = ""
    steps: tuple[str, ...] = ()
    instead: str | None = None


class Trip(Workflow[PlanTrip | Booked | SendFailed | Replan | GiveUp, Planning, Book | CancelBooking]):
    """Books one after the other; the first that fails undoes all before it."""

    begins = PlanTrip
    initial_state = Planning()

    def route(self, message: Any) -> str | None:
        return getattr(message, "trip", None)

    def decide(self, message: Any, state: Planning) -> Any:
        match message:
            case PlanTrip(trip, steps):
                return [book(trip, steps[0])]
            case Booked():
                return [book(state.trip, state.steps[1])] if len(state.steps) > 1 else [Complete()]
            case SendFailed():
                then = None if state.instead is None else Replan(state.instead)
                return [Compensate(f"no {state.steps[0]}", then)]
            case Replan(step):
                return [book(state.trip, step)]
            case GiveUp():
                return [Compensate("given up")]

    def evolve(self, state: Planning, event: Event[Any, Any]) -> Planning | None:
        match event:
            case Received(PlanTrip(trip, steps, instead)):
                return Planning(trip, steps, instead)
            case Received(Booked()):
                return Planning(state.trip, state.steps[1:], state.instead)
            case Received(Replan(step)):
                return Planning(state.trip, (step,), None)


def book(trip: str, step: str) -> Send[Any]:
    return Send(Book(trip, step), compensate=CancelBooking(trip, step))


@dataclass
class World:
    """What the handlers did. They honour their keys: the same command twice has one effect."""

    plans: dict[tuple[str, str], list[str]] = field(default_factory=dict[tuple[str, str], list[str]])
    seen: dict[str, str] = field(default_factory=dict[str, str])
    refused: set[str] = field(default_factory=set[str])
    booked: set[str] = field(default_factory=set[str])
    effects: list[str] = field(default_factory=list[str])
    calls: Counter[str] = field(default_factory=Counter[str])
    retry: Retry = QUICK
    hold: asyncio.Event | None = None
    held: asyncio.Event = field(default_factory=asyncio.Event)

    async def act(self, what: str, step: str, key: str, effect: Callable[[], None]) -> None:
        """Have an effect once for each key, and go wrong as planned: before it, after it, or not at all."""
        self.calls[f"{what} {step}"] += 1
        plan = self.plans.get((what, step), [])
        turn = plan.pop(0) if plan else "done"
        if key in self.refused or (turn == "refused" and key not in self.seen):
            if what == "book":
                self.refused.add(key)
            raise DoNotRetryError("no")
        if turn == "broken":
            raise OSError("nobody is there")
        if turn == "held" and self.hold is not None:
            self.held.set()
            await self.hold.wait()
        if key not in self.seen:
            self.seen[key] = what
            self.effects.append(f"{what} {step}")
            effect()
        if turn == "lost":
            raise TimeoutError("the answer was lost")

    def connect(self, app: Mainspring) -> None:
        @app.handler(retry=self.retry)
        async def book(command: Book, context: Context) -> Booked:
            await self.act("book", command.step, context.idempotency_key, lambda: self.booked.add(command.step))
            return Booked(command.step)

        @app.handler(retry=QUICK)
        async def cancel(command: CancelBooking, context: Context) -> Freed | None:
            free = lambda: self.booked.discard(command.step)  # noqa: E731
            await self.act("cancel", command.step, context.idempotency_key, free)
            return Freed(command.step) if command.step == "hotel" else None


def trip_app(make_app: Callable[[], Mainspring], world: World) -> Mainspring:
    app = make_app()
    app.add(Trip())
    world.connect(app)
    return app
