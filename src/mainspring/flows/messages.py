"""What a flow's stream holds beside the author's own messages."""

from __future__ import annotations

from datetime import timedelta

from msgspec import Struct

from mainspring.core.decisions import Schedule
from mainspring.core.messages import message


@message(name="mainspring.TimerDue")
class TimerDue(Struct, frozen=True):
    """A timer of a flow is due: `300s`, the second of that length `300s#2`.

    >>> TimerDue("300s")
    TimerDue(key='300s')
    """

    key: str

    @classmethod
    def after(cls, delay: float | timedelta, number: int = 1) -> Schedule[TimerDue]:
        """Return the decision to set a timer, the first of its length or a later one.

        For tests, as in `then(TimerDue.after(300))`.

        >>> TimerDue.after(300, 2).key
        '300s#2'
        """
        after = delay if isinstance(delay, timedelta) else timedelta(seconds=round(delay, 6))
        key = cls.key_of(after, number)
        return Schedule(cls(key), after=after, key=key)

    @staticmethod
    def key_of(delay: timedelta, number: int = 1) -> str:
        """Return the key of a timer.

        >>> TimerDue.key_of(timedelta(seconds=1.5))
        '1.5s'
        """
        length = f"{delay.total_seconds():.6f}".rstrip("0").rstrip(".") + "s"
        return length if number == 1 else f"{length}#{number}"


@message(name="mainspring.Entered")
class Entered(Struct, frozen=True):
    """A flow came to a stage.

    >>> Entered("released").stage
    'released'
    """

    stage: str
