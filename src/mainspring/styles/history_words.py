"""The words of the history style: its inputs, outputs, events and commands.

A word is equal to another when all that has to be written of it is. What has a default is beside that: a timestamp is
put in when the event is recorded, whatever a sender wrote, and an address only says where to.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, TypeAlias

from msgspec import Struct

from mainspring.core.failures import SendFailed
from mainspring.core.messages import message

# What a second version of a word means, older releases decide otherwise: they do not know that a task may be ended from
# elsewhere, and once only, nor that a handler that gave up has failed. Its form is that of the first.
_meant_anew = message(version=2, upcasters=[lambda body: body])


class _Word(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        fields = self.__struct_fields__
        required = fields[: len(fields) - len(self.__struct_defaults__)]
        return all(getattr(self, name) == getattr(other, name) for name in required)

    def __hash__(self) -> int:
        # Inputs and results are mostly dicts, which have none.
        return hash((type(self), getattr(self, self.__struct_fields__[0])))


class _Addressed(_Word, frozen=True, kw_only=True):
    workflow_id: str | None = None


@_meant_anew
class StartWorkflow(_Word, frozen=True):
    """Input: begin."""

    workflow_id: str
    input: Any


@_meant_anew
class TaskCompleted(_Addressed, frozen=True):
    """Input and event: a task was done. A handler of RunTask returns it; sent from elsewhere it has a `workflow_id`."""

    task_id: str
    result: Any
    timestamp: float = 0.0


@_meant_anew
class TaskFailed(_Addressed, frozen=True):
    """Input and event: a task could not be done."""

    task_id: str
    error: str
    timestamp: float = 0.0


class TimerFired(_Word, frozen=True):
    """Input and event: a timer is due."""

    timer_id: str
    timestamp: float = 0.0


class ExternalEventReceived(_Word, frozen=True):
    """Input and event: something happened outside."""

    workflow_id: str
    event_name: str
    payload: Any
    timestamp: float = 0.0


@_meant_anew
class RunTask(_Word, frozen=True):
    """Output: what a handler is asked to do."""

    task_id: str
    task_name: str
    input: Any
    workflow_id: str = ""
    workflow: str = ""


class WorkflowResult(_Word, frozen=True):
    """Output: the result of a completed workflow."""

    value: Any


class WorkflowStarted(_Word, frozen=True):
    """Event: the workflow started."""

    workflow_id: str
    input: Any
    timestamp: float = 0.0


class TaskScheduled(_Word, frozen=True):
    """Event: a task was handed to its handler."""

    task_id: str
    task_name: str
    input: Any
    timestamp: float = 0.0


class TimerScheduled(_Word, frozen=True):
    """Event: a timer runs, until `fire_at`, in Unix seconds like all timestamps."""

    timer_id: str
    fire_at: float
    timestamp: float = 0.0


class WorkflowCompleted(_Word, frozen=True):
    """Event: the workflow ended well."""

    result: Any
    timestamp: float = 0.0


class WorkflowFailed(_Word, frozen=True):
    """Event: the workflow ended badly."""

    error: str
    timestamp: float = 0.0


class ScheduleTask(_Word, frozen=True):
    """Command: have a task done, once per id."""

    task_id: str
    task_name: str
    input: Any


class StartTimer(_Word, frozen=True):
    """Command: get a message when a delay is over, once per id. A number is seconds."""

    timer_id: str
    delay: timedelta | float


class WaitForEvent(_Word, frozen=True):
    """Command: only wait for something from outside. Behind a failed task it says that this is meant."""

    event_name: str


class CompleteWorkflow(_Word, frozen=True):
    """Command: end well."""

    result: Any


class FailWorkflow(_Word, frozen=True):
    """Command: end badly."""

    error: str


HistoryInput: TypeAlias = StartWorkflow | TaskCompleted | TaskFailed | TimerFired | ExternalEventReceived | SendFailed
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
