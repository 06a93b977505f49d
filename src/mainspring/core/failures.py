"""What a workflow may listen for when a command of its own could not be carried out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SendFailed:
    """A sent message failed for good: its handler gave up. Declare it as an input to be told, else you are suspended.

    >>> SendFailed("ChargeCard", "OrderFulfilment/o-1/3", "CardRefused: no", 5).type
    'ChargeCard'
    """

    type: str
    message_id: str
    error: str
    attempts: int
