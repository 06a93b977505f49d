"""Asking: the task that an Asked opens, and those that were open at a version."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from msgspec import json

from mainspring.core.events import Asked
from mainspring.engine.recording.stored_values import MICROSECOND, time_us_of
from mainspring.port.records import EventRow
from mainspring.port.tasks import TaskOpening

_encode_data = json.Encoder().encode


def opening_of(event: Asked, version: int) -> TaskOpening:
    """Return the task that an Asked at a version opens.

    >>> opening_of(Asked("approval", "Approve e-1", ("Approve",), due=timedelta(seconds=1)), 3).due_after_us
    1000000
    """
    due = event.due
    return TaskOpening(
        version=version,
        key=event.key,
        title=event.title,
        answers=event.answers,
        role=event.role,
        person=event.person,
        excludes=event.excludes,
        reject=event.reject,
        data=_encode_data(event.data),
        due_after_us=due // MICROSECOND if isinstance(due, timedelta) else None,
        due_at_us=time_us_of(due) if isinstance(due, datetime) else None,
    )


def still_open(events: Iterable[tuple[EventRow, str | None]]) -> list[EventRow]:
    """Return those events, each with its key, that asked and were neither answered nor closed, in order.

    >>> asked, closed = EventRow(3, "Asked", 0), EventRow(5, "TaskClosed", 0)
    >>> len(still_open([(asked, "a"), (closed, "b")])), len(still_open([(asked, "a"), (closed, "a")]))
    (1, 0)
    """
    open: dict[str | None, EventRow] = {}
    for event, key in events:
        if event.event in ("Asked", "TaskClosed"):
            open.pop(key, None)
        if event.event == "Asked":
            open[key] = event
    return list(open.values())
