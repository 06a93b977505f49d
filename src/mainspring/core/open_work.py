"""Open work: timers that run and tasks that are open, read off a stream's events. A store keeps them as rows."""

from __future__ import annotations

from typing import Any, cast

from mainspring.core.changes import same
from mainspring.core.decisions import task_timer_key
from mainspring.core.events import ENDS, Asked, Compensating, Reset, ScheduleCancelled, Scheduled, TaskClosed
from mainspring.core.messages import Kind
from mainspring.core.story import Entry


class OpenWork:
    """What an instance waits for after some events: timers by their positions, tasks by their keys.

    >>> work = OpenWork()
    >>> work.take(Entry(3, Scheduled("late", after=None, at=None, key="late")))
    >>> [timer.event.message for timer in work.timers.values()]
    ['late']
    >>> work.take(Entry(5, ScheduleCancelled("late")))
    >>> work.timers
    {}
    """

    __slots__ = ("ended", "tasks", "timers")

    def __init__(self) -> None:
        self.timers: dict[int, Entry] = {}
        self.tasks: dict[str, Asked] = {}
        self.ended = False

    def take(self, entry: Entry) -> None:
        """Take in the next event of the stream."""
        if entry.kind is Kind.TIMER and entry.cause is not None:
            self.timers.pop(entry.cause, None)
        match entry.event:
            case Scheduled():
                self.timers[entry.position] = entry
            case ScheduleCancelled(key):
                self._cancel(key)
            case Asked(key):
                self._close(key)
                self.tasks[key] = entry.event
            case TaskClosed(key):
                self._close(key)
            case Compensating() | Reset():
                # Behind a reset, the timers that still count are recorded again.
                self.timers.clear()
            case event if isinstance(event, ENDS):
                self.ended = True
                self.timers.clear()
                self.tasks.clear()
            case _:
                pass

    def fire(self, message: object) -> bool:
        """Remove the first timer with this message. Return True if there was one."""
        for position, timer in self.timers.items():
            if same(cast("Scheduled[Any]", timer.event).message, message):
                del self.timers[position]
                return True
        return False

    def answered(self, type_name: str) -> str | None:
        """Return the key of the open task that a message of this type answers, of several the first."""
        return next((key for key, asked in self.tasks.items() if type_name in asked.answers), None)

    def _close(self, key: str) -> None:
        self._cancel(task_timer_key(key))
        self.tasks.pop(key, None)

    def _cancel(self, key: str) -> None:
        self.timers = {
            position: timer for position, timer in self.timers.items() if cast("Scheduled[Any]", timer.event).key != key
        }
