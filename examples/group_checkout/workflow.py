"""Many checkouts, one answer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from mainspring import Complete, Decisions, Event, Publish, Published, Received, Schedule, Send, Workflow

PATIENCE = timedelta(minutes=10)


@dataclass(frozen=True)
class InitiateGroupCheckout:
    group_id: str
    stays: tuple[str, ...]


@dataclass(frozen=True)
class GuestCheckedOut:
    group_id: str
    stay: str


@dataclass(frozen=True)
class GuestCheckoutFailed:
    group_id: str
    stay: str
    reason: str


@dataclass(frozen=True)
class GroupCheckoutOverdue:
    group_id: str


Input = InitiateGroupCheckout | GuestCheckedOut | GuestCheckoutFailed | GroupCheckoutOverdue


@dataclass(frozen=True)
class CheckOutGuest:
    group_id: str
    stay: str


@dataclass(frozen=True)
class GroupCheckoutCompleted:
    group_id: str
    checked_out: tuple[str, ...]


@dataclass(frozen=True)
class GroupCheckoutFailed:
    group_id: str
    checked_out: tuple[str, ...]
    failed: tuple[str, ...]


@dataclass(frozen=True)
class GroupCheckoutTimedOut:
    group_id: str
    checked_out: tuple[str, ...]
    failed: tuple[str, ...]
    unanswered: tuple[str, ...]


Output = CheckOutGuest | GroupCheckoutCompleted | GroupCheckoutFailed | GroupCheckoutTimedOut


@dataclass(frozen=True)
class NotInitiated:
    pass


@dataclass(frozen=True)
class Pending:
    awaited: tuple[str, ...]
    checked_out: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()

    def answered(self, answer: GuestCheckedOut | GuestCheckoutFailed) -> Pending:
        """Return the state after a stay's answer. The first answer of a stay counts."""
        if answer.stay not in self.awaited:
            return self
        awaited = tuple(stay for stay in self.awaited if stay != answer.stay)
        match answer:
            case GuestCheckedOut(_, stay):
                return Pending(awaited, (*self.checked_out, stay), self.failed)
            case GuestCheckoutFailed(_, stay):
                return Pending(awaited, self.checked_out, (*self.failed, stay))


@dataclass(frozen=True)
class Finished:
    pass


State = NotInitiated | Pending | Finished


class GroupCheckout(Workflow[Input, State, Output]):
    """One group of guests who check out together."""

    begins = InitiateGroupCheckout
    again = "refuse"
    initial_state = NotInitiated()

    def route(self, message: Input) -> str | None:
        return message.group_id

    def evolve(self, state: State, event: Event[Input, Output]) -> State | None:
        match state, event:
            case NotInitiated(), Received(InitiateGroupCheckout(_, stays)):
                return Pending(stays)
            case Pending(), Received(GuestCheckedOut() | GuestCheckoutFailed() as answer):
                return state.answered(answer)
            case Pending(), Published(GroupCheckoutCompleted() | GroupCheckoutFailed() | GroupCheckoutTimedOut()):
                return Finished()

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        match message, state:
            case InitiateGroupCheckout(group_id, ()), NotInitiated():
                return [Publish(GroupCheckoutCompleted(group_id, ())), Complete()]
            case InitiateGroupCheckout(group_id, stays), NotInitiated():
                return [
                    *(Send(CheckOutGuest(group_id, stay)) for stay in stays),
                    Schedule(GroupCheckoutOverdue(group_id), after=PATIENCE),
                ]
            case GuestCheckedOut(group_id) | GuestCheckoutFailed(group_id), Pending():
                match state.answered(message):
                    case Pending((), checked_out, ()):
                        return [Publish(GroupCheckoutCompleted(group_id, checked_out)), Complete()]
                    case Pending((), checked_out, failed):
                        return [Publish(GroupCheckoutFailed(group_id, checked_out, failed)), Complete()]
                    case Pending():
                        return []
            case GroupCheckoutOverdue(group_id), Pending(awaited, checked_out, failed):
                return [Publish(GroupCheckoutTimedOut(group_id, checked_out, failed, awaited)), Complete()]
