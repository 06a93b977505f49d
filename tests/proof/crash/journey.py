"""Workflows that use all that an engine must carry across a crash, and the handlers' share of them."""

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
    SendFailed,
    Workflow,
)
from tests.proof.crash.workload import Workload

TICK: Final = timedelta(milliseconds=250)
SNOOZE: Final = timedelta(milliseconds=15)
NEVER: Final = timedelta(hours=1)
LAST_LEG: Final = 3
GATES: Final = 4

# Which messages are carried out by handlers, and how often each is tried; all others go to workflows.
CAPS: Final = {"Leg": 20, "Wobble": 5, "Despair": 3, "Wave": 20, "Pay": 1_000}
WOBBLE_BACKOFF: Final = timedelta(milliseconds=20)


@dataclass(frozen=True)
class Start:
    journey: str
    account: str
    despairs: bool


@dataclass(frozen=True)
class Note:
    """Sent by clients while the journey goes on, so that two processes step one instance."""

    journey: str
    number: int


@dataclass(frozen=True)
class LegDone:
    journey: str
    leg: int


@dataclass(frozen=True)
class Steadied:
    journey: str


@dataclass(frozen=True)
class Paid:
    journey: str


@dataclass(frozen=True)
class Answered:
    journey: str
    total: int


@dataclass(frozen=True)
class Ticked:
    """A timer that nobody cancels while the journey goes on."""

    journey: str


@dataclass(frozen=True)
class Snoozed:
    """A timer whose firing races its cancellation."""

    journey: str


@dataclass(frozen=True)
class NeverCame:
    """A timer that is always cancelled."""

    journey: str


@dataclass(frozen=True)
class Leg:
    journey: str
    leg: int


@dataclass(frozen=True)
class Wobble:
    """Fails once, then works."""

    journey: str


@dataclass(frozen=True)
class Despair:
    """Never works."""

    journey: str


@dataclass(frozen=True)
class Wave:
    """Is carried out without a result."""

    journey: str


@dataclass(frozen=True)
class Pay:
    """Is written into a table of the handler's own, in the transaction of its result."""

    journey: str


@dataclass(frozen=True)
class Ask:
    account: str
    journey: str


@dataclass(frozen=True)
class Deposit:
    account: str
    amount: int


@dataclass(frozen=True)
class Departed:
    journey: str


@dataclass(frozen=True)
class Arrived:
    journey: str
    notes: int


@dataclass(frozen=True)
class New:
    pass


@dataclass(frozen=True)
class Travelling:
    journey: str
    leg: int
    awaits: tuple[str, ...]
    notes: int = 0


@dataclass(frozen=True)
class Resting:
    """All legs are done, something else is still awaited."""

    journey: str
    awaits: tuple[str, ...]
    notes: int


@dataclass(frozen=True)
class Home:
    notes: int


JourneyInput = Start | Note | LegDone | Steadied | Paid | Answered | Ticked | Snoozed | NeverCame | SendFailed
JourneyState = New | Travelling | Resting | Home
JourneyOutput = Leg | Wobble | Despair | Wave | Pay | Ask | Departed | Arrived
Underway = Travelling | Resting


def after(state: Underway, message: JourneyInput) -> JourneyState:
    """Return the state after a message: home when nothing is awaited any more."""
    match message, state:
        case Note(), _:
            state = replace(state, notes=state.notes + 1)
        case LegDone(_, leg), Travelling(journey, _, awaits, notes):
            done = leg == LAST_LEG
            state = Resting(journey, awaits, notes) if done else replace(state, leg=leg + 1)
        case ((Ticked() | Steadied() | Paid() | Answered() | SendFailed()), _):
            name = type(message).__name__
            state = replace(state, awaits=tuple(awaited for awaited in state.awaits if awaited != name))
        case _:
            pass
    return Home(state.notes) if isinstance(state, Resting) and not state.awaits else state


