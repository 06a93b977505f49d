"""Workflows whose history is not kept: what is left of a message, and what cannot be decided without the past."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, cast

from msgspec import Struct

from mainspring.core.events import ChildStarted, Compensating, FannedOut, Sent
from mainspring.errors import InvalidDecisionError

_DECIDED: Final = {ChildStarted: "StartChild", FannedOut: "FanOut", Compensating: "Compensate"}


class NotKept(Struct, frozen=True, gc=False):
    """Stands in a stream for a message of which only the identity is kept, or that was erased: `erased:PlaceOrder`.

    >>> NotKept("PlaceOrder")
    NotKept(type='PlaceOrder')
    """

    type: str


def check_unkept(workflow: str, events: Iterable[Any]) -> None:
    """Refuse what needs a history: who is to be notified or compensated later is recorded nowhere else.

    >>> check_unkept("Orders", [Sent("charge")])
    >>> check_unkept("Orders", [Sent("charge", compensate="refund")])
    Traceback (most recent call last):
    mainspring.errors.authoring.InvalidDecisionError: Orders decided Send(…, compensate=…), and its history is not \
kept. Leave `history = "state"` out, or decide without it.
    """
    for event in events:
        kind = cast("type[Any]", type(event))
        decided = _DECIDED.get(kind)
        if kind is Sent and event.compensate is not None:
            decided = "Send(…, compensate=…)"
        if decided is not None:
            raise InvalidDecisionError(
                f"{workflow} decided {decided}, and its history is not kept",
                'Leave `history = "state"` out, or decide without it.',
            )
