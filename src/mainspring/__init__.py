"""Durable workflows as two pure functions; your database is the engine."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
from mainspring.core.failures import ChildCompleted, ChildFailed, SendFailed
from mainspring.core.feed import FeedEntry
from mainspring.core.messages import Envelope, InstanceId, Kind, message
from mainspring.core.unkept import NotKept
from mainspring.core.workflow import Workflow
from mainspring.errors import DoNotRetryError, MainspringError

if TYPE_CHECKING:
    from mainspring.app import Instance, Mainspring, Receipt
    from mainspring.app.task_views import Task, TaskOutcome
    from mainspring.app.tuning import tune_process
    from mainspring.engine.handlers import Context
    from mainspring.engine.policies.breaker import Breaker
    from mainspring.engine.policies.limits import RateLimit
    from mainspring.engine.policies.retry import Retry
    from mainspring.port.lending import Connection

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
    "Publish",
    "Published",
    "RateLimit",
    "Receipt",
    "Received",
    "Replied",
    "Reply",
    "Retry",
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
    "Workflow",
    "message",
    "tune_process",
]

# A workflow and its tests need the pure core only: the engine is imported when it is first asked for.
_LATER = {
    "Breaker": "mainspring.engine.policies.breaker",
    "Connection": "mainspring.port.lending",
    "Context": "mainspring.engine.handlers",
    "Instance": "mainspring.app",
    "Mainspring": "mainspring.app",
    "RateLimit": "mainspring.engine.policies.limits",
    "Receipt": "mainspring.app",
    "Retry": "mainspring.engine.policies.retry",
    "Task": "mainspring.app.task_views",
    "TaskOutcome": "mainspring.app.task_views",
    "tune_process": "mainspring.app.tuning",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module 'mainspring' has no attribute {name!r}")
