"""A command claimed by a worker, and what comes of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from msgspec import Struct, json

from mainspring.codec import Codec, Encoded
from mainspring.core.failures import SendFailed
from mainspring.core.messages import Envelope, Kind, type_of
from mainspring.engine.handlers.handler import Context, Handler
from mainspring.engine.inputs.pending import NEVER_US, Pending, instance_id, moment, read_context
from mainspring.engine.recording.event_details import read_detail
from mainspring.engine.recording.event_rows import answer_id
from mainspring.engine.recording.sagas import undone_by
from mainspring.engine.registry import is_internal
from mainspring.errors import CodecError
from mainspring.errors.kinds import kind_in
from mainspring.errors.reading import UNREADABLE
from mainspring.logs import discretion, logger
from mainspring.port import records
from mainspring.port.ids import MARK, given_key
from mainspring.port.records import OutputClaim, Ref
from mainspring.telemetry.observed import Observed

MICROSECONDS: Final = 1_000_000

log = logger("mainspring.engine")


class Job(Struct):
    """A command claimed by a worker."""

    claim: OutputClaim
    message: Any
    context: Context | None = None
    started_us: int = 0
    deadline_us: int = NEVER_US
    era: int = 0
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


def carrying(codec: Codec, failed: SendFailed, claim: OutputClaim) -> tuple[SendFailed, Encoded]:
    """Return what an instance learns of a command's failure with the command in it, where that is not too large."""
    if not is_internal(claim.workflow):
        try:
            whole = replace(failed, command=json.decode(claim.body))
            return whole, codec.encode(whole)
        except (CodecError, *UNREADABLE):
            log.info("%s is not told in its failure: it is too large, or nests too deep", failed.message_id)
    return failed, codec.encode(failed)


def business_keys(handler: Handler, job: Job) -> tuple[str, ...]:
    """Return what a command's result is remembered under, and then what it may have been, if its handler has a key.

    Two commands about one order have the same key when it is the order's id: so the command's name is part of it. It
    was not, up to 0.1, and a command may have had another name.
    """
    key = handler.options.idempotency_key
    if key is None:
        return ()
    declared, own = type_of(handler.message_type), key(job.message)
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


def fired(claim: OutputClaim, message: Any, now_us: int) -> Pending:
    """Return a timer that is due as the input that it becomes."""
    ref, context = Ref(claim.workflow, claim.instance), read_context(claim.context)
    return Pending(
        ref=ref,
        message=message,
        type=claim.type,
        type_version=claim.type_version,
        body=claim.body,
        id=answer_id(ref, claim.output.version, Kind.TIMER),
        kind=Kind.TIMER,
        # It has no sender, so a Reply to it goes to the sender that began the instance.
        context=records.Context(context.correlation_id, context.causation_id, None, None, context.trace),
        time_us=now_us,
        mark=MARK,
        cause=claim.output.version,
        settles=claim.output,
        timer_key=read_detail(claim.detail).key,
    )


def letter_of(claim: OutputClaim, reason: str, error: str | None, attempts: int, now_us: int) -> records.DeadLetter:
    """Return an output as the dead letter that it becomes."""
    return records.DeadLetter(
        workflow=claim.workflow,
        instance=claim.instance,
        message_id=f"{claim.workflow}/{claim.instance}/{claim.output.version}",
        kind=claim.kind,
        type=claim.type,
        type_version=claim.type_version,
        body=claim.body,
        time_us=now_us,
        context=claim.context,
        reason=reason,
        error=error,
        attempts=attempts,
        output=claim.output,
    )


def result_of(encoded: Encoded, job: Job, message: Any, part: int, duration_us: int, now_us: int) -> Pending:
    """Return a handler's result as the input that it becomes."""
    own, claim = job.id, job.claim
    context = read_context(claim.context)
    trace = context.trace if job.observed is None else job.observed.trace
    return Pending(
        ref=job.ref,
        message=message,
        type=encoded.name,
        type_version=encoded.version,
        body=encoded.body,
        id=f"{own}/{part}",  # as `answer_id` has it
        kind=Kind.RESULT,
        context=records.Context(context.correlation_id, own, None, None, trace),
        time_us=now_us,
        mark=MARK,
        cause=claim.output.version,
        settles=claim.output,
        attempt=claim.attempts + 1,
        duration_us=duration_us,
        undoes=None if claim.detail is None else undone_by(claim),
        command=claim.body,
    )
