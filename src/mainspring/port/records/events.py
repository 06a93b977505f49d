"""Events of streams, and what is needed to fold them."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from mainspring.port.records.instances import InstanceRow


class Context(Struct, frozen=True, gc=False, omit_defaults=True):
    """What an envelope says beside message, id, kind, time and actor; stored as one JSON object.

    `parent` is the id of the output that begins an instance as a child. `outside` says that the message came
    from outside the app: it may be no answer to an open task.

    >>> Context(correlation_id="c-1").reply_to is None
    True
    """

    correlation_id: str
    causation_id: str | None = None
    sender: str | None = None
    reply_to: str | None = None
    trace: str | None = None
    task: str | None = None
    parent: str | None = None
    outside: bool = False


class EventRow(Struct, frozen=True, gc=False):
    """One event of a stream.

    `event` is the event's class name. `detail` is JSON of what it says beside its message (after, at, key, to, reason).
    Inputs carry `message_id` (None where it follows from `cause`), `kind`, `context`, `actor`, and the name of the
    state after their step. `cause` is the version of the output that a result or timer answers; of an output, the
    version of the input for which it was decided; of a suspension, the version of the output that failed, if one did.

    >>> EventRow(1, "Began", 0).type is None
    True
    """

    version: int
    event: str
    time_us: int
    type: str | None = None
    type_version: int = 1
    body: bytes | None = None
    detail: bytes | None = None
    kind: str | None = None
    message_id: str | None = None
    cause: int | None = None
    context: bytes | None = None
    actor: str | None = None
    state: str | None = None
    attempt: int | None = None
    duration_us: int | None = None


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


class Snapshot(Struct, frozen=True, gc=False):
    """A state at a version, with a fingerprint of the code that made it. An optimisation only.

    One with an empty fingerprint is more: the events up to its version were trimmed, and it is all that is left.
    """

    version: int
    fingerprint: str
    type: str
    type_version: int
    body: bytes

    @property
    def is_all(self) -> bool:
        """Whether it is all that is left."""
        return not self.fingerprint


class Loaded(Struct, frozen=True, gc=False):
    """All that is needed to fold an instance: its row, a snapshot perhaps, and the events behind it."""

    row: InstanceRow
    snapshot: Snapshot | None
    events: list[EventRow]
