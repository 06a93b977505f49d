"""The words of the history style: its inputs, outputs, events and commands."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias


@dataclass(frozen=True)
class StartWorkflow:
    """Input: begin."""

    workflow_id: str
    input: Any


@dataclass(frozen=True)
class TaskCompleted:
    """Input and event: a task was done. A handler of RunTask returns it."""

    task_id: str
    result: Any


@dataclass(frozen=True)
class TaskFailed:
    """Input and event: a task could not be done."""

    task_id: str
    error: str


@dataclass(frozen=True)
class TimerFired:
    """Input and event: a timer is due."""

    timer_id: str


@dataclass(frozen=True)
class ExternalEventReceived:
    """Input and event: something happened outside."""

    workflow_id: str
    event_name: str
    payload: Any


@dataclass(frozen=True)
class RunTask:
    """Output: what a handler is asked to do."""

    task_id: str
    task_name: str
    input: Any


@dataclass(frozen=True)
class WorkflowResult:
    """Output: the result of a completed workflow."""

    value: Any


@dataclass(frozen=True)
class WorkflowStarted:
    """Event: the workflow started."""

    workflow_id: str
    input: Any


@dataclass(frozen=True)
class TaskScheduled:
    """Event: a task was handed to its handler."""

    task_id: str
    task_name: str
    input: Any


@dataclass(frozen=True)
class TimerScheduled:
    """Event: a timer runs."""

    timer_id: str
    delay: timedelta


@dataclass(frozen=True)
class WorkflowCompleted:
    """Event: the workflow ended well."""

    result: Any


@dataclass(frozen=True)
class WorkflowFailed:
    """Event: the workflow ended badly."""

    error: str


@dataclass(frozen=True)
class ScheduleTask:
    """Command: have a task done, once per id."""

    task_id: str
    task_name: str
    input: Any


@dataclass(frozen=True)
class StartTimer:
    """Command: get a message when a delay is over, once per id."""

    timer_id: str
    delay: timedelta


@dataclass(frozen=True)
class WaitForEvent:
    """Command: nothing to do but wait. It is there for the reader."""

    event_name: str


@dataclass(frozen=True)
class CompleteWorkflow:
    """Command: end well."""

    result: Any


@dataclass(frozen=True)
class FailWorkflow:
    """Command: end badly."""

    error: str


HistoryInput: TypeAlias = StartWorkflow | TaskCompleted | TaskFailed | TimerFired | ExternalEventReceived
HistoryOutput: TypeAlias = RunTask | WorkflowResult
HistoryCommand: TypeAlias = ScheduleTask | StartTimer | WaitForEvent | CompleteWorkflow | FailWorkflow
HistoryEvent: TypeAlias = (
    WorkflowStarted
    | TaskScheduled
    | TaskCompleted
    | TaskFailed
    | TimerScheduled
    | TimerFired
    | ExternalEventReceived
    | WorkflowCompleted
    | WorkflowFailed
)
