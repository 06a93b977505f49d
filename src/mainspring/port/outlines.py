"""Events without their bodies: all that counting and timing need, and cheap enough to read of every event there is."""

from __future__ import annotations

from typing import TypeAlias

Outline: TypeAlias = tuple[
    int,  # the key of its instance
    int,  # its version
    str,  # the event's class name
    int,  # when, in microseconds
    str | None,  # the type of its message
    str | None,  # the message's kind, of an input
    int | None,  # which version it answers, or was decided for
    str | None,  # the name of the state after it, of an input
    int | None,  # at which attempt a handler gave it
    int | None,  # how long that took, in microseconds
    str | None,  # who did it
    int,  # the bytes of its message, its detail and its context, as they are stored
]
"""One event. A plain tuple, as databases return it: a record for each would cost more than reading it."""

OutlineSpot: TypeAlias = tuple[int, int]
"""An instance's key, and the version behind which its events are wanted."""
