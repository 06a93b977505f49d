"""Asking: the task that an Asked opens, and those that were open at a version."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime, timedelta

from msgspec import json

from mainspring.core.events import Asked
from mainspring.engine.inputs.branches import live
from mainspring.engine.inputs.pending import Pending
from mainspring.engine.inputs.stored_streams import whole_stream
from mainspring.engine.recording.answered_commands import caused_by
from mainspring.engine.recording.event_details import read_detail
from mainspring.engine.recording.stored_values import MICROSECOND, time_us_of
from mainspring.engine.stepping.lanes import Lane
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
    """Return the version of the task that a message answers, unless it was closed or asked anew since.

    Where the history is not kept, what came since is there for as long as an answer waits, and what asked may be gone.
    """
    task = caused_by(answer.ref, answer.context)
    rows = await whole_stream(store, answer.ref)
    counting = live(rows)
    if task is None or task in {row.version for row in rows} - {row.version for row in counting}:
        return None
    since = [(row, read_detail(row.detail).key) for row in counting if row.version > task and row.detail is not None]
    open = still_open([(EventRow(task, "Asked", 0), answer.context.task), *since])
    return task if task in {event.version for event in open} else None


def unread_task(answer: Pending, lane: Lane) -> Callable[[Store], Awaitable[None]] | None:
    """Return what has to be read before an answer can be refused: whether the task that it has ended is asked still.

    One that comes through its task has not ended it.
    """
    version = lane.version
    if answer.task_answer is not None or answer.asked_at[0] == version:
        return None

    async def read(store: Store) -> None:
        answer.asked_at = version, await asked_still(store, answer)

    return read
