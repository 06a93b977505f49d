"""Translates decisions into events: the imperative into the past tense.

The author never writes Began, InitiatedBy or Received: they follow from whether the stream exists.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar, cast

from mainspring.core.decisions import (
    Ask,
    Become,
    CancelSchedule,
    CloseTask,
    Compensate,
    Complete,
    Decision,
    Fail,
    FanOut,
    Publish,
    RefuseAnswer,
    Reply,
    Schedule,
    Send,
    StartChild,
)
from mainspring.core.events import (
    AnswerRefused,
    Asked,
    Became,
    Began,
    ChildStarted,
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
from mainspring.core.messages import type_of

In = TypeVar("In")
Out = TypeVar("Out")


def translate(
    begins: bool, message: In, decisions: Iterable[Decision[In, Out]], task: str | None = None
) -> list[Event[In, Out]]:
    """Return the events that record an input and what was decided about it, in order.

    An input that answers the task with the key `task` closes it, unless it is refused. A task's timers stand behind it.

    >>> translate(True, "placed", [Send("charge")])
    [Began(), InitiatedBy(message='placed'), Sent(message='charge')]
    """
    events: list[Event[In, Out]] = [Began(), InitiatedBy(message)] if begins else [Received(message)]
    if task is not None:
        events.append(TaskClosed(task))
    for decision in decisions:
        if type(decision) is RefuseAnswer:
            return [AnswerRefused(message, task or "", decision.reason)]
        events.append(recorded(decision))
        if type(decision) is Ask:
            events.extend(recorded(timer) for timer in decision.timers)
    return events


def recorded(decision: Decision[In, Out]) -> Event[In, Out]:
    """Return the event that records a decision; of a RefuseAnswer without the answer, which only `translate` knows.

    >>> recorded(Complete())
    Completed(result=None)
    """
    match decision:
        # The most frequent ones first: a match asks one class after the other.
        case Send(message, compensate):
            return Sent(message, compensate)
        case Complete(result):
            return Completed(result)
        case Publish(message):
            return Published(message)
        case Reply(message, to):
            return Replied(message, to)
        case Schedule(message, after, at):
            return Scheduled(message, after, at, decision.cancel_key)
        case CancelSchedule():
            return ScheduleCancelled(decision.cancel_key)
        case Ask():
            return _asked(decision)
        case CloseTask():
            return TaskClosed(decision.task_key)
        case RefuseAnswer(reason):
            return AnswerRefused(cast("Any", None), "", reason)
        case StartChild(message, when_parent_ends):
            return ChildStarted(message, when_parent_ends)
        case FanOut(messages, into):
            return FannedOut(tuple(messages), type_of(into).name, decision.join_key)
        case Fail(reason):
            return Failed(reason)
        case Compensate(reason, then):
            return Compensating(reason, then)
        case Become(state):
            return Became(state)


def _asked(ask: Ask[In]) -> Asked:
    return Asked(
        key=ask.task_key,
        title=ask.title,
        answers=tuple(type_of(answer).name for answer in ask.answers),
        role=ask.role,
        person=ask.person,
        excludes=ask.excludes,
        reject=None if ask.reject is None else type_of(ask.reject).name,
        due=ask.due,
        data=dict(ask.data),
    )
