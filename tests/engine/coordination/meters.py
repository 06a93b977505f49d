"""A meter that is read and billed, once with its history and once without: the two differ in one line."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

from mainspring import (
    CancelSchedule,
    Complete,
    Decisions,
    Event,
    Mainspring,
    Publish,
    Received,
    Reply,
    Retry,
    Schedule,
    Send,
    Sent,
    Workflow,
)

UNITS_PER_BILL = 10


@dataclass(frozen=True)
class Install:
    meter: str


@dataclass(frozen=True)
class Read:
    meter: str
    units: int


@dataclass(frozen=True)
class Billed:
    meter: str
    units: int


@dataclass(frozen=True)
class Reminder:
    meter: str


@dataclass(frozen=True)
class AskTotal:
    meter: str


@dataclass(frozen=True)
class Remove:
    meter: str


Input = Install | Read | Billed | Reminder | AskTotal | Remove


@dataclass(frozen=True)
class Bill:
    meter: str
    units: int


@dataclass(frozen=True)
class HighUse:
    meter: str


@dataclass(frozen=True)
class Total:
    units: int


Output = Bill | HighUse | Total


@dataclass(frozen=True)
class Missing:
    pass


@dataclass(frozen=True)
class Reading:
    total: int = 0
    open: int = 0
    billed: int = 0


State = Missing | Reading


class Meter(Workflow[Input, State, Output]):
    """Bills what was read since the last bill, as soon as it is enough."""

    begins = Install
    initial_state = Missing()
    snapshot_every: ClassVar[int | None] = 7

    def route(self, message: Input) -> str | None:
        return message.meter

    def evolve(self, state: State, event: Event[Input, Output]) -> State | None:
        match state, event:
            case Missing(), Received(Install()):
                return Reading()
            case Reading(total, open, billed), Received(Read(_, units)):
                return Reading(total + units, open + units, billed)
            case Reading(total, open, billed), Sent(Bill(_, units)):
                return Reading(total, open - units, billed)
            case Reading(total, open, billed), Received(Billed(_, units)):
                return Reading(total, open, billed + units)

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        match message, state:
            case Install(meter), Missing():
                return [Schedule(Reminder(meter), after=timedelta(days=30))]
            case Read(meter, units), Reading(_, open):
                bills: list[Any] = [Send(Bill(meter, open + units))] if open + units >= UNITS_PER_BILL else []
                return [*bills, Publish(HighUse(meter))] if units > UNITS_PER_BILL else bills
            case AskTotal(), Reading(total):
                return [Reply(Total(total))]
            case Remove(), Reading(total):
                return [CancelSchedule(Reminder), Complete(Total(total))]
            case ((Install() | Billed() | Reminder()), Reading()):
                return []


class KeptMeter(Meter):
    pass


class StateMeter(Meter):
    history = "state"


def metering(app: Mainspring, workflow: Meter, bill: Callable[[Bill, str, int], None] | None = None) -> Mainspring:
    """Add a meter, and a handler that tells `bill` of the command, its key and the attempt."""
    app.add(workflow)

    @app.handler(retry=Retry(first=timedelta(milliseconds=10), max_attempts=50))
    async def send_bill(command: Bill, context: Any) -> Billed:
        if bill is not None:
            bill(command, context.idempotency_key, context.attempt)
        return Billed(command.meter, command.units)

    return app
