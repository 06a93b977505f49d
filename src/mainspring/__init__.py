"""Durable workflows as two pure functions; your database is the engine."""

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
from mainspring.core.messages import Envelope, InstanceId, Kind, message
from mainspring.core.workflow import Workflow
from mainspring.errors import MainspringError

__all__ = [
    "Began",
    "CancelSchedule",
    "Complete",
    "Completed",
    "Decision",
    "Decisions",
    "Envelope",
    "Event",
    "Fail",
    "Failed",
    "InitiatedBy",
    "InstanceId",
    "Kind",
    "MainspringError",
    "Publish",
    "Published",
    "Received",
    "Replied",
    "Reply",
    "Schedule",
    "ScheduleCancelled",
    "Scheduled",
    "Send",
    "Sent",
    "Workflow",
    "message",
]
