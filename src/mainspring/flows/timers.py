"""Timers of a flow: what asyncio sets and cancels, as schedules of the stream."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

from mainspring.core.decisions import CancelSchedule, Schedule
from mainspring.errors import FlowError
from mainspring.flows.asked import Asked
from mainspring.flows.messages import TimerDue


class Timers:
    """The timers that run, by their keys: `300s`, and the second of that length `300s#2`."""

    def __init__(self, count: Callable[[str], int]) -> None:
        self._count = count
        self._handles: dict[str, asyncio.TimerHandle] = {}
        self._keys: dict[asyncio.TimerHandle, str] = {}

    def __bool__(self) -> bool:
        return bool(self._handles)

    def running(self) -> list[tuple[str, asyncio.TimerHandle]]:
        """Return all of them, the oldest first."""
        return list(self._handles.items())

    def set(self, handle: asyncio.TimerHandle, delay_seconds: float) -> Asked | None:
        """Return what sets a timer; None for one that is due at once."""
        try:
            delay = timedelta(seconds=round(delay_seconds, 6))
        except (OverflowError, ValueError):
            raise FlowError(
                f"A flow set a timer of {delay_seconds} seconds",
                "Use None where there is no timeout, or a shorter one.",
            ) from None
        if delay <= timedelta(0):
            return None
        key = TimerDue.key_of(delay, self._count(f"timer {TimerDue.key_of(delay)}"))
        schedule = Schedule(TimerDue(key), after=delay, key=key)
        self._handles[key] = handle
        self._keys[handle] = key
        return Asked(schedule, None, None, None)

    def cancels(self) -> list[CancelSchedule]:
        """Return what cancels all that run."""
        return [CancelSchedule(key) for key in self._handles]

    def due(self, key: str) -> asyncio.TimerHandle | None:
        """Return what a timer was set for; None if it was cancelled meanwhile, or is none of this run's."""
        handle = self._handles.pop(key, None)
        if handle is not None:
            del self._keys[handle]
        return handle

    def cancelled(self, handle: asyncio.TimerHandle) -> str | None:
        """Return the key of a timer that is cancelled; None if it is over."""
        key = self._keys.pop(handle, None)
        if key is not None:
            del self._handles[key]
        return key
