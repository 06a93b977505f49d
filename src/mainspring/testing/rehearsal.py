"""A rehearsal: one instance of a workflow on the pure core, with no store and no clock behind it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Generic, TypeVar

from mainspring.core.events import ENDS, Completed, Event, Failed, ScheduleCancelled, Scheduled
from mainspring.core.fold import fold
from mainspring.core.messages import Kind
from mainspring.core.step import Step, step
from mainspring.core.story import Entry
from mainspring.core.workflow import Workflow
from mainspring.errors import InstanceEndedError
from mainspring.testing.envelopes import EPOCH, envelope

In = TypeVar("In")
State = TypeVar("State")
Out = TypeVar("Out")


class Rehearsal(Generic[In, State, Out]):
    """Steps messages through a workflow for real, and keeps the stream that they make.

    >>> from mainspring.testing.samples import Count, Counter
    >>> rehearsal = Rehearsal(Counter())
    >>> _ = rehearsal.take(Count("c-1"))
    >>> rehearsal.state
    Counted(times=1)
    """

    def __init__(self, workflow: Workflow[In, State, Out]) -> None:
        self.workflow = workflow
        self.state: State = workflow.initial_state
        self.entries: list[Entry] = []

    @property
    def version(self) -> int:
        """The version of the last event, 0 before the first."""
        return len(self.entries)

    @property
    def events(self) -> list[Event[In, Out]]:
        """The stream so far."""
        return [entry.event for entry in self.entries]

    @property
    def end(self) -> Completed[Out] | Failed | None:
        """The event that ended the instance, if one did."""
        last = self.entries[-1].event if self.entries else None
        return last if isinstance(last, ENDS) else None

    def record(self, event: Event[In, Out]) -> None:
        """Append an event as history, without deciding anything."""
        self.state = fold(self.workflow, self.state, [event])
        self._append([event], Entry(0, event))

    def take(
        self,
        message: In,
        *,
        kind: Kind | None = None,
        actor: str | None = None,
        reply_to: str | None = None,
        time: datetime = EPOCH,
    ) -> Step[In, State, Out]:
        """Take one input and return its step. A message that was scheduled before counts as a timer."""
        name = type(self.workflow).__name__
        if self.end is not None:
            raise InstanceEndedError(name, message, self.state, self.end)
        if kind is None:
            kind = Kind.TIMER if self.was_scheduled(message) else Kind.COMMAND
        id = f"message-{self.version + 1}"
        enveloped = envelope(message, id=id, time=time, kind=kind, actor=actor, reply_to=reply_to)
        taken = step(self.workflow, self.state, self.version, enveloped, begins=not self.entries)
        self.state = taken.state
        self._append(taken.events, Entry(0, taken.events[0], kind, id, time, actor))
        return taken

    def was_scheduled(self, message: object) -> bool:
        """Tell whether this very message was scheduled at some time."""
        return any(isinstance(e, Scheduled) and e.message == message for e in self.events)

    def waiting(self) -> list[Scheduled[In]]:
        """Return what is scheduled and not cancelled, in order."""
        open: list[Scheduled[In]] = []
        for event in self.events:
            if isinstance(event, Scheduled):
                open.append(event)
            elif isinstance(event, ScheduleCancelled):
                open = [scheduled for scheduled in open if scheduled.key != event.key]
        return open

    def _append(self, events: Sequence[Event[Any, Any]], input: Entry) -> None:
        for event in events:
            version = len(self.entries) + 1
            if event.direction == "input":
                entry = Entry(version, event, input.kind, input.message_id, input.time, input.actor)
            else:
                entry = Entry(version, event)
            self.entries.append(entry)
