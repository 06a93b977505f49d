"""Rewinding: an instance goes back to an earlier position, as a new branch of its history."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any, Final, cast

from msgspec import Struct
from msgspec.structs import replace

from mainspring.core.decisions import task_timer_key
from mainspring.core.events import Asked, Reset
from mainspring.core.failures import DeadlinePassed
from mainspring.core.fold import fold
from mainspring.core.messages import Kind, type_of
from mainspring.engine.inputs.branches import live
from mainspring.engine.inputs.long_streams import state_by
from mainspring.engine.inputs.stored_streams import whole_stream
from mainspring.engine.recording.children import STARTS, open_children, parent_at
from mainspring.engine.recording.destinations import command
from mainspring.engine.recording.destinations import timer as timer_of
from mainspring.engine.recording.event_details import Detail, encode_detail, read_detail
from mainspring.engine.recording.event_rows import answer_id
from mainspring.engine.recording.stored_values import encode_context, moment, read_context, time_us_of
from mainspring.engine.registry import WorkflowEntry
from mainspring.engine.stepping.open_tasks import opening_of, still_open
from mainspring.errors import OperationError
from mainspring.port.ids import MARK
from mainspring.port.records import ARMED, Context, EventRow, InputRow, InstanceRow, OutputRow, Ref, Unit
from mainspring.port.store import Store
from mainspring.port.tasks import TaskOpening, TaskWork

# A step begins with one of these; before it, and at the end, the stream is between two steps.
_BETWEEN: Final = frozenset(
    {
        "Received",
        "AnswerRefused",
        "Began",
        "Kept",
        "Skipped",
        "Suspended",
        "Resumed",
        "Cancelled",
        "Terminated",
        "Reset",
        "Migrated",
        "Retried",
        "Resent",
    }
)
_DEADLINE: Final = type_of(DeadlinePassed).name
WAITING: Final = 10_000
_ENDS: Final = frozenset({"Completed", "Failed", "Cancelled", "Terminated"})


class Rewind(Struct, frozen=True):
    """Where an instance goes back to: the state, the timers that waited, the commands without answer, and the tasks."""

    version: int
    state: Any
    timers: list[tuple[EventRow, datetime]]
    unanswered: list[EventRow]
    asked: list[EventRow]
    answers: list[EventRow]

    def unit(self, row: InstanceRow, entry: WorkflowEntry, reason: str, actor: str, now_us: int) -> Unit:
        """Return what records it.

        Timers are set anew, for when they were to fire, and tasks are asked anew, under new ids: they are unclaimed,
        and an answer to an old one is refused as closed. A command that was answered in the part that is left behind is
        carried out again, under its old id: a handler that is idempotent by its key does nothing twice. A child that
        has ended cannot begin again: what it said comes once more, and so does another workflow's reply.
        """
        events = [entry.recorder.row(Reset(self.version, reason), row.version + 1, now_us, actor)]
        opens: list[TaskOpening] = []
        for asked in self.asked:
            version = row.version + 1 + len(events)
            detail = read_detail(asked.detail)
            if detail.after_us is not None:
                detail = replace(detail, after_us=None, at=_due(asked))
            again = EventRow(version, "Asked", now_us, detail=encode_detail(detail))
            events.append(again)
            opens.append(opening_of(cast("Asked", entry.recorder.event(again)), version))
        outputs: list[OutputRow] = []
        for timer, was_due in self.timers:
            due = _due_anew(timer, was_due, entry, now_us)
            version = row.version + 1 + len(events)
            key = read_detail(timer.detail).key
            detail = encode_detail(Detail(key=key, at=due))
            body = (timer.type, timer.type_version, timer.body)
            events.append(EventRow(version, "Scheduled", now_us, *body, detail))
            at_us = time_us_of(due)
            outputs.append(OutputRow(version, "timer", timer_of(entry.name, timer), at_us=at_us, key=key))
        for sent in self.unanswered:
            key = ARMED if read_detail(sent.detail).compensate is not None else None
            outputs.append(OutputRow(sent.version, "send", command(sent), key=key))
        # What is set anew is folded anew, now as at every load.
        state = fold(entry.workflow, self.state, entry.recorder.folded(Ref(row.workflow, row.id), events))
        return Unit(
            row.workflow,
            row.id,
            key=row.key,
            expected_version=row.version,
            events=tuple(events),
            status="running",
            state=entry.definition.states[type(state)],
            context=row.context,
            definition_version=row.definition_version,
            renews=True,
            accepts=tuple(_as_input(row, answer, part) for part, answer in enumerate(self.answers, 1)),
            outputs=tuple(outputs),
            # Whatever timers are there belong to both parts; those that count are set anew.
            cancel_all="timers",
            tasks=TaskWork(close_all=True, opens=tuple(opens)),
            attributes=entry.attributes(state) if entry.searchable else None,
        )


def rewind(entry: WorkflowEntry, row: InstanceRow, rows: Sequence[EventRow], version: int) -> Rewind:
    """Return what going back to a position means, or raise an OperationError that says to which one it may go."""
    counting = live(rows)
    _check(row, counting, version)
    kept = [event for event in counting if event.version <= version]
    state = state_by(entry, Ref(row.workflow, row.id), kept)
    left = [event for event in counting if event.version > version]
    answers = {event.cause: event for event in left if event.event in ("Received", "Kept") and event.kind == "result"}
    unanswered = [event for event in kept if event.event in ("Sent", "Resent") and event.version in answers]
    again = [answers[event.version] for event in kept if event.event in STARTS and event.version in answers]
    again += _replies(row, kept, left)
    _check_children(row, kept, left)
    asked = still_open((event, read_detail(event.detail).key) for event in kept if event.detail is not None)
    return Rewind(version, state, _waiting(kept), unanswered, asked, again)


async def parent_was_told(store: Store, ref: Ref, parent: str) -> bool:
    """Return True if a parent knows how its child ended, or is about to. A parent that is gone needs no notice."""
    # In the order in which an end travels, so that it cannot slip through between two looks.
    if any(output.kind == "end" for output in await store.outputs(ref, timers=False, limit=WAITING)):
        return True
    to = parent_at(parent)
    if any(row.cause == to.version for row in await store.inbox(to.ref, WAITING)):
        return True
    rows = live(await whole_stream(store, to.ref))
    return not rows or any(row.cause == to.version and row.kind == "result" for row in rows)


def without_parent(row: InstanceRow) -> InstanceRow:
    """Return an instance as one without a parent: no parent is notified of its end."""
    return replace(row, context=encode_context(replace(read_context(row.context), parent=None)))


def _check_children(row: InstanceRow, kept: Sequence[EventRow], left: Sequence[EventRow]) -> None:
    """Refuse to wait again for children that were cancelled when their parent ended: their ends were never reported."""
    open = open_children([*kept, *left]) if any(event.event in _ENDS for event in left) else []
    cancelled = [event.version for event in open if event in kept]
    if cancelled:
        raise OperationError(
            f"{row.workflow}/{row.id}",
            f"cannot be reset to where the child that it started at position {cancelled[0]} was open: the child has "
            "ended with it",
            f"Choose a position before {cancelled[0]}, or begin another instance.",
        )


def _replies(row: InstanceRow, kept: Sequence[EventRow], left: Sequence[EventRow]) -> list[EventRow]:
    """Return the replies of other workflows that came in the part that is left behind, to what was sent before it."""
    sent = {f"{row.workflow}/{row.id}/{event.version}" for event in kept if event.event == "Sent"}
    return [
        event
        for event in left
        if event.event in ("Received", "Kept") and event.kind == "reply" and event.context is not None
        if read_context(event.context).causation_id in sent
    ]


def _as_input(row: InstanceRow, answer: EventRow, part: int) -> InputRow:
    """Return an answer as an input once more, under an id that follows from the Reset: the old one is a duplicate."""
    began = read_context(row.context)
    return InputRow(
        workflow=row.workflow,
        instance=row.id,
        message_id=MARK + answer_id(Ref(row.workflow, row.id), row.version + 1, Kind.RESULT, part),
        kind=answer.kind or Kind.RESULT.value,
        type=answer.type or "",
        type_version=answer.type_version,
        body=answer.body or b"",
        time_us=answer.time_us,
        context=answer.context or encode_context(Context(began.correlation_id, None, None, None, began.trace)),
        cause=answer.cause,
    )


def _check(row: InstanceRow, counting: Sequence[EventRow], version: int) -> None:
    name = f"{row.workflow}/{row.id}"
    if row.purged_us is not None:
        raise OperationError(name, "was purged, and cannot be reset", "Nothing is to be done.")
    steps = [before.version for before, event in pairwise(counting) if event.event in _BETWEEN and before.version > 1]
    if version in steps and not any(e.event in _ENDS for e in counting if e.version <= version):
        return
    possible = ", ".join(map(str, steps[-20:])) or "none"
    raise OperationError(
        name,
        f"cannot be reset to position {version}",
        f"Choose one at which a step had ended, and the instance had not: {possible}.",
    )


def _waiting(kept: Sequence[EventRow]) -> list[tuple[EventRow, datetime]]:
    """Return the timers that were set and had neither fired nor been cancelled, with when they were to fire."""
    waiting: dict[int, EventRow] = {}
    for event in kept:
        if event.event == "Scheduled":
            waiting[event.version] = event
        elif event.event in ("Reset", "Compensating"):
            waiting.clear()  # those that count were set anew right behind a reset; compensating, nothing else waits
        elif event.event in ("ScheduleCancelled", "TaskClosed", "Asked"):
            key = read_detail(event.detail).key or ""
            key = key if event.event == "ScheduleCancelled" else task_timer_key(key)
            waiting = {v: timer for v, timer in waiting.items() if read_detail(timer.detail).key != key}
        elif event.kind == "timer" and event.cause is not None:
            waiting.pop(event.cause, None)
    return [(timer, _due(timer)) for timer in waiting.values()]


def _due_anew(timer: EventRow, due: datetime, entry: WorkflowEntry, now_us: int) -> datetime:
    """Return when a timer is to fire after a reset: as before, but a deadline that has passed counts from now.

    At once it would only end again what an operator wants to continue.
    """
    deadline = entry.definition.deadline
    if deadline is None or timer.type != _DEADLINE or time_us_of(due) > now_us:
        return due
    return moment(now_us) + deadline


def _due(timer: EventRow) -> datetime:
    detail = read_detail(timer.detail)
    return detail.at if detail.at is not None else moment(timer.time_us + (detail.after_us or 0))
