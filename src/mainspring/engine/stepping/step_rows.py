"""A step's rows as they are written one after the other, and what becomes of those before them."""

from __future__ import annotations

from typing import Any, Final, cast

from mainspring.core.decisions import task_timer_key
from mainspring.core.events import Asked, Cancelled, Compensating, Completed, Failed, ScheduleCancelled, TaskClosed
from mainspring.engine.stepping.open_tasks import opening_of
from mainspring.port.records import EventRow, OutputClaim, OutputRow, Status
from mainspring.port.tasks import TaskOpening

ERROR_CHARACTERS: Final = 4_000


class Written:
    """A step's rows as they are written one after the other.

    A store cancels what it has, before it records what the step asks for: so what the step itself has set and takes
    back is left out here.

    >>> written = Written(asked=False)
    >>> written.outputs.append(OutputRow(3, "timer", "timer:Orders:Late", key="Late"))
    >>> written.note(ScheduleCancelled("Late"), 4)
    >>> written.outputs, written.cancels
    ([], ['Late'])
    """

    __slots__ = ("asked", "cancels", "claims", "closes", "opens", "outputs", "reason", "result", "rows", "status")

    def __init__(self, asked: bool) -> None:
        self.asked = asked
        self.rows: list[EventRow] = []
        self.outputs: list[OutputRow] = []
        self.claims: list[tuple[OutputClaim, Any]] = []
        self.cancels: list[str] = []
        self.closes: list[str] = []
        self.opens: list[TaskOpening] = []
        self.status: Status = "running"
        self.result: Any = None
        self.reason: str | None = None

    def note(self, event: Any, version: int) -> None:
        """Take in an event that has nothing to be carried out."""
        if isinstance(event, ScheduleCancelled):
            self._cancel(event.key)
        elif isinstance(event, Asked):
            if self.asked:
                self._close(event.key)
            self.opens.append(opening_of(event, version))
        elif isinstance(event, TaskClosed):
            self._close(event.key)
        elif isinstance(event, Completed | Failed | Cancelled | Compensating):
            self._end(cast("Any", event))

    def _end(self, event: Completed[Any] | Failed | Cancelled | Compensating[Any]) -> None:
        # Nothing is waited for any more, also not what this very step has set.
        self.outputs = [output for output in self.outputs if output.kind != "timer"]
        if isinstance(event, Completed):
            self.status, self.result = "completed", cast("Any", event).result
        elif isinstance(event, Compensating):
            self.status = "compensating"
        else:
            self.status = "failed" if isinstance(event, Failed) else "cancelled"
            self.result, self.reason = event.reason, event.reason[:ERROR_CHARACTERS]

    def _cancel(self, key: str) -> None:
        """Cancel the timers under a key, also those that this very step has set before."""
        self.cancels.append(key)
        self.outputs = [output for output in self.outputs if output.key != key]

    def _close(self, key: str) -> None:
        """Close the task under a key with its timers, also one that this very step has asked."""
        self.closes.append(key)
        self._cancel(task_timer_key(key))
        self.opens = [task for task in self.opens if task.key != key]
