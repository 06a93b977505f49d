"""The history style: decide looks at the whole history and says which commands should exist by now.

A command that is in the history already is filtered out, and nothing follows the end. The words task, timer and
external event belong to this style alone: its tasks are what handlers do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias, cast

from msgspec import Struct

from mainspring.core.decisions import Complete, Decision, Fail, Schedule, Send
from mainspring.core.events import Completed, Event, Failed, Received, Scheduled, Sent
from mainspring.core.workflow import Workflow
from mainspring.errors import InvalidDecisionError, shown
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
    WaitForEvent,
    WorkflowCompleted,
    WorkflowFailed,
    WorkflowResult,
    WorkflowStarted,
)

_Decision: TypeAlias = Decision[HistoryInput, HistoryOutput]
_Event: TypeAlias = Event[HistoryInput, HistoryOutput]


class History(Struct, frozen=True):
    """What has happened, oldest first: the state of a workflow in this style.

    >>> History().appended(WorkflowStarted("o-1", None)).events
    (WorkflowStarted(workflow_id='o-1', input=None),)
    """

    events: tuple[HistoryEvent, ...] = ()

    def appended(self, event: HistoryEvent) -> History:
        """Return the history with one event more."""
        return History((*self.events, event))


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
        events = state.appended(_entered(asked)).events
        return list(_new_decisions(type(self).__name__, events, self.decide(events)))

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


def _new_decisions(name: str, events: Sequence[HistoryEvent], commands: Any) -> Iterator[_Decision]:
    """Yield the decisions for what the history does not hold yet; nothing follows an end."""
    if not isinstance(commands, (list, tuple)):
        problem = f"{name} decided {shown(commands)}, which is no list of commands"
        raise InvalidDecisionError(problem, "Return a list, as in [CompleteWorkflow(…)], or [] to wait.")
    tasks = {event.task_id for event in events if isinstance(event, TaskScheduled)}
    timers = {event.timer_id for event in events if isinstance(event, TimerScheduled)}
    for command in cast("Sequence[HistoryCommand]", commands):
        match command:
            case ScheduleTask(task_id, task_name, input):
                if task_id not in tasks:
                    tasks.add(task_id)
                    yield Send(RunTask(task_id, task_name, input))
            case StartTimer(timer_id, delay):
                if timer_id not in timers:
                    timers.add(timer_id)
                    yield Schedule(TimerFired(timer_id), after=delay, key=timer_id)
            case CompleteWorkflow(result):
                yield Complete(WorkflowResult(result))
                return
            case FailWorkflow(error):
                yield Fail(error)
                return
            case WaitForEvent():
                pass
            case _:
                problem = f"{name} decided {shown(command)}, which is no command of this style"
                raise InvalidDecisionError(
                    problem, "Use ScheduleTask, StartTimer, WaitForEvent, Complete… or FailWorkflow."
                )
