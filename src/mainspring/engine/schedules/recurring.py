"""Recurring schedules: each is one instance of a workflow of its own, which waits for its next time with a timer.

So a schedule needs no table, no leader and no clock of its own: it is durable, fires once across workers, and its
stream shows when it fired and who paused it. Its workflow is named after it, so only a worker that declares it takes
its ticks.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain, islice
from typing import Any, Final, TypeAlias
from zoneinfo import ZoneInfo

from mainspring.core.decisions import CancelSchedule, Decisions, Schedule, Send
from mainspring.core.events import Event, Received, Scheduled
from mainspring.core.failures import SendFailed
from mainspring.core.messages import Envelope, message
from mainspring.core.workflow import Workflow
from mainspring.engine.schedules.calendar import Calendar

RECURRING: Final = "mainspring.Schedule."
FIRINGS_PER_STEP: Final = 1_000
PUNCTUAL: Final = timedelta(minutes=1)
TICK: Final = "tick"


@message(name="mainspring.Declare")
@dataclass(frozen=True)
class Declare:
    """Fire by this calendar from now on."""

    calendar: Calendar


@message(name="mainspring.Tick")
@dataclass(frozen=True)
class Tick:
    """A time of the calendar has come. The era distinguishes ticks of a former calendar from present ones."""

    at: datetime
    era: int


@message(name="mainspring.Pause")
@dataclass(frozen=True)
class Pause:
    """Fire no more until resumed."""


@message(name="mainspring.Resume")
@dataclass(frozen=True)
class Resume:
    """Fire again, beginning with the next time from now."""


@message(name="mainspring.Remove")
@dataclass(frozen=True)
class Remove:
    """Fire no more until declared differently, or resumed."""


@message(name="mainspring.RunNow")
@dataclass(frozen=True)
class RunNow:
    """Fire once, now, whatever the calendar says."""


Input: TypeAlias = Declare | Tick | Pause | Resume | Remove | RunNow | SendFailed


@dataclass(frozen=True)
class Undeclared:
    """Before the first declaration."""

    era: int = 0


@dataclass(frozen=True)
class Active:
    """Waits for its next time."""

    calendar: Calendar
    era: int
    next: datetime | None = None


@dataclass(frozen=True)
class Paused:
    """Waits to be resumed."""

    calendar: Calendar
    era: int


@dataclass(frozen=True)
class Removed:
    """Waits for nothing."""

    calendar: Calendar
    era: int


State: TypeAlias = Undeclared | Active | Paused | Removed


class _Recurring(Workflow[Any, State, Any]):
    begins = Declare
    # One that was cancelled can be declared once more, if differently, as one that was removed can.
    again = "anew"
    unknown_transition = "ignore"
    initial_state = Undeclared()
    made: Callable[[datetime], Any]

    def route(self, message: Input, /) -> str | None:
        """Take nothing by itself: a schedule is addressed by its name."""
        return None

    def evolve(self, state: State, event: Event[Any, Any], /) -> State | None:
        match event, state:
            case Received(Declare(calendar)), Undeclared(era) | Active(_, era) | Paused(_, era) | Removed(_, era):
                if not isinstance(state, Undeclared) and state.calendar == calendar:
                    return None
                return Paused(calendar, era + 1) if isinstance(state, Paused) else Active(calendar, era + 1)
            case Scheduled(Tick(at)), Active():
                return replace(state, next=at)
            case Received(Pause()), Active(calendar, era):
                return Paused(calendar, era + 1)
            case Received(Resume()), Paused(calendar, era) | Removed(calendar, era):
                return Active(calendar, era + 1)
            case Received(Remove()), Active(calendar, era) | Paused(calendar, era):
                return Removed(calendar, era + 1)

    def decide(self, envelope: Envelope[Any], state: State, /) -> Decisions[Any, Any] | None:
        match envelope.message, state:
            case Declare(calendar), Active() | Paused() | Removed() if state.calendar == calendar:
                return []
            case Declare(), Paused():
                return []
            case Declare(calendar), _:
                return [CancelSchedule(TICK), *_next_tick(calendar, state.era + 1, envelope.time, envelope.time)]
            case Tick(at, era), Active(calendar, now_era) if era == now_era:
                return self._fire(calendar, era, at, max(at, envelope.time))
            case ((Pause() | Remove()), Active()):
                return [CancelSchedule(TICK)]
            case Resume(), Paused(calendar, era) | Removed(calendar, era):
                return _next_tick(calendar, era + 1, envelope.time, envelope.time)
            case RunNow(), Active(calendar) | Paused(calendar) | Removed(calendar):
                return [Send(self._message(calendar, envelope.time))]
            case SendFailed(), _:
                return None  # a schedule continues, and a person has to look at the dead letter
            case _:
                return []

    def _fire(self, calendar: Calendar, era: int, at: datetime, now: datetime) -> Decisions[Any, Any]:
        """Send what is due, and wait for the next time."""
        if calendar.catch_up != "all":
            fires = calendar.catch_up == "once" or now - at <= PUNCTUAL
            return [*([Send(self._message(calendar, at))] if fires else []), *_next_tick(calendar, era, at, now)]
        times = list(islice(chain((at,), calendar.after(at)), FIRINGS_PER_STEP))
        due = [time for time in times if time <= now]
        return [*(Send(self._message(calendar, time)) for time in due), *_next_tick(calendar, era, due[-1], due[-1])]

    def _message(self, calendar: Calendar, at: datetime) -> Any:
        return self.made(at.astimezone(ZoneInfo(calendar.timezone)))


def _next_tick(calendar: Calendar, era: int, at: datetime, moment: datetime) -> list[Schedule[Any]]:
    next_at = calendar.first_after(at, moment)
    return [] if next_at is None else [Schedule(Tick(next_at, era), at=next_at, key=TICK)]


def recurring(name: str, message_type: type[Any], made: Callable[[datetime], Any]) -> Workflow[Any, Any, Any]:
    """Return the workflow of a schedule, which sends what `made` returns for each of its times.

    >>> from mainspring.testing.samples import Count
    >>> recurring("hourly", Count, lambda at: Count("c-1")).name
    'mainspring.Schedule.hourly'
    """
    bases = (Workflow[Input, State, message_type],)
    members = {key: value for key, value in vars(_Recurring).items() if not key.startswith("__")}
    members |= {"name": f"{RECURRING}{name}", "made": staticmethod(made)}
    cls = types.new_class("Recurring", bases, exec_body=lambda body: body.update(members))
    cls.__module__ = __name__
    return cls()
