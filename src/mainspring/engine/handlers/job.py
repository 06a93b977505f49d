"""A command claimed by a worker, and where its end is recorded."""

from __future__ import annotations

from typing import Any, Final, Protocol

from msgspec import Struct

from mainspring.core.messages import Envelope, Kind, type_of
from mainspring.engine.handlers.handler import Context, Handler
from mainspring.engine.inputs.pending import NEVER_US
from mainspring.engine.recording.saga_rows import Doomed, is_armed, undone_by
from mainspring.engine.recording.stored_values import instance_id, moment, read_context
from mainspring.engine.watching.code_watch import Code, CodeWatch
from mainspring.errors.kinds import kind_in
from mainspring.logs import discretion
from mainspring.port.ids import given_key
from mainspring.port.loans import Loan
from mainspring.port.records import OutputClaim, Ref
from mainspring.telemetry.observed import Observed

MICROSECONDS: Final = 1_000_000


class Job(Struct):
    """A command claimed by a worker."""

    claim: OutputClaim
    message: Any
    context: Context | None = None
    started_us: int = 0
    deadline_us: int = NEVER_US
    flips: int = 0
    observed: Observed | None = None
    shared: bool = False
    """Whether the call that failed was for others too."""

    def own(self, text: str) -> str:
        """Return what an instance may keep of an error: where bodies are hidden, nothing that others are to forget."""
        return kind_in(text) if self.shared and discretion.asked else text

    @property
    def ref(self) -> Ref:
        """The instance that sent it."""
        return Ref(self.claim.workflow, self.claim.instance)

    @property
    def id(self) -> str:
        """The command's id: the idempotency key of every attempt."""
        return f"{self.claim.workflow}/{self.claim.instance}/{self.claim.output.version}"

    def is_doomed(self, ref: Ref, which: Doomed, up_to: int) -> bool:
        """Return True if it goes no further when an instance is cancelled, up to one of its versions."""
        if self.ref != ref or self.claim.output.version > up_to:
            return False
        if which == "all":
            return True
        return is_armed(self.claim) if which == "armed" else undone_by(self.claim) is None


class JobEnds(Protocol):
    """Who records how commands end: `outputs.settlements`, whose results are inputs again."""

    def succeeded(self, handler: Handler, job: Job, result: Any, duration_us: int) -> None:
        """Take a handler's result back to the instance that asked."""
        ...

    async def succeeded_in(self, loan: Loan, handler: Handler, job: Job, result: Any, duration_us: int) -> None:
        """Commit what a handler wrote together with its result."""
        ...

    def failed(self, handler: Handler, job: Job, error: Exception) -> None:
        """Let an attempt be made again later, or give up."""
        ...

    def dropped(self, handler: Handler, job: Job) -> None:
        """Settle a command whose instance was cancelled."""
        ...

    def retry(self, claim: OutputClaim, attempts: int, delay_us: int, error: str) -> None:
        """Let an output be carried out again after a while, by any worker."""
        ...

    async def remembered(self, handler: Handler, job: Job) -> tuple[bool, Any]:
        """Return the result kept under the command's business key, if there is one."""
        ...

    async def lend(self, handler: Handler) -> Loan:
        """Open the transaction in which a handler's result will be recorded."""
        ...


def business_keys(handler: Handler, job: Job, watch: CodeWatch) -> tuple[str, ...]:
    """Return what a command's result is remembered under, and then what it may have been, if its handler has a key.

    Two commands about one order have the same key when it is the order's id: so the command's name is part of it. It
    was not, up to 0.1, and a command may have had another name.
    """
    key = handler.options.idempotency_key
    if key is None:
        return ()
    declared = type_of(handler.message_type)
    own = watch.call(Code(f"the idempotency key of {handler.name}"), key, job.message)
    return (*(f"key:{name}:{own}" for name in (declared.name, *declared.aliases)), given_key(own))


def may_be_of(handler: Handler, remembered: Any) -> bool:
    """Return True if what an older release remembers under a key, of whichever handler, can be a handler's result."""
    return not handler.result_types or isinstance(remembered, tuple(handler.result_types))


def as_exception(handler: Handler, error: BaseException) -> Exception:
    """Return what a handler raised as an error that ends neither a task nor a process."""
    if isinstance(error, Exception):
        return error
    wrapped = RuntimeError(f"{handler.name} raised {type(error).__name__}")
    wrapped.__cause__ = error
    return wrapped


def envelope_of(job: Job) -> Envelope[Any]:
    """Return a command in its envelope."""
    context = read_context(job.claim.context)
    return Envelope(
        job.message,
        job.id,
        moment(job.claim.due_us),
        context.correlation_id,
        Kind.COMMAND,
        context.causation_id,
        instance_id(context.sender) if context.sender else None,
        context.reply_to,
        None,
        context.trace if job.observed is None else job.observed.trace,
    )
