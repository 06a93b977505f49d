"""What a workflow may listen for: the end of what it asked for, where no message reports it, and of its own time."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any, Final

from msgspec import Struct, field

from mainspring.core.messages import message


@dataclass(frozen=True)
class SendFailed:
    """A sent message failed for good: its handler gave up. Declare it as an input to get it, else you are suspended.

    `definite` says that it certainly did not happen: its handler raised DoNotRetryError. Otherwise the outcome is
    unknown. `command` is the data of what was sent, as it is stored: JSON. It is None where an older release recorded
    the failure, and where the command is too large to stand in another message.

    >>> match SendFailed("ChargeCard", "OrderFulfilment/o-1/3", "CardRefused: no", 5, command={"part": 2}):
    ...     case SendFailed("ChargeCard", command={"part": part}):
    ...         print(part)
    2
    """

    type: str
    message_id: str
    error: str
    attempts: int
    definite: bool = False
    command: Any = dataclass_field(default=None, hash=False)


@message(name="mainspring.ChildCompleted")
@dataclass(frozen=True)
class ChildCompleted:
    """A child completed without a result. Declare it as an input to get it; with a result, that is the input.

    >>> ChildCompleted("Shipping/o-1").child
    'Shipping/o-1'
    """

    child: str


@message(name="mainspring.ChildFailed")
class ChildFailed(Struct, frozen=True):
    """A child ended badly, or could not begin. Declare it as an input to get it, else you are suspended.

    `status` is failed, cancelled, terminated, or refused: there is such an instance already, or it could not begin. In
    the failures of a fan-out, `part` is the place of its message, from 0; `child` is the type of a command's message.

    >>> ChildFailed("Shipping/o-1", "failed", "no van").error
    'no van'
    """

    child: str
    status: str
    # Stored under the name that it had first, by which streams and workers of older releases know it.
    error: str = field(name="reason")
    part: int | None = None


@message(name="mainspring.DeadlinePassed")
@dataclass(frozen=True)
class DeadlinePassed:
    """The instance has not ended within its workflow's `deadline`. A decide without a case for it means: undo and fail.

    It is a timer like any other: `CancelSchedule(DeadlinePassed)` takes it back, `Schedule(DeadlinePassed(), …)` sets
    another.

    >>> DeadlinePassed()
    DeadlinePassed()
    """


OF_THE_ENGINE: Final = frozenset({SendFailed, ChildCompleted, ChildFailed, DeadlinePassed})
"""What only the engine knows, and reports to an instance that has begun."""


@message(name="mainspring.Undone")
@dataclass(frozen=True)
class Undone:
    """What stands for the result of a compensation whose handler returned nothing."""
