"""Durable workflows as two pure functions; your database is the engine."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mainspring.app import Instance, Mainspring, Receipt
    from mainspring.app.posting import Posted
    from mainspring.app.task_views import Task, TaskOutcome
    from mainspring.app.transactions import Transaction
    from mainspring.app.tuning import tune_process
    from mainspring.core.decisions import (
        Ask,
        CancelSchedule,
        CloseTask,
        Compensate,
        Complete,
        Decision,
        Decisions,
        Fail,
        FanOut,
        Publish,
        Reply,
        Schedule,
        Send,
        StartChild,
    )
    from mainspring.core.events import (
        Asked,
        Began,
        ChildStarted,
        Compensated,
        Compensating,
        Completed,
        Event,
        Failed,
        FannedOut,
        InitiatedBy,
        Published,
        Received,
        Replied,
        ScheduleCancelled,
        Scheduled,
        Sent,
        TaskClosed,
    )
    from mainspring.core.failures import ChildCompleted, ChildFailed, DeadlinePassed, SendFailed
    from mainspring.core.feed import FeedEntry
    from mainspring.core.messages import Envelope, InstanceId, Kind, message
    from mainspring.core.unkept import NotKept
    from mainspring.core.workflow import Workflow
    from mainspring.engine.handlers.handler import Context
    from mainspring.engine.handlers.policies.breaker import Breaker
    from mainspring.engine.handlers.policies.limits import RateLimit
    from mainspring.engine.handlers.policies.retry import Retry
    from mainspring.errors import DoNotRetryError, MainspringError, RetryLaterError
    from mainspring.port.loans import Connection

__all__ = [
    "Ask",
    "Asked",
    "Began",
    "Breaker",
    "CancelSchedule",
    "ChildCompleted",
    "ChildFailed",
    "ChildStarted",
    "CloseTask",
    "Compensate",
    "Compensated",
    "Compensating",
    "Complete",
    "Completed",
    "Connection",
    "Context",
    "DeadlinePassed",
    "Decision",
    "Decisions",
    "DoNotRetryError",
    "Envelope",
    "Event",
    "Fail",
    "Failed",
    "FanOut",
    "FannedOut",
    "FeedEntry",
    "InitiatedBy",
    "Instance",
    "InstanceId",
    "Kind",
    "Mainspring",
    "MainspringError",
    "NotKept",
    "Posted",
    "Publish",
    "Published",
    "RateLimit",
    "Receipt",
    "Received",
    "Replied",
    "Reply",
    "Retry",
    "RetryLaterError",
    "Schedule",
    "ScheduleCancelled",
    "Scheduled",
    "Send",
    "SendFailed",
    "Sent",
    "StartChild",
    "Task",
    "TaskClosed",
    "TaskOutcome",
    "Transaction",
    "Workflow",
    "message",
    "tune_process",
]

# Everything is imported when it is first asked for: the command line needs no more than the errors, a workflow and its
# tests the pure core, and only an app the engine.
_HOMES = {
    "mainspring.app": "Instance Mainspring Receipt",
    "mainspring.app.posting": "Posted",
    "mainspring.app.task_views": "Task TaskOutcome",
    "mainspring.app.transactions": "Transaction",
    "mainspring.app.tuning": "tune_process",
    "mainspring.core.decisions": (
        "Ask CancelSchedule CloseTask Compensate Complete Decision Decisions "
        "Fail FanOut Publish Reply Schedule Send StartChild"
    ),
    "mainspring.core.events": (
        "Asked Began ChildStarted Compensated Compensating Completed Event Failed "
        "FannedOut InitiatedBy Published Received Replied ScheduleCancelled Scheduled Sent TaskClosed"
    ),
    "mainspring.core.failures": "ChildCompleted ChildFailed DeadlinePassed SendFailed",
    "mainspring.core.feed": "FeedEntry",
    "mainspring.core.messages": "Envelope InstanceId Kind message",
    "mainspring.core.unkept": "NotKept",
    "mainspring.core.workflow": "Workflow",
    "mainspring.engine.handlers.handler": "Context",
    "mainspring.engine.handlers.policies.breaker": "Breaker",
    "mainspring.engine.handlers.policies.limits": "RateLimit",
    "mainspring.engine.handlers.policies.retry": "Retry",
    "mainspring.errors": "DoNotRetryError MainspringError RetryLaterError",
    "mainspring.port.loans": "Connection",
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}
# So that `import mainspring` is enough for `except mainspring.errors.StoreError`.
_MODULES = ("errors", "testing")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"mainspring.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'mainspring' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
