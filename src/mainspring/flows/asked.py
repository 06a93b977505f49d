"""What a flow's code asks for, and whether it is what the journal says."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any, Final, NamedTuple, TypeAlias, cast

from mainspring.core.decisions import Ask, CloseTask, Decision, FanOut, Publish, Reply, Schedule, Send, StartChild
from mainspring.core.events import Asked as TaskAsked
from mainspring.core.events import ChildStarted, FannedOut, Published, Replied, Scheduled, Sent
from mainspring.core.failures import DeadlinePassed
from mainspring.flows.ends import AnswerError
from mainspring.flows.journal import Entry

_ASKED: Final[frozenset[type[Any]]] = frozenset({TaskAsked, ChildStarted, FannedOut, Published, Replied})


At: TypeAlias = tuple[CodeType, int]
"""Code, and a line of its file."""


class Place(NamedTuple):
    """A line of code: its `file`, `line` and `function`.

    >>> str(Place("shop.py", 12, "fulfil"))
    'shop.py:12 in fulfil'
    """

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}"

    @classmethod
    def of(cls, code: CodeType, line: int) -> Place:
        """Return the place of a line in a function's code."""
        return cls(code.co_filename, line, code.co_qualname)


class Asked:
    """A decision that the code asked for: where, and who waits for its answer.

    `answer` turns the message that comes back into what the code gets, or raises.
    """

    __slots__ = ("_at", "answer", "decision", "future", "recorded", "types")

    def __init__(
        self,
        decision: Decision[Any, Any],
        at: At | None,
        future: Any,
        answer: Callable[[Any], Any] | None,
        *,
        recorded: bool = True,
        types: tuple[type[Any], ...] = (),
    ) -> None:
        self.decision = decision
        self._at = at
        self.future = future
        self.answer = answer
        self.recorded = recorded
        self.types = types

    @property
    def place(self) -> Place | None:
        """The line that asked for it, where that is known."""
        return None if self._at is None else Place.of(*self._at)

    @property
    def waits(self) -> bool:
        """Whether somebody waits for what comes back."""
        return self.future is not None and not self.future.done()

    @property
    def closes(self) -> CloseTask | None:
        """What takes it back, if it is a task that waits for its answer."""
        return CloseTask(self.decision.task_key) if self.waits and isinstance(self.decision, Ask) else None

    def give(self, message: Any) -> None:
        """Let what waits have its answer. A cancelled await needs none: what was sent goes on."""
        future, answer = self.future, self.answer
        if future is None or answer is None or future.done():
            return
        try:
            result = answer(message)
        except AnswerError as error:
            future.set_exception(error.given)
        else:
            future.set_result(result)

    def sets_timer(self, key: str) -> bool:
        """Return True if this sets the timer with a key."""
        return isinstance(self.decision, Schedule) and self.decision.key == key


def is_asked(entry: Entry) -> bool:
    """Return True for what some line of code has asked for, and not for what follows from other things.

    >>> from datetime import UTC, datetime
    >>> is_asked(Entry(Sent("charge"), datetime(2026, 1, 1, tzinfo=UTC), 3))
    True
    """
    event: Any = entry.event
    kind = cast("type[Any]", type(event))
    if kind is Sent:
        return event.undoes is None
    if kind is Scheduled:
        return type(event.message) is not DeadlinePassed
    return kind in _ASKED


def matches(asked: Asked, entry: Entry) -> bool:
    """Return True if what is recorded is what the code asks for."""
    decision: Any = asked.decision
    event: Any = entry.event
    if cast("type[Any]", type(decision)) is Send:  # by far the most of them
        return cast("type[Any]", type(event)) is Sent and bool(event.message == decision.message)
    event_type, compared = _COMPARED[type(decision)]
    return type(event) is event_type and bool(compared(decision, event))


_COMPARED: Final[dict[type[Any], tuple[type[Any], Callable[[Any, Any], bool]]]] = {
    Schedule: (Scheduled, lambda decision, event: event.key == decision.cancel_key),
    Ask: (TaskAsked, lambda decision, event: event.key == decision.task_key),
    StartChild: (ChildStarted, lambda decision, event: event.message == decision.message),
    FanOut: (
        FannedOut,
        lambda decision, event: event.key == decision.join_key and event.messages == tuple(decision.messages),
    ),
    Publish: (Published, lambda decision, event: event.message == decision.message),
    Reply: (Replied, lambda decision, event: event.message == decision.message),
}
