"""The observer: what the stations report of a message on its way, as spans, numbers and fields of log lines.

There is one only where telemetry is on: each station asks `if self._observer is not None`, and nothing else is done
for it where it is off.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from mainspring.core.failures import SendFailed
from mainspring.core.messages import Kind
from mainspring.engine.handlers.job import Job
from mainspring.engine.inputs.pending import Answer, Pending, ReceiptStatus
from mainspring.engine.recording.stored_values import read_context
from mainspring.errors import DamagedRecordError
from mainspring.port.preconditions import Unmet
from mainspring.port.records import Committed, Conflict, Context, DeadLetter, Duplicate, Outcome, OutputClaim, Unit
from mainspring.port.tasks import Refused
from mainspring.telemetry.carried import Carried
from mainspring.telemetry.logs import EXTRA, Fields, at_hand
from mainspring.telemetry.observed import Observed
from mainspring.telemetry.telemetry import Telemetry
from mainspring.telemetry.w3c import trace_id_of

if TYPE_CHECKING:
    from mainspring.telemetry.tracing import Spanned

SYSTEM: Final = "mainspring"
MICROSECONDS: Final = 1_000_000
_ENDS: Final = {"Completed": "completed", "Failed": "failed", "Cancelled": "cancelled", "Terminated": "terminated"}


class Observer:
    """Is notified of every message that is sent, stepped, carried out and committed here.

    >>> Observer(Telemetry(metrics=True), lambda: 0).logs
    False
    """

    def __init__(self, telemetry: Telemetry, now_us: Callable[[], int]) -> None:
        self._tracing = telemetry.tracing
        self._instruments = telemetry.instruments
        self.logs = telemetry.logs
        self.now_us = now_us

    # ---- inputs

    def sending(self, pending: Pending) -> None:
        """A message comes in. From here on it carries the trace of its sender."""
        ref, trace, spanned, now_us = pending.ref, pending.context.trace, None, self.now_us()
        if self._tracing is not None:
            operation = "publish" if pending.kind is Kind.EVENT else "send"
            attributes = self._attributes(pending, operation, "send")
            spanned = self._tracing.send(f"{operation} {ref.workflow}", attributes, now_us, trace)
            trace = spanned.trace
            pending.context = replace(pending.context, trace=trace)
        if pending.answer is not None:
            pending.answer.observed = Observed(now_us, spanned, trace, ref.workflow)

    def handed_over(self, pending: Pending) -> None:
        """A message became part of a caller's transaction: it comes in if that commits."""
        if pending.answer is not None:
            self.sent(pending.answer, "posted")

    def sent(self, answer: Answer, became: str | None = None) -> None:
        """A message that came in is durable, or was refused, or its sender has stopped waiting."""
        observed, answer.observed = answer.observed, None
        if observed is None:
            return
        became = became or ("refused" if answer.error is not None else answer.status)
        if self._instruments is not None:
            self._instruments.inputs.add((observed.workflow, became))
        if self._tracing is not None and observed.spanned is not None:
            self._tracing.end(observed.spanned, became, answer.error)

    # ---- steps

    def taking(self, pending: Pending, began: bytes | None) -> None:
        """An input is taken. One that has to wait once more is still the same."""
        if pending.observed is not None:
            return
        context, spanned, now_us = pending.context, None, self.now_us()
        if self._tracing is not None:
            spanned = self._tracing.process(
                f"step {pending.ref.workflow}",
                self._attributes(pending, "step", "process"),
                [(context.trace, pending.time_us)],
                now_us,
                began=_trace(began),
            )
        pending.observed = Observed(now_us, spanned, context.trace if spanned is None else spanned.trace)

    def taken(
        self,
        pending: Pending,
        unit: Unit,
        outcome: Outcome | Exception,
        status: ReceiptStatus,
        fault: Exception | None = None,
    ) -> None:
        """The commit of an input came back."""
        observed, pending.observed = pending.observed, None
        if observed is None:
            return
        became = status if type(outcome) is Committed else _refusal(outcome)
        if self._instruments is not None:
            workflow = pending.ref.workflow
            self._instruments.steps.add((workflow, became))
            if type(outcome) is Committed:
                if status in ("stepped", "kept") and _is_left(pending, unit):
                    self._instruments.buried.add((workflow,))
                took_us = max(0, self.now_us() - observed.begun_us)
                self._instruments.step_duration.observe(took_us / MICROSECONDS, (workflow,))
        if self._tracing is not None and observed.spanned is not None:
            error = outcome if isinstance(outcome, Exception) else fault
            position = (unit.expected_version or 0) + len(unit.events)
            self._tracing.end(observed.spanned, became, error, position=position)

    # ---- commits

    def committed(self, units: Sequence[Unit], outcomes: Sequence[Outcome | Exception], begun_us: int) -> None:
        """A batch came back."""
        instruments = self._instruments
        if instruments is None:
            return
        instruments.commit_units.observe(len(units))
        instruments.commit_duration.observe(max(0, self.now_us() - begun_us) / MICROSECONDS)
        for unit, outcome in zip(units, outcomes, strict=True):
            if type(outcome) is not Committed:
                instruments.refusals.add((_refusal(outcome),))
                continue
            for letter in unit.dead_letters:
                if not _waits(unit, letter):
                    self.buried(letter)
            if unit.handles:
                instruments.handled.add((unit.workflow,), len(unit.handles))
            if unit.events:
                if unit.events[0].event == "Began":
                    instruments.began.add((unit.workflow,))
                if (last := unit.events[-1].event) in _ENDS:
                    instruments.ended.add((unit.workflow, _ENDS[last]))
            if unit.status == "suspended" and (not unit.events or unit.events[-1].event == "Suspended"):
                instruments.suspensions.add((unit.workflow,))

    def buried(self, letter: DeadLetter) -> None:
        """A message became a dead letter."""
        if self._instruments is not None:
            self._instruments.buried.add((letter.workflow,))

    # ---- handlers

    async def around(
        self, handler: str, jobs: Sequence[Job], call: Awaitable[Any], is_overdue: Callable[[], bool]
    ) -> Any:
        """Await an attempt, with its span as the current one and its fields in the log lines that it writes."""
        spanned, fields = self._attempt(handler, jobs)
        entered = None if self._tracing is None or spanned is None else self._tracing.enter(spanned)
        at = at_hand.set(fields) if self.logs else None
        end, error = "succeeded", None
        try:
            return await call
        except BaseException as raised:
            error = raised
            end = "failed"
            if isinstance(raised, asyncio.CancelledError):
                end = "timed out" if is_overdue() else "cancelled"
            raise
        finally:
            if at is not None:
                at_hand.reset(at)
            if self._tracing is not None and spanned is not None and entered is not None:
                self._tracing.leave(entered)
                self._tracing.end(spanned, end, error)

    def _attempt(self, handler: str, jobs: Sequence[Job]) -> tuple[Spanned | None, Fields | None]:
        first, contexts, spanned = jobs[0], [_context(job) for job in jobs], None
        if self._tracing is not None:
            spanned = self._tracing.process(
                f"handle {first.claim.type}",
                _job_attributes(handler, jobs, contexts[0]),
                [(context.trace, job.claim.due_us) for job, context in zip(jobs, contexts, strict=True)],
                self.now_us(),
            )
        for job, context in zip(jobs, contexts, strict=True):
            job.observed = Observed(0, spanned, context.trace if spanned is None else spanned.trace)
        if not self.logs:
            return spanned, None
        trace = contexts[0].trace if spanned is None else spanned.trace
        return spanned, _fields(first, contexts[0], trace, handler)

    def in_thread(self, function: Callable[[], Any]) -> Callable[[], Any]:
        """Return a function that is called in a thread as it would be here."""
        return partial(contextvars.copy_context().run, function)

    def in_process(self, function: Callable[[Any], Any], handler: str, job: Job) -> Callable[[Any], Any]:
        """Return a function that is called in another process as it would be here."""
        trace = None if job.observed is None or self._tracing is None else job.observed.trace
        fields = _fields(job, _context(job), trace, handler) if self.logs else None
        return Carried(function, fields, trace)

    def attempted(self, handler: str, job: Job, end: str, now_us: int, *, again: bool = False) -> None:
        """An attempt has ended; one that never began had its result remembered, or could not look for it.

        After one that failed, another one may be made `again`.
        """
        if self._instruments is None:
            return
        if job.started_us:
            took_us = max(0, now_us - job.started_us)
            self._instruments.handler_duration.observe(took_us / MICROSECONDS, (handler,))
        elif end == "succeeded":
            end = "remembered"
        self._instruments.attempts.add((handler, end))
        if again:
            self._instruments.retries.add((handler,))

    # ---- the rest

    def fired(self, claim: OutputClaim, now_us: int) -> None:
        """A timer fires."""
        if self._instruments is not None:
            self._instruments.timer_lag.observe(max(0, now_us - claim.due_us) / MICROSECONDS, (claim.workflow,))

    def relieved(self, workers: int) -> None:
        """Dead workers were relieved."""
        if self._instruments is not None and workers:
            self._instruments.takeovers.add((), workers)

    def left(self, type: str) -> None:
        """An input is left to others, because its type is unknown here."""
        if self._instruments is not None:
            self._instruments.strangers.add((type,))

    def _attributes(self, pending: Pending, operation: str, kind: str) -> dict[str, str | int]:
        ref = pending.ref
        return {
            "messaging.system": SYSTEM,
            "messaging.operation.name": operation,
            "messaging.operation.type": kind,
            "messaging.destination.name": ref.workflow,
            "messaging.message.id": pending.id,
            "messaging.message.conversation_id": pending.context.correlation_id,
            "mainspring.workflow": ref.workflow,
            "mainspring.instance": ref.id,
            "mainspring.message.type": pending.type,
            "mainspring.message.kind": pending.kind.value,
        }


