"""Decisions: what decide returns, in the imperative. Nothing here does anything; translate turns each into its event.

No decision carries an address: the message's type decides where it goes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from math import isfinite
from types import UnionType
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar, Union, cast, get_args

from msgspec import Struct
from msgspec.structs import force_setattr

from mainspring.core.freezing import required_fields
from mainspring.core.messages import type_of
from mainspring.errors import InvalidDecisionError, shown

In_co = TypeVar("In_co", covariant=True)
Out_co = TypeVar("Out_co", covariant=True)
State_co = TypeVar("State_co", covariant=True)
In = TypeVar("In")
Out = TypeVar("Out")

KEY_CHARACTERS: Final = 1_000
REASON_CHARACTERS: Final = 10_000
TITLE_CHARACTERS: Final = 1_000
DATA_VALUES: Final = 100
LONGEST_DELAY: Final = timedelta(days=365 * 1_000)
FAN_OUT_MOST: Final = 50_000
"""Parts of one fan-out. Their messages together must also fit into the largest body."""

WhenParentEnds: TypeAlias = Literal["cancel", "abandon"]

Value: TypeAlias = str | int | float | bool | None


class Send(Struct, Generic[Out_co], frozen=True, gc=False, repr_omit_defaults=True):
    """Send a message to its one destination: a handler, another workflow, or a broker.

    `compensate` is the message that undoes it. It is recorded with this one, and is sent when the instance is
    compensated, unless this one is known to have failed.

    >>> Send("charge the card")
    Send(message='charge the card')
    >>> Send("charge the card", compensate="refund the card").compensate
    'refund the card'
    """

    message: Out_co
    compensate: Out_co | None = None


class Publish(Struct, Generic[Out_co], frozen=True, gc=False):
    """Publish a message to all that want it, none or many.

    >>> Publish("order abandoned")
    Publish(message='order abandoned')
    """

    message: Out_co


class Reply(Struct, Generic[Out_co], frozen=True, gc=False):
    """Reply to the sender of this input, else to the one that began the instance; or to the message with id `to`.

    >>> Reply("in stock")
    Reply(message='in stock', to=None)
    """

    message: Out_co
    to: str | None = None

    def __post_init__(self) -> None:
        if self.to is not None:
            _check_text("Reply", "to", self.to, KEY_CHARACTERS)


class Schedule(Struct, Generic[In_co], frozen=True, gc=False):
    """Send a message to this very instance later: `after` a while, or `at` a moment with a time zone.

    `key` names it for CancelSchedule; by default it is the name of the message's type. Two schedules may share a key:
    both fire, and one CancelSchedule cancels both.

    >>> Schedule("timed out", after=timedelta(minutes=5), key="payment").key
    'payment'
    """

    message: In_co
    after: timedelta | None = None
    at: datetime | None = None
    key: str | None = None

    def __post_init__(self) -> None:
        if (self.after is None) == (self.at is None):
            raise InvalidDecisionError(
                f"Schedule of {shown(self.message, 200)} needs exactly one of `after` and `at`",
                "Write after=timedelta(…) or at=datetime(…, tzinfo=…).",
            )
        if self.after is not None:
            if not isinstance(self.after, timedelta):
                raise InvalidDecisionError(f"Schedule got after={shown(self.after, 200)}", "Use a timedelta.")
            if not timedelta(0) <= self.after <= LONGEST_DELAY:
                raise InvalidDecisionError(
                    f"Schedule got the delay {self.after}", "Use zero or more, and at most a thousand years."
                )
        elif not isinstance(self.at, datetime) or self.at.utcoffset() is None:
            raise InvalidDecisionError(
                f"Schedule got at={shown(self.at, 200)}, which is no moment in time",
                "Use a datetime with a time zone, such as datetime(2026, 1, 1, tzinfo=UTC).",
            )
        if self.key is not None:
            _check_text("Schedule", "key", self.key, KEY_CHARACTERS)

    @property
    def cancel_key(self) -> str:
        """The key under which CancelSchedule finds it."""
        return self.key if self.key is not None else type_of(type(self.message)).name


class CancelSchedule(Struct, frozen=True, gc=False):
    """Cancel what was scheduled under a key, or under the name of a message type. Cancelling nothing is no error.

    It concerns what was scheduled before it, in this very step too: what stands behind it in the list stays.

    >>> CancelSchedule("payment").cancel_key
    'payment'
    """

    key: str | type[Any]

    def __post_init__(self) -> None:
        if not isinstance(self.key, type):
            _check_text("CancelSchedule", "key", self.key, KEY_CHARACTERS)

    @property
    def cancel_key(self) -> str:
        """The key as a string."""
        return type_of(self.key).name if isinstance(self.key, type) else self.key


class Ask(Struct, Generic[In_co], frozen=True, gc=False):
    """Ask a person, or anyone with a role: open a task that stays until it is answered, closed, or the instance ends.

    `answer` are the input types that answer it, one or a union; the fields of the chosen one are the form. `data` are
    values to show beside the form, and to fill in where the form has a field of that name. `excludes` are people who
    may not answer, whatever their roles: the maker of what is to be checked. `reject` says which of the answers is the
    no. `remind` and `escalate` are timers that live as long as the task does.

    `key` names the task for CloseTask; by default it is the name of the first answer type. Asking again under the key
    of an open task puts the new task in its place.

    >>> ask = Ask("Approve e-1", answer=int | str, role="manager", excludes=("ann",), due=timedelta(days=7))
    >>> ask.task_key, ask.answers
    ('int', (<class 'int'>, <class 'str'>))
    """

    title: str
    answer: type[In_co] | UnionType | tuple[type[In_co], ...]
    role: str | None = None
    person: str | None = None
    excludes: tuple[str, ...] = ()
    key: str | None = None
    reject: type[In_co] | None = None
    due: timedelta | datetime | None = None
    remind: Schedule[In_co] | None = None
    escalate: Schedule[In_co] | None = None
    data: Mapping[str, Value] = {}

    def __post_init__(self) -> None:
        _check_text("Ask", "title", self.title, TITLE_CHARACTERS)
        for field, text in (("role", self.role), ("person", self.person), ("key", self.key)):
            if text is not None:
                _check_text("Ask", field, text, KEY_CHARACTERS)
        self._check_people()
        self._check_answers()
        _check_due(self.due)
        _check_data(self.data)
        for field, timer in (("remind", self.remind), ("escalate", self.escalate)):
            if timer is not None and (not isinstance(timer, Schedule) or timer.key is not None):
                raise InvalidDecisionError(
                    f"Ask got {field}={shown(timer, 200)}",
                    "Use a Schedule without a key: it is cancelled together with the task.",
                )

    def _check_people(self) -> None:
        if self.role is None and self.person is None:
            raise InvalidDecisionError(
                f"Ask({shown(self.title, 100)}) names no one to ask", 'Write role="manager" or person="ann".'
            )
        if not isinstance(self.excludes, tuple):
            raise InvalidDecisionError(
                f"Ask got excludes={shown(self.excludes, 200)}", 'Use a tuple of people: excludes=("ann",).'
            )
        for person in self.excludes:
            _check_text("Ask", "excludes", person, KEY_CHARACTERS)
        if self.role is None and self.person in self.excludes:
            raise InvalidDecisionError(
                f"Ask({shown(self.title, 100)}) asks {self.person} and excludes the same", "Ask another person."
            )

    def _check_answers(self) -> None:
        answers = self.answers
        if not answers or not all(isinstance(answer, type) for answer in answers):
            raise InvalidDecisionError(
                f"Ask got answer={shown(self.answer, 200)}", "Use an input type, or several: Approve | Reject."
            )
        if self.reject is not None and self.reject not in answers:
            raise InvalidDecisionError(
                f"Ask got reject={shown(self.reject, 200)}, which is none of its answers", "Add it to `answer`."
            )

    @property
    def answers(self) -> tuple[type[Any], ...]:
        """The input types that answer it, in the order in which they were written."""
        given: Any = self.answer
        return cast("tuple[type[Any], ...]", given) if isinstance(given, tuple) else get_args(given) or (given,)

    @property
    def task_key(self) -> str:
        """The key under which CloseTask finds it."""
        return self.key if self.key is not None else type_of(self.answers[0]).name

    @property
    def timers(self) -> list[Schedule[In_co]]:
        """What is scheduled with it and cancelled with it."""
        key = task_timer_key(self.task_key)
        return [
            Schedule(timer.message, timer.after, timer.at, key)
            for timer in (self.remind, self.escalate)
            if timer is not None
        ]


class CloseTask(Struct, frozen=True, gc=False):
    """Close the task that was asked under a key, or under the name of an answer type, with its timers.

    It can no longer be answered. Closing a task that is not open is no error. A task that is answered, and every task
    of an instance that ends, closes by itself.

    >>> CloseTask("approval").task_key
    'approval'
    """

    key: str | type[Any]

    def __post_init__(self) -> None:
        if not isinstance(self.key, type):
            _check_text("CloseTask", "key", self.key, KEY_CHARACTERS)

    @property
    def task_key(self) -> str:
        """The key as a string."""
        return type_of(self.key).name if isinstance(self.key, type) else self.key


class RefuseAnswer(Struct, frozen=True, gc=False):
    """Refuse the answer to a task: the task stays open, and the person who answered gets the reason.

    Must be the only decision of its step, and the input an answer to a task (`Envelope.task`). It is recorded, and the
    state stays as it is.

    >>> RefuseAnswer("the amount is missing")
    RefuseAnswer(reason='the amount is missing')
    """

    reason: str

    def __post_init__(self) -> None:
        _check_text("RefuseAnswer", "reason", self.reason, REASON_CHARACTERS)


class StartChild(Struct, Generic[Out_co], frozen=True, gc=False):
    """Begin an instance of another workflow, and get its result or its failure as an input.

    The child is cancelled when this instance ends before it, unless it is abandoned then.

    >>> StartChild("ship the order")
    StartChild(message='ship the order', when_parent_ends='cancel')
    """

    message: Out_co
    when_parent_ends: WhenParentEnds = "cancel"

    def __post_init__(self) -> None:
        if self.when_parent_ends not in ("cancel", "abandon"):
            raise InvalidDecisionError(
                f"StartChild got when_parent_ends={shown(self.when_parent_ends, 100)}", 'Use "cancel" or "abandon".'
            )


class FanOut(Struct, Generic[In_co, Out_co], frozen=True, gc=False):
    """Start a child, or carry out a command, for each of many messages, and get one input when all have ended.

    That input is of the type `into`, with the fields `results` (of those parts that had one, in the order of the
    messages) and `failures` (a ChildFailed each), and `key` if it wants to know. Its state does not grow with each
    part: the engine holds the join.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class PartsDone:
    ...     results: tuple[int, ...]
    ...     failures: tuple[str, ...]
    >>> FanOut(["square 1", "square 2"], into=PartsDone).join_key
    'PartsDone'
    """

    messages: Sequence[Out_co]
    into: type[In_co]
    key: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.messages, (list, tuple)):
            raise InvalidDecisionError(f"FanOut got messages={shown(self.messages, 100)}", "Use a list or a tuple.")
        if len(self.messages) > FAN_OUT_MOST:
            raise InvalidDecisionError(
                f"FanOut got {len(self.messages):,} messages",
                f"Use at most {FAN_OUT_MOST:,}; let each part fan out again if there is more to do.",
            )
        missing = required_fields(self.into, ("results", "failures"), ("key",))
        if missing is not None:
            raise InvalidDecisionError(
                f"FanOut cannot make its input {shown(self.into, 100)}: {missing}",
                "Give it the fields `results: tuple[…, ...]` and `failures: tuple[ChildFailed, ...]`.",
            )
        if self.key is not None:
            _check_text("FanOut", "key", self.key, KEY_CHARACTERS)
        force_setattr(self, "messages", tuple(self.messages))

    @property
    def join_key(self) -> str:
        """The key under which its input says which fan-out it joins."""
        return self.key if self.key is not None else type_of(self.into).name


class Complete(Struct, Generic[Out_co], frozen=True, gc=False):
    """End the instance well, with a result if there is one. Must be the last decision of its step.

    >>> Complete()
    Complete(result=None)
    """

    result: Out_co | None = None


class Fail(Struct, frozen=True, gc=False):
    """End the instance badly. Must be the last decision of its step.

    >>> Fail("out of stock")
    Fail(reason='out of stock')
    """

    reason: str

    def __post_init__(self) -> None:
        _check_text("Fail", "reason", self.reason, REASON_CHARACTERS)


class Compensate(Struct, Generic[In_co], frozen=True, gc=False, repr_omit_defaults=True):
    """Undo what was done: send the compensations of all steps so far, the latest first, one after the other.

    Then the instance fails with `reason`; or it takes `then`, a message to itself, and continues. Must be the last
    decision of its step.

    >>> Compensate("no car")
    Compensate(reason='no car')
    """

    reason: str
    then: In_co | None = None

    def __post_init__(self) -> None:
        _check_text("Compensate", "reason", self.reason, REASON_CHARACTERS)


class Become(Struct, Generic[State_co], frozen=True, gc=False):
    """Record a whole state. The state-returning style is made of this; others let evolve do it.

    >>> Become("waiting")
    Become(state='waiting')
    """

    state: State_co


def task_timer_key(key: str) -> str:
    """Return the key of the timers that belong to a task.

    >>> task_timer_key("approval")
    'task:approval'
    """
    return f"task:{key}"


def _check_due(due: object) -> None:
    if due is None or (isinstance(due, timedelta) and timedelta(0) <= due <= LONGEST_DELAY):
        return
    if not isinstance(due, datetime) or due.utcoffset() is None:
        raise InvalidDecisionError(
            f"Ask got due={shown(due, 200)}", "Use a timedelta from now on, or a datetime with a time zone."
        )


def _check_data(data: object) -> None:
    given: Any = data
    values: dict[Any, Any] = dict(given) if isinstance(data, Mapping) else {None: None}
    if len(values) > DATA_VALUES or not all(isinstance(key, str) and _is_plain(v) for key, v in values.items()):
        raise InvalidDecisionError(
            f"Ask got data={shown(given, 200)}",
            f"Use a mapping of at most {DATA_VALUES} names to texts, numbers, booleans or None.",
        )


def _is_plain(value: object) -> bool:
    if isinstance(value, float):
        return isfinite(value)
    return value is None or (isinstance(value, (bool, int, str)) and len(str(value)) <= REASON_CHARACTERS)


def _check_text(decision: str, field: str, text: object, most_characters: int) -> None:
    """Refuse what could not be stored, or not be shown, where the author wrote it."""
    if not isinstance(text, str) or not 0 < len(text) <= most_characters:
        raise InvalidDecisionError(
            f"{decision} got {field}={shown(text, 100)}", f"Use a string of 1 to {most_characters:,} characters."
        )
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise InvalidDecisionError(
            f"{decision} got {field}={shown(text, 100)}, which is no proper text", "Leave out NUL and lone surrogates."
        )


Decision: TypeAlias = Union[  # noqa: UP007  a subscriptable alias: Decision[Input, Output]
    Schedule[In],
    Ask[In],
    CloseTask,
    RefuseAnswer,
    Compensate[In],
    Send[Out],
    Publish[Out],
    Reply[Out],
    StartChild[Out],
    FanOut[In, Out],
    Complete[Out],
    CancelSchedule,
    Become[Any],
    Fail,
]
Decisions: TypeAlias = Sequence[Decision[In, Out]]