class Journey(Workflow[JourneyInput, JourneyState, JourneyOutput]):
    begins = Start
    initial_state = New()
    snapshot_every = 10

    def route(self, message: JourneyInput) -> str | None:
        return None if isinstance(message, SendFailed) else message.journey

    def evolve(self, state: JourneyState, event: Event[JourneyInput, JourneyOutput]) -> JourneyState | None:
        match state, event:
            case New(), Received(Start(journey, _, despairs)):
                awaits = ("Answered", "Steadied", "Paid", "Ticked", *(["SendFailed"] if despairs else []))
                return Travelling(journey, 1, awaits)
            case ((Travelling() | Resting()), Received(message)):
                return after(state, message)

    def decide(self, message: JourneyInput, state: JourneyState) -> Decisions[JourneyInput, JourneyOutput] | None:
        match message, state:
            case Start(journey, account, despairs), New():
                return [
                    Send(Leg(journey, 1)),
                    Send(Wobble(journey)),
                    Send(Ask(account, journey)),
                    Publish(Departed(journey)),
                    *([Send(Despair(journey))] if despairs else []),
                    Schedule(Ticked(journey), after=TICK),
                    Schedule(Snoozed(journey), after=SNOOZE),
                    Schedule(NeverCame(journey), after=NEVER, key="never"),
                    Send(Pay(journey)),
                ]
            case LegDone(journey, 1), Travelling():
                return [CancelSchedule(Snoozed), Send(Leg(journey, 2))]
            case LegDone(journey, 2), Travelling():
                return [Send(Leg(journey, LAST_LEG))]
            case LegDone(journey, _), Travelling():
                return [CancelSchedule("never"), Send(Wave(journey)), *_end(state, message)]
            case (
                (Note() | Ticked() | Snoozed() | Steadied() | Paid() | Answered() | SendFailed()),
                (Travelling() | Resting()),
            ):
                return _end(state, message)


def _end(state: Underway, message: JourneyInput) -> list[Any]:
    match after(state, message):
        case Home(notes):
            arrived = Arrived(state.journey, notes)
            return [Publish(arrived), Complete(arrived)]
        case _:
            return []


@dataclass(frozen=True)
class Balance:
    total: int = 0
    asked: int = 0


class Account(Workflow[Ask | Deposit, Balance, Answered]):
    """A hot instance: many journeys ask it, clients fill it through its inbox."""

    begins = Ask | Deposit
    initial_state = Balance()
    mode: ClassVar = {Deposit: "inbox"}
    snapshot_every = 20

    def route(self, message: Ask | Deposit) -> str | None:
        return message.account

    def evolve(self, state: Balance, event: Event[Ask | Deposit, Answered]) -> Balance | None:
        match event:
            case Received(Deposit(_, amount)):
                return replace(state, total=state.total + amount)
            case Replied():
                return replace(state, asked=state.asked + 1)

    def decide(self, message: Ask | Deposit, state: Balance) -> Decisions[Ask | Deposit, Answered] | None:
        match message:
            case Ask(_, journey):
                return [Reply(Answered(journey, state.total))]
            case Deposit():
                return []


@dataclass(frozen=True)
class Unread:
    pass


@dataclass(frozen=True)
class Count:
    number: int = 0


class Audit(Workflow[Arrived, Unread, Arrived]):
    """One instance for each arrival, ended by its first message."""

    initial_state = Unread()

    def route(self, message: Arrived) -> str | None:
        return message.journey

    def evolve(self, state: Unread, event: Event[Arrived, Arrived]) -> Unread | None:
        return None

    def decide(self, message: Arrived, state: Unread) -> Decisions[Arrived, Arrived] | None:
        return [Complete(message)]


class Tally(Workflow[Arrived, Count, Arrived]):
    """One instance for all arrivals."""

    initial_state = Count()

    def route(self, message: Arrived) -> str | None:
        return "all"

    def evolve(self, state: Count, event: Event[Arrived, Arrived]) -> Count | None:
        return Count(state.number + 1) if isinstance(event, Received) else None

    def decide(self, message: Arrived, state: Count) -> Decisions[Arrived, Arrived] | None:
        return []


class Gate(Workflow[Departed, Count, Arrived]):
    """The only taker of what is published at a departure."""

    initial_state = Count()

    def route(self, message: Departed) -> str | None:
        return f"gate-{sum(message.journey.encode()) % GATES}"

    def evolve(self, state: Count, event: Event[Departed, Arrived]) -> Count | None:
        return Count(state.number + 1) if isinstance(event, Received) else None

    def decide(self, message: Departed, state: Count) -> Decisions[Departed, Arrived] | None:
        return []


WORKFLOWS: Final[dict[str, Workflow[Any, Any, Any]]] = {
    type(workflow).__name__: workflow for workflow in (Journey(), Account(), Audit(), Tally(), Gate())
}
MESSAGES: Final[dict[str, type[Any]]] = {
    cls.__name__: cls
    for cls in (
        *(Start, Note, LegDone, Steadied, Paid, Answered, Ticked, Snoozed, NeverCame, SendFailed),
        *(Leg, Wobble, Despair, Wave, Pay, Ask, Deposit, Departed, Arrived),
    )
}
JOURNEY: Final = Workload(
    workflows=WORKFLOWS,
    messages=MESSAGES,
    takers={"Ask": ("Account",), "Departed": ("Gate",), "Arrived": ("Audit", "Tally")},
    answered=frozenset({"Leg", "Wobble", "Despair", "Pay"}),
    caps=CAPS,
    hopeless=frozenset({"Despair"}),
    paying=frozenset({"Pay"}),
    come_to_rest=frozenset({"Journey"}),
)
