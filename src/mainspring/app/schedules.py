"""Schedules: messages that are sent again and again, by a calendar."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import chain, islice
from typing import Any, Final, Literal, TypeAlias, cast

from msgspec import Struct

from mainspring.app.given import checked_limit
from mainspring.app.instance import Instance
from mainspring.app.internals import Internals
from mainspring.core.messages import Message, type_of
from mainspring.engine.recording.stored_values import moment
from mainspring.engine.schedules.calendar import Calendar, CatchUp, calendar_of
from mainspring.engine.schedules.recurring import (
    RECURRING,
    Active,
    Declare,
    Pause,
    Paused,
    Remove,
    Removed,
    Resume,
    RunNow,
    Undeclared,
    recurring,
)
from mainspring.errors import NoSuchInstanceError, NoSuchNameError, OperationError, WiringError
from mainspring.port.records import Ref
from mainspring.views import ScheduleInfo

ScheduleStatus: TypeAlias = Literal["active", "paused", "removed", "suspended", "not started"]

MOST_NEXT: Final = 1_000
_SAMPLE: Final = datetime(2026, 1, 1, tzinfo=UTC)


class DeclaredSchedule(Struct, frozen=True):
    """A schedule as this app declares it."""

    calendar: Calendar
    message_type: type[Any]


class Schedules:
    """The schedules of an app: declared in code, made durable when a worker starts."""

    def __init__(self, internals: Internals) -> None:
        self._internals = internals
        self._declared = internals.schedules

    def add(
        self,
        name: str,
        *,
        message: Message | Callable[[datetime], Message],
        cron: str | None = None,
        every: timedelta | None = None,
        timezone: str = "UTC",
        catch_up: CatchUp = "once",
    ) -> None:
        """Send a message by a calendar: a cron text in a time zone, or an interval.

        `message` is the message, or a pure function that makes it of the time for which it is sent. `catch_up` says
        what happens to times at which no worker ran: `skip` them, fire `once` for all of them, or `all` one by one.
        """
        calendar = calendar_of(name, cron, every, timezone, catch_up)
        if name in self._declared:
            raise WiringError(f"Two schedules are named {name!r}", "Name one of them otherwise.")
        made: Callable[[datetime], Any] = message if inspect.isroutine(message) else lambda _: message
        message_type: type[Any] = cast("type[Any]", type(made(_SAMPLE)))
        self._internals.registry.add_workflow(recurring(name, message_type, made))
        self._declared[name] = DeclaredSchedule(calendar, message_type)

    async def next(self, name: str, n: int = 5) -> list[datetime]:
        """Return the next times of a schedule, as they would be if it were not paused."""
        state = await self._state(name)
        calendar = self._declared[name].calendar if isinstance(state, Undeclared) else state.calendar
        if isinstance(state, Active) and state.next is not None:
            times = chain((state.next,), calendar.after(state.next))
        else:
            times = calendar.after(moment(self._internals.engine.store.now_us()))
        return list(islice(times, min(checked_limit(n), MOST_NEXT)))

    # Below `next`: behind it, `list` in an annotation means this method.
    async def list(self) -> list[ScheduleInfo]:
        """Return the schedules that this app declares."""
        return [await self._info(name) for name in self._declared]

    async def pause(self, name: str, *, actor: str | None = None) -> None:
        """Pause a schedule until it is resumed."""
        await self._send(name, Pause(), actor)

    async def resume(self, name: str, *, actor: str | None = None) -> None:
        """Resume a paused or removed schedule, beginning with its next time from now."""
        await self._send(name, Resume(), actor)

    async def remove(self, name: str, *, actor: str | None = None) -> None:
        """Stop a schedule, until it is declared differently or resumed. Remove it from the code as well."""
        await self._send(name, Remove(), actor)

    async def run_now(self, name: str, *, actor: str | None = None) -> None:
        """Fire once, now; the calendar stays as it was."""
        await self._send(name, RunNow(), actor)

    async def _info(self, name: str) -> ScheduleInfo:
        declared, state = self._declared[name], await self._state(name)
        calendar = declared.calendar if isinstance(state, Undeclared) else state.calendar
        type_name = type_of(declared.message_type).name
        status = await self._status(name, state)
        next_at = state.next if isinstance(state, Active) and status != "removed" else None
        return ScheduleInfo(name, calendar.text, calendar.catch_up, type_name, status, next_at)

    async def _status(self, name: str, state: Undeclared | Active | Paused | Removed) -> ScheduleStatus:
        match state:
            case Undeclared():
                return "not started"
            case Paused():
                return "paused"
            case Removed():
                return "removed"
            case Active():
                status = (await self._instance(name).row()).status
                return "active" if status == "running" else "suspended" if status == "suspended" else "removed"

    async def _state(self, name: str) -> Undeclared | Active | Paused | Removed:
        self._check_declared(name)
        return await _state_of(self._internals, name)

    def _instance(self, name: str) -> Instance[Any, Any]:
        self._check_declared(name)
        return _instance_of(self._internals, name)

    def _check_declared(self, name: str) -> None:
        if name not in self._declared:
            known = ", ".join(self._declared) or "none"
            raise NoSuchNameError(f"Schedule {name}", "is not declared", f"This app declares {known}.")

    async def _send(self, name: str, order: Any, actor: str | None) -> None:
        self._check_declared(name)
        await _order(self._internals, name, order, actor)


def check_schedules(internals: Internals) -> None:
    """Refuse a schedule whose message has no taker, or more than one."""
    registry = internals.registry
    for name, declared in internals.schedules.items():
        type_name = type_of(declared.message_type).name
        takers = [entry.name for entry in registry.takers_of(declared.message_type)]
        if len(takers) > 1:
            raise WiringError(
                f"{type_name}, which the schedule {name} sends, is taken by {' and '.join(takers)}",
                "A sent message goes to exactly one: remove the others.",
            )
        if not takers and type_name not in registry.handlers and type_name not in registry.external:
            raise WiringError(
                f"Nothing takes {type_name}, which the schedule {name} sends",
                "Register a handler with @app.handler, add the workflow that takes it, "
                "or say app.external(…) if another process does.",
            )


async def declare_schedules(internals: Internals) -> None:
    """Make what was declared durable. What is so already is left as it is."""
    for name, declared in internals.schedules.items():
        state = await _state_of(internals, name)
        if isinstance(state, Undeclared) or state.calendar != declared.calendar:
            await _order(internals, name, Declare(declared.calendar), None)


def _instance_of(internals: Internals, name: str) -> Instance[Any, Any]:
    return Instance(internals, Ref(f"{RECURRING}{name}", name))


async def _state_of(internals: Internals, name: str) -> Undeclared | Active | Paused | Removed:
    try:
        return await _instance_of(internals, name).state()
    except NoSuchInstanceError:
        return Undeclared()


async def _order(internals: Internals, name: str, order: Any, actor: str | None) -> None:
    intake = internals.engine.intake
    entry = internals.registry.workflows[f"{RECURRING}{name}"]
    pending = intake.envelop(order, entry, actor=actor, instance=name)
    advice = "Start a worker that declares it first; one that was cancelled needs another name."
    if pending is not None and await intake.answered(pending) == "dead letter":
        raise OperationError(
            f"Schedule {name}", "takes no orders: it was never started, or its instance was cancelled", advice
        )
