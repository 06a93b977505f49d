"""Asking: the task that an Asked opens, and those that were open at a version."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime, timedelta

from msgspec import json

from mainspring.core.events import Asked
from mainspring.engine.inputs.branches import live
from mainspring.engine.inputs.lanes import Lane
from mainspring.engine.inputs.pending import Pending
from mainspring.engine.inputs.stored_streams import whole_stream
from mainspring.engine.recording.answered_commands import caused_by
from mainspring.engine.recording.event_details import read_detail
from mainspring.engine.recording.stored_values import MICROSECOND, time_us_of
from mainspring.port.records import EventRow
from mainspring.port.store import Store
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


async def asked_still(store: Store, answer: Pending) -> int | None:
    """Return the version of the task that a message answers, unless it was closed or asked anew since."""
    task = caused_by(answer.ref, answer.context)
    rows = live(await whole_stream(store, answer.ref))
    open = still_open((event, read_detail(event.detail).key) for event in rows if event.detail is not None)
    return task if task in {event.version for event in open} else None


def unread_task(answer: Pending, lane: Lane) -> Callable[[Store], Awaitable[None]] | None:
    """Return what has to be read before an answer can be refused: whether the task that it has ended is asked still.

    One that comes through its task has not ended it. Of a trimmed stream nothing can be read: it is open again.
    """
    if answer.task_answer is not None or answer.asked_at[0] == lane.version:
        return None
    if lane.trims:
        answer.asked_at = lane.version, caused_by(answer.ref, answer.context)
        return None
    version = lane.version

    async def read(store: Store) -> None:
        answer.asked_at = version, await asked_still(store, answer)

    return read
