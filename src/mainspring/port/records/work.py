"""Work that an instance has or leaves: inputs, outputs, dead letters, results."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from mainspring.port.refs import OutputKey

OutputKind: TypeAlias = Literal["send", "publish", "reply", "timer", "child", "end"]
# The key of sends that have a compensation. No author can write it, so that no CancelSchedule means it.
ARMED = ""
# Where dead letters stand that no instance was found for: instead of an instance they have the edge they came through.
EDGE = "mainspring.Edge"


class InputRow(Struct, frozen=True, gc=False):
    """An accepted input that is not stepped yet. `position` is its place in the inbox, 0 before it has one.

    A timer that fired and waits here keeps its `timer_key`, so that it can still be cancelled. `claimed` says that the
    committing worker steps it at once.
    """

    workflow: str
    instance: str
    message_id: str
    kind: str
    type: str
    type_version: int
    body: bytes
    time_us: int
    context: bytes
    actor: str | None = None
    cause: int | None = None
    timer_key: str | None = None
    claimed: bool = False
    position: int = 0


class OutputRow(Struct, frozen=True, gc=False):
    """An output to be carried out; its body stands in the event of the same version.

    It is due `after_us` from the commit by the store's clock, or at `at_us`. `claimed` says that the committing worker
    takes it at once. `key` names a timer for cancelling; of a send that has a compensation it is ARMED.
    """

    version: int
    kind: OutputKind
    destination: str
    after_us: int = 0
    at_us: int | None = None
    key: str | None = None
    priority: int = 0
    claimed: bool = False


class Retry(Struct, frozen=True, gc=False):
    """A failed attempt at an output, which becomes due again after a while, for any worker.

    `attempts` counts those made. Waiting for a breaker or a limit is a Retry too, with `attempts` unchanged. It is due
    `after_us` from `ended_us`, the end of the attempt, or from the commit where that is not given.

    >>> Retry(OutputKey(7, 3), attempts=2, after_us=1_000_000, error="refused", ended_us=5_000_000).due_us(5_000_700)
    6000000
    """

    output: OutputKey
    attempts: int
    after_us: int
    error: str | None
    ended_us: int | None = None

    def due_us(self, now_us: int) -> int:
        """Return when it is due, where the commit's time is `now_us`."""
        return (now_us if self.ended_us is None else self.ended_us) + self.after_us


class DeadLetter(Struct, frozen=True, gc=False):
    """A message that could not be carried out, whole, with its reason.

    `output` is set where it came from an outbox (retrying it keeps its id), `id` once the store has it.

    >>> DeadLetter("W", "i", "m-1", "command", "Go", 1, b"{}", 0, b"{}", reason="no instance").id
    0
    """

    workflow: str
    instance: str
    message_id: str
    kind: str
    type: str
    type_version: int
    body: bytes
    time_us: int
    context: bytes
    reason: str
    error: str | None = None
    attempts: int = 0
    actor: str | None = None
    output: OutputKey | None = None
    id: int = 0


class Remembered(Struct, frozen=True, gc=False):
    """A result kept under a business key until it expires."""

    key: str
    type: str | None
    type_version: int
    body: bytes
    expires_us: int
