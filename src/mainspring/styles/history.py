"""The history style: decide looks at the whole history and says which commands should exist by now.

A command that is in the history already is filtered out, and nothing follows the end. The words task, timer and
external event belong to this style alone: its tasks are what handlers do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from mainspring.core.decisions import Complete, Decision, Fail, Schedule, Send
from mainspring.core.events import Completed, Event, Failed, Received, Scheduled, Sent
from mainspring.core.workflow import Workflow
from mainspring.styles.history_words import (
    CompleteWorkflow,
    ExternalEventReceived,
    FailWorkflow,
    HistoryCommand,
    HistoryEvent,
    HistoryInput,
    HistoryOutput,
    RunTask,
    ScheduleTask,
    StartTimer,
    StartWorkflow,
    TaskScheduled,
    TimerFired,
    TimerScheduled,
    WorkflowCompleted,
    WorkflowFailed,
    WorkflowResult,
    WorkflowStarted,
)

_Decision: TypeAlias = Decision[HistoryInput, HistoryOutput]
_Event: TypeAlias = Event[HistoryInput, HistoryOutput]


class History(Struct, frozen=True, eq=False):
    """What has happened, oldest first. A longer history shares its beginning with the shorter one it grew from.

    >>> shorter = History().appended(WorkflowStarted("o-1", None))
    >>> longer = shorter.appended(WorkflowCompleted("done"))
    >>> len(shorter.events), len(longer.events)
    (1, 2)
    """

    _log: list[HistoryEvent] = []
    _length: int = 0

    @property
    def events(self) -> list[HistoryEvent]:
        """The events, as a list of one's own."""
        return self._log[: self._length]

    def appended(self, event: HistoryEvent) -> History:
        """Return the history with one event more."""
        # The shared log only ever grows behind every history that looks at it; a second branch gets a log of its own.
        log = self._log if len(self._log) == self._length else self.events
        log.append(event)
        return History(log, self._length + 1)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, History) and self.events == other.events

    def __hash__(self) -> int:
        return self._length

    def __repr__(self) -> str:
        return f"History({self.events!r})"


class HistoryWorkflow(Workflow[HistoryInput, History, HistoryOutput]):
    """A workflow whose decide takes the history and returns commands.

    >>> from mainspring.testing import given
    >>> class Greeting(HistoryWorkflow):
    ...     def decide(self, events):
    ...         match events[-1]:
    ...             case WorkflowStarted(_, name):
    ...                 return [ScheduleTask("greet-1", "greet", name)]
    ...             case _:
    ...                 return [CompleteWorkflow("greeted")]
    >>> _ = given(Greeting()).when(StartWorkflow("g-1", "Ada")).then(Send(RunTask("greet-1", "greet", "Ada")))
    """

    begins = StartWorkflow
    initial_state = History()
    snapshot_every = None  # the state is the history: a copy of it would save nothing

    def route(self, message: HistoryInput, /) -> str | None:
        match message:
            case StartWorkflow(workflow_id) | ExternalEventReceived(workflow_id):
                return workflow_id
            case _:
                return None  # results and timers come back to the instance that asked, past route

    def decide(self, events: Sequence[HistoryEvent], /) -> Sequence[HistoryCommand]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the commands that should exist by now, those already given among them."""
        raise NotImplementedError

    def decide_on(self, asked: Any, state: History, /) -> list[_Decision]:
        events = [*state.events, _entered(asked)]
        return list(_new_decisions(events, self.decide(events)))

    def evolve(self, state: History, event: _Event, /) -> History | None:
        happened = _happened(event)
        return None if happened is None else state.appended(happened)


def _entered(message: HistoryInput) -> HistoryEvent:
    return WorkflowStarted(message.workflow_id, message.input) if isinstance(message, StartWorkflow) else message


def _happened(event: _Event) -> HistoryEvent | None:
    match event:
        case Received(message):
            return _entered(message)
        case Sent(RunTask(task_id, task_name, input)):
            return TaskScheduled(task_id, task_name, input)
        case Scheduled(TimerFired(timer_id), after) if after is not None:
            return TimerScheduled(timer_id, after)
        case Completed(result):
            return WorkflowCompleted(result.value if isinstance(result, WorkflowResult) else None)
        case Failed(reason):
            return WorkflowFailed(reason)
        case _:
            return None


def _new_decisions(events: Sequence[HistoryEvent], commands: Sequence[HistoryCommand]) -> Iterator[_Decision]:
    """Yield the decisions for what the history does not hold yet; nothing follows an end."""
    tasks = {event.task_id for event in events if isinstance(event, TaskScheduled)}
    timers = {event.timer_id for event in events if isinstance(event, TimerScheduled)}
    for command in commands:
        match command:
            case ScheduleTask(task_id, task_name, input) if task_id not in tasks:
                tasks.add(task_id)
                yield Send(RunTask(task_id, task_name, input))
            case StartTimer(timer_id, delay) if timer_id not in timers:
                timers.add(timer_id)
                yield Schedule(TimerFired(timer_id), after=delay, key=timer_id)
            case CompleteWorkflow(result):
                yield Complete(WorkflowResult(result))
                return
            case FailWorkflow(error):
                yield Fail(error)
                return
            case _:
                pass
