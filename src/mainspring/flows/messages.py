"""What a flow's stream holds beside the author's own messages."""

from __future__ import annotations

from msgspec import Struct

from mainspring.core.messages import message


@message(name="mainspring.TimerDue")
class TimerDue(Struct, frozen=True):
    """A timer of a flow is due: `300s`, the second of that length `300s#2`.

    >>> TimerDue("300s")
    TimerDue(key='300s')
    """

    key: str


@message(name="mainspring.Entered")
class Entered(Struct, frozen=True):
    """A flow came to a stage.

    >>> Entered("released").stage
    'released'
    """

    stage: str
