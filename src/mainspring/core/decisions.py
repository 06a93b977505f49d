"""Decisions: what decide returns, in the imperative. Nothing here does anything; translate turns each into its event.

No decision carries an address: the message's type decides where it goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Generic, TypeAlias, TypeVar, Union

from msgspec import Struct

from mainspring.core.messages import type_of
from mainspring.errors import InvalidDecisionError, shown

In_co = TypeVar("In_co", covariant=True)
Out_co = TypeVar("Out_co", covariant=True)
State_co = TypeVar("State_co", covariant=True)
In = TypeVar("In")
Out = TypeVar("Out")

KEY_CHARACTERS: Final = 1_000
REASON_CHARACTERS: Final = 10_000
LONGEST_DELAY: Final = timedelta(days=365 * 1_000)


class Send(Struct, Generic[Out_co], frozen=True, gc=False):
    """Send a message to its one destination: a handler, another workflow, or a broker.

    >>> Send("charge the card")
    Send(message='charge the card')
    """

    message: Out_co


class Publish(Struct, Generic[Out_co], frozen=True, gc=False):
    """Publish a message to whoever listens, none or many.

    >>> Publish("order abandoned")
    Publish(message='order abandoned')
    """

    message: Out_co


class Reply(Struct, Generic[Out_co], frozen=True, gc=False):
    """Reply to whoever sent the current input, else to whoever began the instance; or to the message with id `to`.

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


class Become(Struct, Generic[State_co], frozen=True, gc=False):
    """Record a whole state. The state-returning style is made of this; others let evolve do it.

    >>> Become("waiting")
    Become(state='waiting')
    """

    state: State_co


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
    Send[Out],
    Publish[Out],
    Reply[Out],
    Complete[Out],
    CancelSchedule,
    Become[Any],
    Fail,
]
Decisions: TypeAlias = Sequence[Decision[In, Out]]
