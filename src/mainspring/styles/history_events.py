"""The history: all events of a workflow, oldest first, and what is asked of them most, in one look each."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from mainspring.styles.history_words import (
    HistoryEvent,
    TaskCompleted,
    TaskFailed,
    TaskScheduled,
    TimerFired,
    TimerScheduled,
)

E = TypeVar("E")
Key = tuple[str, str]


class _Log:
    """Events that are only ever appended, and where what stands in them. Histories of one branch share it."""

    __slots__ = ("events", "kinds", "places", "tasks")

    def __init__(self) -> None:
        self.events: list[HistoryEvent] = []
        # The first event of a kind about an id.
        self.places: dict[Key, int] = {}
        self.kinds: dict[type[Any], list[int]] = {}
        # Tasks by their positions in the stream.
        self.tasks: dict[int, str] = {}

    def append(self, event: HistoryEvent, position: int) -> None:
        place = len(self.events)
        self.events.append(event)
        self.kinds.setdefault(type(event), []).append(place)
        key = _key(event)
        if key is not None:
            self.places.setdefault(key, place)
        if isinstance(event, TaskScheduled) and position:
            self.tasks[position] = event.task_id


def _key(event: HistoryEvent) -> Key | None:
    match event:
        case TaskScheduled(id):
            return "task", id
        case TaskCompleted(id) | TaskFailed(id):
            return "end", id
        case TimerScheduled(id):
            return "timer", id
        case TimerFired(id):
            return "fired", id
        case _:
            return None


@dataclass(frozen=True, init=False, repr=False, eq=False)
class History(Sequence[HistoryEvent]):
    """What has happened, oldest first: the state of a workflow in this style, and what its decide looks at.

    One event more costs the same however many there are: the events are shared with the history before it. Where two
    go on from the same one, the second gets events of its own.

    >>> from mainspring.styles.history_words import WorkflowStarted
    >>> History().appended(WorkflowStarted("o-1", None)).events
    (WorkflowStarted(workflow_id='o-1', input=None),)
    """

    events: tuple[HistoryEvent, ...]
    """All events, copied into a tuple. To look at a few, take them from the history itself."""

    def __init__(self, events: Sequence[HistoryEvent] = ()) -> None:
        log = _Log()
        for event in events:
            log.append(event, 0)
        # Frozen for all other code.
        vars(self).update(_log=log, _length=len(log.events), _last=None)

    def __getattr__(self, name: str) -> Any:
        if name == "events":
            return tuple(self)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def appended(self, event: HistoryEvent, position: int = 0) -> History:
        """Return the history with one event more, and where that stands in the stream."""
        log, length = self._log, self._length
        if self._last is not None or len(log.events) > length:
            log = _Log()
            tasks = {id: position for position, id in self._log.tasks.items()}
            for one in self:
                log.append(one, tasks.get(one.task_id, 0) if isinstance(one, TaskScheduled) else 0)
            length = len(log.events)
        log.append(event, position)
        return _view(log, length + 1)

    def before(self, event: HistoryEvent) -> History:
        """Return the history as it is going to be with an event, which is not recorded yet."""
        return _view(self._log, self._length, event)

    # ---- a sequence

    def __len__(self) -> int:
        return self._length + (self._last is not None)

    @overload
    def __getitem__(self, place: int) -> HistoryEvent: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[HistoryEvent, ...]: ...
    def __getitem__(self, place: int | slice) -> HistoryEvent | tuple[HistoryEvent, ...]:
        if isinstance(place, slice):
            return tuple(self[each] for each in range(*place.indices(len(self))))
        count = len(self)
        place = place + count if place < 0 else place
        if not 0 <= place < count:
            raise IndexError(f"a history of {count} events has none at {place}")
        return self._log.events[place] if place < self._length or self._last is None else self._last

    def __iter__(self) -> Iterator[HistoryEvent]:
        for place in range(self._length):
            yield self._log.events[place]
        if self._last is not None:
            yield self._last

    def __eq__(self, other: object) -> bool:
        return isinstance(other, History) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(len(self))

    def __repr__(self) -> str:
        return f"History(events={tuple(self)!r})"

    # ---- what is asked most

    def of(self, kind: type[E]) -> list[E]:
        """Return the events of a kind, oldest first, as in `events.of(ExternalEventReceived)`."""
        found: list[Any] = [self._log.events[at] for at in self._log.kinds.get(kind, ()) if at < self._length]
        return [*found, self._last] if isinstance(self._last, kind) else found

    def result_of(self, task_id: str) -> Any:
        """Return the result of a task, None while it has none."""
        end = self.end_of(task_id)
        return end.result if isinstance(end, TaskCompleted) else None

    def end_of(self, task_id: str) -> TaskCompleted | TaskFailed | None:
        """Return how a task ended: the first that was said of it."""
        return self._first("end", task_id)

    def has_fired(self, timer_id: str) -> bool:
        """Return True if a timer is over."""
        return self._first("fired", timer_id) is not None

    def has_scheduled(self, task_id: str) -> bool:
        """Return True if a task was handed out."""
        return self._first("task", task_id) is not None

    def has_started(self, timer_id: str) -> bool:
        """Return True if a timer was started, whether it is over or not."""
        return self._first("timer", timer_id) is not None

    def task_at(self, position: int | None) -> str | None:
        """Return the id of the task that was handed out at a position of the stream."""
        return self._log.tasks.get(position or 0)

    def unheeded(self) -> TaskFailed | None:
        """Return the last failure if nothing was begun since, no task is open and no timer runs."""
        (failed, place), (done, _), (fired, _) = map(self._seen, (TaskFailed, TaskCompleted, TimerFired))
        (tasks, task), (timers, timer) = map(self._seen, (TaskScheduled, TimerScheduled))
        if max(task, timer) > place or failed + done + fired < tasks + timers:
            return None
        last = self[place] if failed else None
        return last if isinstance(last, TaskFailed) else None

    def _seen(self, kind: type[HistoryEvent]) -> tuple[int, int]:
        """Return how many events of a kind there are, and the place of the last one; -1 if there is none."""
        places = self._log.kinds.get(kind, ())
        count = bisect_left(places, self._length)
        if isinstance(self._last, kind):
            return count + 1, self._length
        return count, places[count - 1] if count else -1

    def _first(self, kind: str, id: str) -> Any:
        place = self._log.places.get((kind, id))
        if place is not None and place < self._length:
            return self._log.events[place]
        return self._last if self._last is not None and _key(self._last) == (kind, id) else None


def _view(log: _Log, length: int, last: HistoryEvent | None = None) -> History:
    made = History.__new__(History)
    vars(made).update(_log=log, _length=length, _last=last)
    return made