def about(job: Job, attempt: int) -> dict[str, Fields]:
    """Return what a log line about a command says beside its text."""
    context = _context(job)
    return {EXTRA: {**_fields(job, context, context.trace, None), "attempt": attempt}}


def about_input(pending: Pending) -> dict[str, Fields]:
    """Return what a log line about an input says beside its text."""
    ref, context = pending.ref, pending.context
    return {
        EXTRA: {
            "workflow": ref.workflow,
            "instance": ref.id,
            "message_id": pending.id,
            "message_type": pending.type,
            "correlation_id": context.correlation_id,
            "trace_id": trace_id_of(context.trace),
        }
    }


def _fields(job: Job, context: Context, trace: str | None, handler: str | None) -> Fields:
    claim = job.claim
    return {
        "workflow": claim.workflow,
        "instance": claim.instance,
        "message_id": job.id,
        "message_type": claim.type,
        "correlation_id": context.correlation_id,
        "handler": handler,
        "attempt": claim.attempts + 1,
        "trace_id": trace_id_of(trace),
    }


def _job_attributes(handler: str, jobs: Sequence[Job], context: Context) -> dict[str, str | int]:
    claim = jobs[0].claim
    shared: dict[str, str | int] = {
        "messaging.system": SYSTEM,
        "messaging.operation.name": "handle",
        "messaging.operation.type": "process",
        "messaging.destination.name": claim.type,
        "mainspring.handler": handler,
        "mainspring.message.type": claim.type,
    }
    if len(jobs) > 1:
        return {**shared, "messaging.batch.message_count": len(jobs)}
    return {
        **shared,
        "messaging.message.id": jobs[0].id,
        "messaging.message.conversation_id": context.correlation_id,
        "mainspring.workflow": claim.workflow,
        "mainspring.instance": claim.instance,
        "mainspring.attempt": claim.attempts + 1,
    }


