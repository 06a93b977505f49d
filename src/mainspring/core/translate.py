"""Translates decisions into events: the imperative into the past tense.

The author never writes Began, InitiatedBy or Received: they follow from whether the stream exists.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from mainspring.core.decisions import (
    Become,
    CancelSchedule,
    Complete,
    Decision,
    Fail,
    Publish,
    Reply,
    Schedule,
    Send,
)
from mainspring.core.events import (
    Became,
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

In = TypeVar("In")
Out = TypeVar("Out")


def translate(begins: bool, message: In, decisions: Iterable[Decision[In, Out]]) -> list[Event[In, Out]]:
    """Return the events that record an input and what was decided about it, in order.

    >>> translate(True, "placed", [Send("charge")])
    [Began(), InitiatedBy(message='placed'), Sent(message='charge')]
    """
    events: list[Event[In, Out]] = [Began(), InitiatedBy(message)] if begins else [Received(message)]
    events.extend(recorded(decision) for decision in decisions)
    return events


def recorded(decision: Decision[In, Out]) -> Event[In, Out]:
    """Return the event that records a decision.

    >>> recorded(Complete())
    Completed(result=None)
    """
    match decision:
        case Send(message):
            return Sent(message)
        case Publish(message):
            return Published(message)
        case Reply(message, to):
            return Replied(message, to)
        case Schedule(message, after, at):
            return Scheduled(message, after, at, decision.cancel_key)
        case CancelSchedule():
            return ScheduleCancelled(decision.cancel_key)
        case Complete(result):
            return Completed(result)
        case Fail(reason):
            return Failed(reason)
        case Become(state):
            return Became(state)
