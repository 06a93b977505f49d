"""Durable workflows as two pure functions; your database is the engine."""

from mainspring.app import Instance, Mainspring, Receipt
from mainspring.core.decisions import (
    CancelSchedule,
    Complete,
    Decision,
    Decisions,
    Fail,
    Publish,
    Reply,
    Schedule,
    Send,
)
from mainspring.core.events import (
    Began,
    Completed,
    Event,
    Failed,
    InitiatedBy,
    Published,
    Received,
    Replied,
    ScheduleCancelled,
    Scheduled,
    Sent,
)
from mainspring.core.failures import SendFailed
from mainspring.core.messages import Envelope, InstanceId, Kind, message
from mainspring.core.workflow import Workflow
from mainspring.engine.handlers import Context
from mainspring.engine.policies.breaker import Breaker
from mainspring.engine.policies.limits import RateLimit
from mainspring.engine.policies.retry import Retry
from mainspring.errors import DoNotRetryError, MainspringError

__all__ = [
    "Began",
    "Breaker",
    "CancelSchedule",
    "Complete",
    "Completed",
    "Context",
    "Decision",
    "Decisions",
    "DoNotRetryError",
    "Envelope",
    "Event",
    "Fail",
    "Failed",
    "InitiatedBy",
    "Instance",
    "InstanceId",
    "Kind",
    "Mainspring",
    "MainspringError",
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
    "Workflow",
    "message",
]
