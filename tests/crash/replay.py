"""Fold and decide once more, over recorded rows, without the engine's or the core's own fold, step and translate."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from mainspring import (
    Began,
    CancelSchedule,
    Complete,
    Completed,
    InitiatedBy,
    Publish,
    Published,
    Received,
    Replied,
    Reply,
    Schedule,
    ScheduleCancelled,
    Scheduled,
    Send,
    Sent,
    Workflow,
)
from tests.crash.evidence import INPUTS, Recorded

Complaint = tuple[int, str]
Shape = tuple[str, Any, Any]


def replay(workflow: Workflow[Any, Any, Any], stream: list[Recorded]) -> tuple[list[Complaint], str]:
    """Return what the stream has and the workflow would not have recorded, and the name of the last state."""
    complaints: list[Complaint] = []
    state = workflow.initial_state
    open: list[Shape] = []
    claimed: Recorded | None = None
    for row in stream:
        if row.event in INPUTS:
            complaints += _unmet(row.version, open) + _misnamed(claimed, state)
            open = [_of_decision(decision) for decision in workflow.decide(row.message(), state) or ()]
            claimed = row
        elif row.event not in ("Began", "Kept"):
            expected = open.pop(0) if open else None
            if expected != _of_row(row):
                complaints.append((row.version, f"recorded {_of_row(row)}, decide says {expected}"))
        if row.event != "Kept":
            state = workflow.evolve(state, _event(row)) or state
    complaints += _unmet(stream[-1].version + 1, open) + _misnamed(claimed, state)
    return complaints, type(state).__name__


def _unmet(version: int, open: list[Shape]) -> list[Complaint]:
    return [(version, f"decide says {shape}, which was not recorded") for shape in open]


def _misnamed(row: Recorded | None, state: Any) -> list[Complaint]:
    if row is None or row.state == type(state).__name__:
        return []
    return [(row.version, f"the state after it is recorded as {row.state} and is {type(state).__name__}")]


def _of_decision(decision: Any) -> Shape:
    match decision:
        case Send(message):
            return "Sent", message, None
        case Publish(message):
            return "Published", message, None
        case Reply(message):
            return "Replied", message, None
        case Schedule(message, after=after):
            return "Scheduled", message, (decision.cancel_key, after)
        case CancelSchedule():
            return "ScheduleCancelled", None, decision.cancel_key
        case Complete(result):
            return "Completed", result, None
        case _:
            return type(decision).__name__, decision, None


def _of_row(row: Recorded) -> Shape:
    key = row.detail.get("key")
    match row.event:
        case "Scheduled":
            return row.event, row.message(), (key, _after(row))
        case "ScheduleCancelled":
            return row.event, None, key
        case _:
            return row.event, row.message(), None


def _after(row: Recorded) -> timedelta:
    return timedelta(microseconds=row.detail["after_us"])


def _event(row: Recorded) -> Any:
    message: Any = row.message()
    match row.event:
        case "Began":
            return Began()
        case "InitiatedBy":
            return InitiatedBy(message)
        case "Received":
            return Received(message)
        case "Sent":
            return Sent(message)
        case "Published":
            return Published(message)
        case "Replied":
            return Replied(message)
        case "Scheduled":
            return Scheduled(message, _after(row), None, row.detail["key"])
        case "ScheduleCancelled":
            return ScheduleCancelled(row.detail["key"])
        case "Completed":
            return Completed(message)
        case _:
            raise AssertionError(f"{row.event} is not expected here")
