"""An input on its way to its step, and the receipt that its sender holds."""

from __future__ import annotations

import asyncio
from typing import Any, Final, Literal, Protocol, TypeAlias

from msgspec import Struct, json

from mainspring.core.messages import Envelope, Kind
from mainspring.engine.recording.stored_values import EPOCH, encode_context, instance_id, moment
from mainspring.errors import (
    StoreBusyError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnreachableError,
    UnknownOutcomeError,
)
from mainspring.port.preconditions import Precondition
from mainspring.port.records import Context, DeadLetter, InputRow, OutputKey, Ref, Remembered
from mainspring.port.tasks import TaskAnswer
from mainspring.telemetry.observed import Observed

ReceiptStatus: TypeAlias = Literal[
    "pending", "stepped", "refused", "kept", "accepted", "suspended", "duplicate", "dead letter"
]

# What is no message's fault: it passes, and a patient sender may wait for that.
PASSING: Final = (StoreBusyError, StoreFullError, StoreReadOnlyError)
# It may last.
AWAY: Final = (StoreUnreachableError, UnknownOutcomeError)
TROUBLE: Final = (*PASSING, *AWAY)

NEVER_US: Final = 1 << 62
"""A time that does not come."""


class Answer(Struct, eq=False):
    """What became of an input, for its sender. Resolved once, after the commit that decided it.

    `patient` says that the sender waits however long the store is in trouble: the input is retried in its turn, so that
    nothing of the same instance that came behind it is taken before it.
    """

    status: ReceiptStatus = "pending"
    error: Exception | None = None
    patient: bool = False
    observed: Observed | None = None
    _future: asyncio.Future[None] | None = None

    def resolve(self, status: ReceiptStatus) -> None:
        self.status = status
        self._wake()

    def fail(self, error: Exception) -> None:
        self.error = error
        self._wake()

    async def wait(self) -> ReceiptStatus:
        if self.status == "pending" and self.error is None:
            self._future = asyncio.get_running_loop().create_future()
            await self._future
        if self.error is not None:
            raise self.error
        return self.status

    def _wake(self) -> None:
        if self._future is not None and not self._future.done():
            self._future.set_result(None)


class InstanceMessage(Struct):
    """A message for an instance, as it travels and is stored. `mark` stands before its id where that is derived."""

    ref: Ref
    message: Any
    type: str
    type_version: int
    body: bytes
    id: str
    kind: Kind
    context: Context
    time_us: int
    mark: str = ""
    actor: str | None = None


class FailedForGood(Struct, frozen=True):
    """That a command failed for good: its dead letter, and why its instance is suspended, unless it listens for that.

    `definite` says that it certainly did not happen.
    """

    reason: str
    letter: DeadLetter
    definite: bool = False


class Answering(InstanceMessage):
    """What a message answers: the output of its instance at the version `cause`, which its step settles.

    `undoes` is the version that a compensation undoes which it answers. `command` is the data of the command that it
    answers, where that is known.
    """

    cause: int | None = None
    settles: OutputKey | None = None
    attempt: int | None = None
    duration_us: int | None = None
    command: bytes | None = None
    undoes: int | None = None
    failure: FailedForGood | None = None
    remembers: tuple[Remembered, ...] = ()


class Pending(Answering):
    """An input on its way to its step, with all that this will have to commit beside it.

    `position` is its place in the inbox if it comes from there. `unreadable` says why its body could not be decoded.
    `accepts` are inputs of others that its step accepts, `answer` is what its sender waits for, if one does here.
    `task_answer` is what the store checks of an answer to a task before it takes it, `requires` what its sender asks of
    the instance when it is taken in: it goes no further than the inbox. `skipped` says that one of its id was passed
    over before the instance could begin, and whether it was the same. `refusal` is why its workflow refuses an
    answer, `asked_at` which task such an answer from the inbox leaves open, if any, and at which position of the
    instance that was read.
    """

    position: int | None = None
    timer_key: str | None = None
    answer: Answer | None = None
    requires: Precondition | None = None
    task_answer: TaskAnswer | None = None
    accepts: tuple[InputRow, ...] = ()
    discards: tuple[int, ...] = ()
    unreadable: Exception | None = None
    skipped: bool | None = None
    refusal: str | None = None
    asked_at: tuple[int, int | None] = (0, None)
    conflicts: int = 0
    observed: Observed | None = None

    def awaits_end_of(self, error: Exception) -> bool:
        """Return True if it is retried when a trouble of the store is over, without an error to its sender."""
        return self.answer is None or (self.answer.patient and isinstance(error, TROUBLE))

    @property
    def letters(self) -> tuple[DeadLetter, ...]:
        """The dead letter of the command whose failure it is."""
        return () if self.failure is None else (self.failure.letter,)

    def envelope(self, *, whole: bool = True) -> Envelope[Any]:
        """Return the message in its envelope. Where it is not asked for, what is costly to make may be left out."""
        context = self.context
        if not whole:
            return Envelope(self.message, self.id, EPOCH, context.correlation_id, self.kind, task=context.task)
        return Envelope(
            self.message,
            self.id,
            moment(self.time_us),
            context.correlation_id,
            self.kind,
            context.causation_id,
            instance_id(context.sender) if context.sender else None,
            context.reply_to,
            self.actor,
            context.trace,
            context.task,
            None if self.command is None else json.decode(self.command),
        )

    def input_row(self, *, claimed: bool = False) -> InputRow:
        """Return the row that keeps it in the inbox."""
        return InputRow(
            workflow=self.ref.workflow,
            instance=self.ref.id,
            message_id=self.mark + self.id,
            kind=self.kind.value,
            type=self.type,
            type_version=self.type_version,
            body=self.body,
            time_us=self.time_us,
            context=encode_context(self.context),
            actor=self.actor,
            cause=self.cause,
            timer_key=self.timer_key,
            claimed=claimed,
        )

    def as_dead_letter(self, reason: str, error: str | None = None) -> DeadLetter:
        """Return it as a dead letter, whole."""
        return DeadLetter(
            workflow=self.ref.workflow,
            instance=self.ref.id,
            message_id=self.mark + self.id,
            kind=self.kind.value,
            type=self.type,
            type_version=self.type_version,
            body=self.body,
            time_us=self.time_us,
            context=encode_context(self.context),
            reason=reason,
            error=error,
            actor=self.actor,
        )


class Inputs(Protocol):
    """Who takes inputs: results of what was carried out are inputs again."""

    def submit(self, pending: Pending) -> None:
        """Take an input when its turn comes."""
        ...

    def accepted(self, row: InputRow, position: int) -> None:
        """Take an input that was accepted into the inbox and claimed by this worker."""
        ...
