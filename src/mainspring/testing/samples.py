"""Workflows as small as can be, for docstrings and quick experiments."""

from __future__ import annotations

from dataclasses import dataclass

from mainspring.core.decisions import Ask, Complete, Decisions
from mainspring.core.events import Event, Received
from mainspring.core.messages import Envelope
from mainspring.core.workflow import Workflow


@dataclass(frozen=True)
class Count:
    """Counts once."""

    counter: str


@dataclass(frozen=True)
class CountedThrice:
    """The result after the third time."""

    counter: str


@dataclass(frozen=True)
class Counted:
    """How often it was counted so far."""

    times: int = 0


class Counter(Workflow[Count, Counted, CountedThrice]):
    """Counts to three and completes.

    >>> Counter().route(Count("c-1"))
    'c-1'
    """

    initial_state = Counted()

    def route(self, message: Count) -> str | None:
        return message.counter

    def decide(self, message: Count, state: Counted) -> Decisions[Count, CountedThrice] | None:
        return [Complete(CountedThrice(message.counter))] if state.times == 2 else []

    def evolve(self, state: Counted, event: Event[Count, CountedThrice]) -> Counted | None:
        match event:
            case Received():
                return Counted(state.times + 1)


@dataclass(frozen=True)
class RequestLeave:
    """An employee asks for leave."""

    leave_id: str


@dataclass(frozen=True)
class Leave:
    """A manager's answer."""

    leave_id: str
    granted: bool


@dataclass(frozen=True)
class Asking:
    """The only state there is."""


class LeaveRequests(Workflow[RequestLeave | Leave, Asking, Leave]):
    """Asks a manager, who must not be the employee who goes on leave.

    >>> LeaveRequests().route(RequestLeave("l-1"))
    'l-1'
    """

    begins = RequestLeave
    initial_state = Asking()

    def route(self, message: RequestLeave | Leave) -> str | None:
        return message.leave_id

    def decide(
        self, envelope: Envelope[RequestLeave | Leave], state: Asking
    ) -> Decisions[RequestLeave | Leave, Leave] | None:
        match envelope.message:
            case RequestLeave(leave_id):
                maker = envelope.actor or "somebody"
                title = f"Leave for {maker}?"
                return [Ask(title, Leave, role="manager", excludes=(maker,), data={"leave_id": leave_id})]
            case Leave():
                return [Complete(envelope.message)]

    def evolve(self, state: Asking, event: Event[RequestLeave | Leave, Leave]) -> Asking | None:
        return None