def _context(job: Job) -> Context:
    try:
        return read_context(job.claim.context)
    except DamagedRecordError:
        return Context(job.id)  # the code that needs the rest of it will raise


def _waits(unit: Unit, letter: DeadLetter) -> bool:
    """Return True if a dead letter's failure waits as an input: only then it is known to need attention."""
    output = letter.output
    return output is not None and any(row.cause == output.version for row in unit.accepts)


def _is_left(pending: Pending, unit: Unit) -> bool:
    """Return True if a failure that had to wait was taken by no case: its dead letter stays."""
    failed = pending.position is not None and pending.cause is not None and isinstance(pending.message, SendFailed)
    return failed and not unit.handles


def _trace(context: bytes | None) -> str | None:
    try:
        return None if context is None else read_context(context).trace
    except DamagedRecordError:
        return None


def _refusal(outcome: Outcome | Exception) -> str:
    """Return why something was not committed, in a word that a label can be.

    >>> _refusal(Conflict("version")), _refusal(ValueError("no"))
    ('conflict: version', 'error')
    """
    match outcome:
        case Conflict(reason):
            return f"conflict: {reason}"
        case Duplicate():
            return "duplicate"
        case Refused():
            return "refused"
        case Unmet():
            return "unmet"
        case Committed():
            return "committed"
        case _:
            return "error"
