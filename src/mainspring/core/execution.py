"""The execution log: what happened to an instance, who did it, how long it took. Read from its stream."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

from msgspec import Struct

from mainspring.core.events import (
    AnswerRefused,
    Cancelled,
    Compensated,
    Compensating,
    Completed,
    Failed,
    InitiatedBy,
    Kept,
    Migrated,
    Received,
    Resent,
    Reset,
    Resumed,
    Retried,
    Scheduled,
    Skipped,
    Suspended,
    Terminated,
)
from mainspring.core.messages import Kind
from mainspring.core.story import Entry
from mainspring.core.unkept import NotKept

What: TypeAlias = Literal[
    "Started",
    "Stepped",
    "Faulted",
    "Attempted",
    "Refused",
    "Suspended",
    "Resumed",
    "Skipped",
    "Kept",
    "Reset",
    "Migrated",
    "Retried",
    "Resent",
    "Compensating",
    "Compensated",
    "Completed",
    "Failed",
    "Cancelled",
    "Terminated",
]


class LogLine(Struct, frozen=True, gc=False):
    """One line of the log. `about` is the type of the message, or the reason.

    `actor` is who sent the message or operated the instance. Where the message is a handler's result, `attempt` says at
    which attempt it was given, and `duration` how long that one took. An attempt that failed is a line of its own,
    Attempted, at the position of the `command` that was sent; its `actor` is the worker, and `about` the error. Of a
    Refused answer, `command` is its type and `about` the reason.

    `answered_after` is the time from what was asked (a command, a timer, a task, a child, a fan-out) to this line,
    which is about its answer or its failure. `waited` is how long a timer was due when it was taken.
    """

    position: int
    what: What
    time: datetime | None
    about: str = ""
    state: str | None = None
    actor: str | None = None
    kind: Kind | None = None
    attempt: int | None = None
    duration_seconds: float | None = None
    answered_after_seconds: float | None = None
    waited_seconds: float | None = None
    command: str | None = None

    @property
    def duration(self) -> timedelta | None:
        """How long the attempt took."""
        return _span(self.duration_seconds)

    @property
    def answered_after(self) -> timedelta | None:
        """How long after the question the answer came."""
        return _span(self.answered_after_seconds)

    @property
    def waited(self) -> timedelta | None:
        """How long the timer was due."""
        return _span(self.waited_seconds)


def execution_log(entries: Iterable[Entry], before: Iterable[Entry] = ()) -> list[LogLine]:
    """Return the log of a stream, or of a part of it; `before` is what was asked before that part.

    >>> from mainspring.core.events import Began
    >>> [line.what for line in execution_log([Entry(1, Began()), Entry(2, InitiatedBy("go")), Entry(3, Completed())])]
    ['Started', 'Completed']
    """
    log: list[LogLine] = []
    known: dict[int | None, Entry] = {entry.position: entry for entry in before}
    for entry in entries:
        known[entry.position] = entry
        told = _told(entry)
        if told is not None:
            what, about = told
            answered_after, waited = _times(entry, known.get(entry.cause))
            log.append(
                LogLine(
                    entry.position,
                    what,
                    entry.time,
                    about,
                    entry.state,
                    entry.actor,
                    entry.kind,
                    entry.attempt,
                    _seconds(entry.duration),
                    _seconds(answered_after),
                    _seconds(waited),
                    _type(entry.event.message) if isinstance(entry.event, AnswerRefused) else None,
                )
            )
    return log


def with_attempts(lines: Iterable[LogLine], attempts: Iterable[LogLine]) -> list[LogLine]:
    """Return a log with the attempts that failed, each behind the lines up to its position.

    >>> lines = [LogLine(2, "Started", None), LogLine(5, "Stepped", None)]
    >>> [(line.position, line.what) for line in with_attempts(lines, [LogLine(3, "Attempted", None)])]
    [(2, 'Started'), (3, 'Attempted'), (5, 'Stepped')]
    """
    return sorted([*lines, *attempts], key=lambda line: line.position)


def unbegun(status: str, time: datetime, reason: str | None, state: str | None, *, waits: bool) -> list[LogLine]:
    """Return the log of an instance without a stream: what has kept it from taking its first input.

    `waits` says that an input waits for it.

    >>> [line.what for line in unbegun("suspended", datetime(2026, 1, 1), "no", None, waits=True)]
    ['Faulted']
    """
    ways: dict[str, What] = {"cancelled": "Cancelled", "terminated": "Terminated", "running": "Skipped"}
    what = ways.get(status) if status != "suspended" else "Faulted" if waits else "Suspended"
    return (
        [] if what is None or (what == "Skipped" and reason is None) else [LogLine(0, what, time, reason or "", state)]
    )


def _told(entry: Entry) -> tuple[What, str] | None:
    match entry.event:
        case Received(message):
            return "Started" if isinstance(entry.event, InitiatedBy) else "Stepped", _type(message)
        case Suspended(reason):
            # No operator did it: an input or a handler failed.
            return "Faulted" if entry.actor is None else "Suspended", reason
        case AnswerRefused(reason=reason):
            return "Refused", reason
        case Skipped(message):
            return "Skipped", _type(message)
        case Kept(message):
            return "Kept", _type(message)
        case Resumed():
            return "Resumed", ""
        case Retried(version):
            return "Retried", f"position {version}"
        case Resent(message):
            return "Resent", _type(message)
        case Reset(version, reason):
            return "Reset", f"to {version}: {reason}"
        case Migrated(version):
            return "Migrated", f"to workflow version {version}"
        case Completed(result):
            return "Completed", "" if result is None else _type(result)
        case Failed(reason):
            return "Failed", reason
        case Cancelled(reason):
            return "Cancelled", reason
        case Compensating(reason):
            return "Compensating", reason
        case Compensated(message):
            return "Compensated", _type(message)
        case Terminated(reason):
            return "Terminated", reason
    return None


def _times(entry: Entry, asked: Entry | None) -> tuple[timedelta | None, timedelta | None]:
    """Return how long after it was asked something was answered, and for how long it had been due."""
    answers = isinstance(entry.event, Received | AnswerRefused | Kept | Skipped | Compensated | Suspended)
    if not answers or asked is None or asked.time is None or entry.time is None or isinstance(asked.event, Received):
        return None, None
    due = None
    if isinstance(asked.event, Scheduled):
        due = asked.event.at if asked.event.after is None else asked.time + asked.event.after
    nothing = timedelta(0)  # a clock that was set back must not take time away
    return max(nothing, entry.time - asked.time), None if due is None else max(nothing, entry.time - due)


def _type(message: object) -> str:
    return message.type if isinstance(message, NotKept) else type(message).__name__


def _seconds(span: timedelta | None) -> float | None:
    return None if span is None else span.total_seconds()


def _span(seconds: float | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)
