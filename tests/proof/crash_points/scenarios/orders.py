"""Start, retry and timer: an order that begins, a command that fails, and timers one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from mainspring import (
    CancelSchedule,
    Complete,
    Context,
    Decisions,
    Event,
    Mainspring,
    Received,
    Retry,
    Schedule,
    Send,
    SendFailed,
    Workflow,
)
from tests.proof.crash.workload import Workload
from tests.proof.crash_points.client import Client
from tests.proof.crash_points.handler_effects import HandlerEffects
from tests.proof.crash_points.scenario import Scenario

HOUR: Final = timedelta(hours=1)
SOON: Final = timedelta(milliseconds=10)
BACKOFF: Final = timedelta(milliseconds=2)
CAPS: Final = {"Charge": 20, "Shake": 5, "Despair": 2}
WORKS_AT_ATTEMPT: Final = 3


@dataclass(frozen=True)
class Place:
    order: str
    amount: int = 1


@dataclass(frozen=True)
class Charge:
    order: str


@dataclass(frozen=True)
class Charged:
    order: str


@dataclass(frozen=True)
class TooLate:
    order: str


@dataclass(frozen=True)
class Stage:
    name: str = "new"


class Order(Workflow[Place | Charged | TooLate, Stage, Charge | Charged]):
    """Begins, charges and ends; a timer that is always cancelled waits beside it."""

    begins = Place
    initial_state = Stage()

    def route(self, message: Place | Charged | TooLate) -> str | None:
        return message.order

    def evolve(self, state: Stage, event: Event[Any, Any]) -> Stage | None:
        return Stage(type(event.message).__name__) if isinstance(event, Received) else None

    def decide(self, message: Place | Charged | TooLate, state: Stage) -> Decisions[Any, Any] | None:
        match message:
            case Place(order):
                return [Send(Charge(order)), Schedule(TooLate(order), after=HOUR)]
            case Charged(order):
                return [CancelSchedule(TooLate), Complete(Charged(order))]
            case TooLate():
                return [Complete()]


def _wire_order(app: Mainspring, effects: HandlerEffects) -> None:
    app.add(Order())

    @app.handler
    async def charge(command: Charge, context: Context) -> Charged:
        with effects.call(context):
            effects.make(context)
            return Charged(command.order)


async def _start(client: Client) -> None:
    await client.ask("place-1", "Order/o-1", Place("o-1"))
    await client.ask("place-1", "Order/o-1", Place("o-1"))
    await client.ask("place-1", "Order/o-1", Place("o-1", amount=2))
    await client.ask("place-2", "Order/o-2", Place("o-2"))
    await client.ended("Order/o-1")
    await client.ended("Order/o-2")
    await client.quiet()


START: Final = Scenario(
    "start",
    Workload(
        workflows={"Order": Order()},
        messages={cls.__name__: cls for cls in (Place, Charge, Charged, TooLate)},
        answered=frozenset({"Charge"}),
        caps=CAPS,
        come_to_rest=frozenset({"Order"}),
    ),
    _wire_order,
    _start,
)


@dataclass(frozen=True)
class Try:
    attempt: str


@dataclass(frozen=True)
class Shake:
    """Fails twice, then works."""

    attempt: str


@dataclass(frozen=True)
class Steady:
    attempt: str


@dataclass(frozen=True)
class Despair:
    """Never works."""

    attempt: str


class ShakyError(Exception):
    """As expected."""


class Attempt(Workflow[Try | Steady | SendFailed, Stage, Shake | Despair]):
    """Sends what works at the third attempt, then what never works, and hears of both."""

    begins = Try
    initial_state = Stage()

    def route(self, message: Try | Steady | SendFailed) -> str | None:
        return None if isinstance(message, SendFailed) else message.attempt

    def evolve(self, state: Stage, event: Event[Any, Any]) -> Stage | None:
        return Stage(type(event.message).__name__) if isinstance(event, Received) else None

    def decide(self, message: Try | Steady | SendFailed, state: Stage) -> Decisions[Any, Any] | None:
        match message:
            case Try(attempt):
                return [Send(Shake(attempt))]
            case Steady(attempt):
                return [Send(Despair(attempt))]
            case SendFailed():
                return [Complete()]


def _wire_attempt(app: Mainspring, effects: HandlerEffects) -> None:
    app.add(Attempt())

    @app.handler(retry=Retry(max_attempts=CAPS["Shake"], first=BACKOFF), breaker=None)
    async def shake(command: Shake, context: Context) -> Steady:
        with effects.call(context):
            if context.attempt < WORKS_AT_ATTEMPT:
                raise ShakyError
            effects.make(context)
            return Steady(command.attempt)

    @app.handler(retry=Retry(max_attempts=CAPS["Despair"], first=BACKOFF), breaker=None)
    async def despair(command: Despair, context: Context) -> None:
        with effects.call(context):
            raise ShakyError


async def _retry(client: Client) -> None:
    await client.ask("try", "Attempt/a-1", Try("a-1"))
    await client.ended("Attempt/a-1")
    await client.quiet()


RETRY: Final = Scenario(
    "retry",
    Workload(
        workflows={"Attempt": Attempt()},
        messages={cls.__name__: cls for cls in (Try, Shake, Steady, Despair, SendFailed)},
        answered=frozenset({"Shake", "Despair"}),
        caps=CAPS,
        hopeless=frozenset({"Despair"}),
        come_to_rest=frozenset({"Attempt"}),
    ),
    _wire_attempt,
    _retry,
)


@dataclass(frozen=True)
class WindUp:
    clock: str


@dataclass(frozen=True)
class Hush:
    clock: str


@dataclass(frozen=True)
class Rung:
    clock: str
    times: int


@dataclass(frozen=True)
class Overslept:
    clock: str


class AlarmClock(Workflow[WindUp | Hush | Rung | Overslept, Stage, Rung]):
    """A far timer that is cancelled, then two near ones in a row."""

    begins = WindUp
    initial_state = Stage()

    def route(self, message: WindUp | Hush | Rung | Overslept) -> str | None:
        return message.clock

    def evolve(self, state: Stage, event: Event[Any, Any]) -> Stage | None:
        return Stage(type(event.message).__name__) if isinstance(event, Received) else None

    def decide(self, message: WindUp | Hush | Rung | Overslept, state: Stage) -> Decisions[Any, Any] | None:
        match message:
            case WindUp(clock):
                return [Schedule(Overslept(clock), after=HOUR, key="far")]
            case Hush(clock):
                return [CancelSchedule("far"), Schedule(Rung(clock, 1), after=SOON)]
            case Rung(clock, 1):
                return [Schedule(Rung(clock, 2), after=SOON)]
            case Rung() | Overslept():
                return [Complete(message if isinstance(message, Rung) else None)]


def _wire_clock(app: Mainspring, _effects: HandlerEffects) -> None:
    app.add(AlarmClock())


async def _timer(client: Client) -> None:
    await client.ask("wind", "AlarmClock/c-1", WindUp("c-1"))
    await client.ask("hush", "AlarmClock/c-1", Hush("c-1"))
    await client.ended("AlarmClock/c-1")
    await client.quiet()


TIMER: Final = Scenario(
    "timer",
    Workload(
        workflows={"AlarmClock": AlarmClock()},
        messages={cls.__name__: cls for cls in (WindUp, Hush, Rung, Overslept)},
        come_to_rest=frozenset({"AlarmClock"}),
    ),
    _wire_clock,
    _timer,
)
