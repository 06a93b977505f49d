"""What a workflow may listen for: the end of what it asked for, where that brings no message of its own."""

from __future__ import annotations

from dataclasses import dataclass

from mainspring.core.messages import message


@dataclass(frozen=True)
class SendFailed:
    """A sent message failed for good: its handler gave up. Declare it as an input to be told, else you are suspended.

    `definite` says that it certainly did not happen: its handler raised DoNotRetryError. Otherwise nobody knows.

    >>> SendFailed("ChargeCard", "OrderFulfilment/o-1/3", "CardRefused: no", 5).type
    'ChargeCard'
    """

    type: str
    message_id: str
    error: str
    attempts: int
    definite: bool = False


@message(name="mainspring.ChildCompleted")
@dataclass(frozen=True)
class ChildCompleted:
    """A child completed without a result. Declare it as an input to be told; one with a result brings that instead.

    >>> ChildCompleted("Shipping/o-1").child
    'Shipping/o-1'
    """

    child: str


@message(name="mainspring.ChildFailed")
@dataclass(frozen=True)
class ChildFailed:
    """A child ended badly, or could not begin. Declare it as an input to be told, else you are suspended.

    `status` is failed, cancelled, terminated, or refused: there is such an instance already, or it could not begin. In
    the failures of a fan-out, `part` is the place of its message, from 0; `child` is the type of a command's message.

    >>> ChildFailed("Shipping/o-1", "failed", "no van").status
    'failed'
    """

    child: str
    status: str
    reason: str
    part: int | None = None


@message(name="mainspring.Undone")
@dataclass(frozen=True)
class Undone:
    """What stands for the result of a compensation whose handler returned nothing.

    >>> Undone()
    Undone()
    """
