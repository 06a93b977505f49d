"""What happened, in as many words as the code has: not one for each key that somebody made of an order's number."""

from __future__ import annotations

from typing import Final

from mainspring.analysis.redaction import Outgoing
from mainspring.engine.recording.event_details import Detail
from mainspring.port.records import EventRow

KEYS_KEPT: Final = 10_000
"""Keys of timers and tasks of one instance of which it is remembered what they are for."""


class Activities:
    """Names the events of one instance, in their order: by the message's type, or else by the event's own name.

    A cancelled timer has the name of what was scheduled, a task the names of the messages that answer it.

    >>> activities = Activities()
    >>> activities.name(EventRow(3, "Scheduled", 0), Outgoing("TimedOut", None, None), Detail(key="o-1"))
    'TimedOut'
    >>> activities.name(EventRow(4, "ScheduleCancelled", 0), Outgoing(None, None, None), Detail(key="o-1"))
    'TimedOut'
    """

    def __init__(self) -> None:
        self._names: dict[tuple[str, str | None], str] = {}

    def name(self, row: EventRow, outgoing: Outgoing, detail: Detail) -> str:
        """Return the name of the next event."""
        match row.event:
            case "Scheduled":
                return self._remembered("timer", detail.key, outgoing.type or row.event)
            case "Asked":
                return self._remembered("task", detail.key, " or ".join(detail.answers) or row.event)
            case "ScheduleCancelled":
                return self._names.get(("timer", detail.key), row.event)
            case "TaskClosed":
                return self._names.get(("task", detail.key), row.event)
            case _:
                return outgoing.type or row.event

    def _remembered(self, kind: str, key: str | None, name: str) -> str:
        if len(self._names) >= KEYS_KEPT:
            del self._names[next(iter(self._names))]
        self._names[kind, key] = name
        return name
