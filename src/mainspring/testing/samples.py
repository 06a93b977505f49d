"""A workflow as small as can be, for docstrings and quick experiments."""

from __future__ import annotations

from dataclasses import dataclass

from mainspring.core.decisions import Complete, Decisions
from mainspring.core.events import Event, Received
from mainspring.core.workflow import Workflow


@dataclass(frozen=True)
class Count:
    """Counts once.

    >>> Count("c-1").counter
    'c-1'
    """

    counter: str


@dataclass(frozen=True)
class CountedThrice:
    """The result after the third time.

    >>> CountedThrice("c-1").counter
    'c-1'
    """

    counter: str


@dataclass(frozen=True)
class Counted:
    """How often it was counted so far.

    >>> Counted().times
    0
    """

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
