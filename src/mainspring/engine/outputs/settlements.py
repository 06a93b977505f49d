"""Settlements: how outputs end. Each end is one commit, or an input whose step settles its output."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from msgspec import json

from mainspring.codec import Codec, Encoded
from mainspring.core.failures import SendFailed, Undone
from mainspring.core.messages import Kind
from mainspring.core.step import OUTPUTS_PER_STEP
from mainspring.engine.claimable.strangers import OUTPUT_LEFT_SECONDS
from mainspring.engine.claimable.wakeups import Wakeups
from mainspring.engine.committing.committer import Committer
from mainspring.engine.handlers.handler import Handler
from mainspring.engine.handlers.job import MICROSECONDS, Job, business_keys, may_be_of
from mainspring.engine.handlers.policies.checks import microseconds
from mainspring.engine.inputs.pending import NEVER_US, FailedForGood, Inputs, Pending
from mainspring.engine.observer import about
from mainspring.engine.recording.error_text import error_text
from mainspring.engine.recording.event_rows import answer_id
from mainspring.engine.recording.fan_out_parts import PartDone
from mainspring.engine.recording.saga_rows import undone_by
from mainspring.engine.recording.stored_values import read_context
from mainspring.engine.registry import Registry, is_internal
from mainspring.engine.runtime import Runtime
from mainspring.engine.this_worker import ThisWorker
from mainspring.errors import CodecError, DoNotRetryError, MainspringError, NewerTypeError, WiringError
from mainspring.errors.reading import UNREADABLE
from mainspring.logs import Quoted, logger
from mainspring.port.attempts import Attempt
from mainspring.port.ids import MARK
from mainspring.port.loans import Loan
from mainspring.port.records import (
    FAN_OUT,
    Committed,
    Context,
    DeadLetter,
    InputRow,
    Outcome,
    OutputClaim,
    Ref,
    Remembered,
    Retry,
    Unit,
)
from mainspring.port.store import Store

log = logger("mainspring.engine")


class Settlements:
    """Records how outputs end: carried out, to be retried, given up or buried."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        committer: Committer,
        runtime: Runtime,
        wakeups: Wakeups,
        inputs: Inputs,
        worker: ThisWorker,
    ) -> None:
        self._store = store
        self._registry = registry
        self._committer = committer
        self._runtime = runtime
        self._observer = runtime.observer
        self._wakeups = wakeups
        self._inputs = inputs
        self._worker = worker

    def succeeded(self, handler: Handler, job: Job, result: Any, duration_us: int) -> None:
        """Take a handler's result back to the instance that asked."""
        if self._observer is not None:
            self._observer.attempted(handler.name, job, "succeeded", self._store.now_us())
        try:
            inputs, remembers = self._results(handler, job, result, duration_us)
        except MainspringError as error:
            self.give_up(job, error)
            return
        if len(inputs) == 1:
            inputs[0].remembers = remembers
            self._inputs.submit(inputs[0])
            return
        rows = tuple(pending.input_row(claimed=True) for pending in inputs)
        self.settle(job.claim, rows, remembers)

    def _results(
        self, handler: Handler, job: Job, result: Any, duration_us: int
    ) -> tuple[list[Pending], tuple[Remembered, ...]]:
        messages = _messages(result)
        if len(messages) > OUTPUTS_PER_STEP:
            raise WiringError(
                f"{handler.name} returned {len(messages):,} messages; the limit is {OUTPUTS_PER_STEP:,}",
                "Return one message that holds or names them.",
            )
        inputs = [self.result(job, message, n, duration_us) for n, message in enumerate(messages, 1)]
        # An answer from memory began no attempt, and lives no longer for being asked for.
        is_new = handler.options.idempotency_key is not None and job.started_us
        remembers = (self._remembered(handler, job, inputs),) if is_new else ()
        if job.claim.workflow == FAN_OUT:
            # What is remembered is the handler's own result: callers that are no part of a fan-out may ask for it too.
            results = tuple((result.type, result.type_version, result.body.decode()) for result in inputs)
            inputs = [self.result(job, PartDone(results), 1, duration_us)]
        if not inputs and undone_by(job.claim) is not None:
            inputs = [self.result(job, Undone(), 1, duration_us)]
        return inputs, remembers

    async def lend(self, handler: Handler) -> Loan:
        """Open the transaction in which a handler's result will be recorded."""
        return await self._store.lend(self._committer.worker, handler.timeout_us / MICROSECONDS)

    async def succeeded_in(self, loan: Loan, handler: Handler, job: Job, result: Any, duration_us: int) -> None:
        """Commit what a handler wrote together with its result, which is stepped afterwards like any input."""
        if self._observer is not None:
            self._observer.attempted(handler.name, job, "succeeded", self._store.now_us())
        try:
            inputs, remembers = self._results(handler, job, result, duration_us)
        except MainspringError as error:
            await loan.roll_back()
            self.give_up(job, error)
            return
        rows = tuple(pending.input_row(claimed=True) for pending in inputs)
        claim = job.claim
        unit = Unit(claim.workflow, claim.instance, settles=(claim.output,), accepts=rows, remembers=remembers)
        outcome = await loan.commit(unit)
        if isinstance(outcome, Committed):
            self._take_up(rows, outcome)
        else:
            log.info("%s was taken over by another worker: what it wrote here was undone", job.id)

    def settle(
        self, claim: OutputClaim, accepts: tuple[InputRow, ...] = (), remembers: tuple[Remembered, ...] = ()
    ) -> None:
        """Settle an output that needs no step of its own, with the inputs that it became."""
        unit = Unit(claim.workflow, claim.instance, settles=(claim.output,), accepts=accepts, remembers=remembers)

        def then(outcome: Outcome) -> None:
            if isinstance(outcome, Committed):
                self._take_up(accepts, outcome)

        self._committer.persist(unit, then)

    def _take_up(self, accepts: tuple[InputRow, ...], outcome: Committed) -> None:
        """Step what was accepted and claimed by this worker."""
        for row, position in zip(accepts, outcome.positions, strict=True):
            if position and position not in outcome.unclaimed:
                self._inputs.accepted(row, position)

    async def remember(self, result: Remembered) -> None:
        """Keep a result, durably."""
        await self._committer.commit(Unit("", "", remembers=(result,)))

    def result(self, job: Job, message: Any, part: int, duration_us: int) -> Pending:
        """Return a message as the answer to a command, one of several."""
        encoded = self._registry.codec.encode(message)
        claim = job.claim
        own = f"{claim.workflow}/{claim.instance}/{claim.output.version}"
        # In the order of its fields: one that is given by its name is looked for among all of them.
        return Pending(
            Ref(claim.workflow, claim.instance),
            message,
            encoded.name,
            encoded.version,
            encoded.body,
            f"{own}/{part}",  # as `answer_id` has it
            Kind.RESULT,
            _answering(job, own),
            # When it came: the clock was read for its duration.
            job.started_us + duration_us if job.started_us else self._store.now_us(),
            MARK,
            None,  # no actor
            claim.output.version,
            claim.output,
            claim.attempts + 1,
            duration_us,
            claim.body,
            None if claim.detail is None else undone_by(claim),
        )

    def _remembered(self, handler: Handler, job: Job, inputs: list[Pending]) -> Remembered:
        # timedelta.max says "for ever", and is more than a database can count.
        expires_us = min(self._store.now_us() + microseconds(handler.options.remember), NEVER_US)
        name = business_keys(handler, job, self._registry.watch)[0]
        if not inputs:
            return Remembered(name, None, 1, b"null", expires_us)
        if len(inputs) > 1:
            raise WiringError(
                f"{handler.name} has an idempotency key and returned several messages", "Return one, or none."
            )
        return Remembered(name, inputs[0].type, inputs[0].type_version, inputs[0].body, expires_us)

    async def remembered(self, handler: Handler, job: Job) -> tuple[bool, Any]:
        """Return the result kept under the command's business key, if there is one."""
        keys = business_keys(handler, job, self._registry.watch)
        for key in keys:
            found = await self._store.remembered(key)
            if found is not None:
                result = None
                if found.type is not None:
                    result = self._registry.codec.decode(found.type, found.type_version, found.body)
                if key != keys[-1] or result is None or may_be_of(handler, result):
                    return True, result
        return False, None

    def failed(self, handler: Handler, job: Job, error: Exception) -> None:
        """Let an attempt be made again later, or give up."""
        if isinstance(error, NewerTypeError) and not job.started_us:
            self.leave(job.claim, error)  # what is remembered of it was written by newer code
            return
        attempts = job.claim.attempts + 1
        retry = self._registry.retry_of(handler, job.claim.workflow)
        again = retry.wants_another(error, attempts)
        if self._observer is not None:
            self._observer.attempted(handler.name, job, "failed", self._store.now_us(), again=again)
        if again:
            delay_us = microseconds(retry.wait(error, attempts, self._runtime.random()))
            what, said = "%s failed at attempt %d, again in %.1f s: %s", about(job, attempts)
            log.info(what, job.id, attempts, delay_us / 1e6, error, extra=said)
            self.retry(job.claim, attempts, delay_us, job.own(error_text(error)), job.started_us or None)
        else:
            self.give_up(job, error)

    def dropped(self, handler: Handler, job: Job) -> None:
        """Settle a command whose instance was cancelled."""
        if self._observer is not None and job.started_us:
            self._observer.attempted(handler.name, job, "cancelled", self._store.now_us())
        self.settle(job.claim)

    def retry(self, claim: OutputClaim, attempts: int, delay_us: int, error: str, began_us: int | None = None) -> None:
        """Let an output be carried out again after a while from now, whenever that is committed, by any worker."""
        now_us = self._store.now_us()
        unit = Unit(
            claim.workflow,
            claim.instance,
            retries=(Retry(claim.output, attempts, delay_us, error, now_us),),
            # A command that only had to wait has tried nothing.
            attempts=(self._attempt(claim, attempts, began_us, error),) if attempts > claim.attempts else (),
        )
        self._committer.persist(unit, lambda _: self._wakeups.due_at(now_us + delay_us))

    def tried(self, claim: OutputClaim, number: int, began_us: int | None, error: str) -> None:
        """Keep the last attempt, behind which there is no retry."""
        last = self._attempt(claim, number, began_us, error)
        self._committer.persist(Unit(claim.workflow, claim.instance, attempts=(last,)))

    def _attempt(self, claim: OutputClaim, number: int, began_us: int | None, error: str) -> Attempt:
        instance, version = claim.output.instance, claim.output.version
        return Attempt(instance, version, number, self._worker.name, began_us, self._store.now_us(), error)

    def leave(self, claim: OutputClaim, error: NewerTypeError) -> None:
        """Leave an output to a worker that can read all of it. That is no attempt."""
        self.retry(claim, claim.attempts, int(OUTPUT_LEFT_SECONDS * MICROSECONDS), error_text(error))

    def give_up(self, job: Job, error: Exception, reason: str = "its handler gave up") -> None:
        """Make a dead letter of a command; its workflow gets it as an input if it listens, else it is suspended."""
        attempts = job.claim.attempts + 1
        text = job.own(error_text(error))
        log.error("%s failed for good at attempt %d: %s", job.id, attempts, Quoted(text), extra=about(job, attempts))
        letter = self.letter(job.claim, reason, text, attempts)
        self.tried(job.claim, attempts, job.started_us or None, text)
        self._inputs.submit(self.failure(job, letter, definite=isinstance(error, DoNotRetryError) and error.definite))

    def refuse(self, job: Job, letter: DeadLetter) -> None:
        """Notify the instance that sent a command that it is a dead letter, and was certainly not taken."""
        self._inputs.submit(self.failure(job, letter, definite=True))

    def failure(self, job: Job, letter: DeadLetter, *, definite: bool) -> Pending:
        """Return what the instance learns of a command that became a dead letter."""
        claim, ref, text, attempts = job.claim, job.ref, letter.error or letter.reason, letter.attempts
        entry, undoes = self._registry.workflows.get(claim.workflow), undone_by(claim)
        # A failed compensation is nothing to decide on: it must be mended before the rest can be undone.
        # Whether the version that the instance runs under listens is seen when it is taken.
        versions = () if undoes is not None or entry is None else entry.versions
        listens = any(SendFailed in version.definition.inputs for version in versions)
        failed = SendFailed(claim.type, job.id, text, attempts, definite)
        message, encoded = _with_command(self._registry.codec, failed, claim) if listens else (None, None)
        return Pending(
            ref=ref,
            message=message,
            type=encoded.name if encoded else "",
            type_version=encoded.version if encoded else 1,
            body=encoded.body if encoded else b"",
            id=answer_id(ref, claim.output.version, Kind.RESULT),
            kind=Kind.RESULT,
            context=_answering(job, job.id),
            time_us=self._store.now_us(),
            mark=MARK,
            cause=claim.output.version,
            settles=claim.output,
            attempt=attempts,
            failure=FailedForGood(f"{claim.type} failed for good: {text}", letter, definite),
            undoes=undoes,
            command=claim.body,
        )

    def bury(self, claim: OutputClaim, reason: str, error: Exception | None) -> None:
        """Make a dead letter of an output that has nowhere to go."""
        text = None if error is None else error_text(error)
        letter = self.letter(claim, reason, text, claim.attempts)
        if undone_by(claim) is not None:
            self._inputs.submit(self.failure(Job(claim, None), letter, definite=False))
            return
        unit = Unit(claim.workflow, claim.instance, settles=(claim.output,), dead_letters=(letter,))
        self._committer.persist(unit)

    def letter(self, claim: OutputClaim, reason: str, error: str | None, attempts: int = 0) -> DeadLetter:
        """Return an output as the dead letter that it becomes."""
        return DeadLetter(
            workflow=claim.workflow,
            instance=claim.instance,
            message_id=f"{claim.workflow}/{claim.instance}/{claim.output.version}",
            kind=claim.kind,
            type=claim.type,
            type_version=claim.type_version,
            body=claim.body,
            time_us=self._store.now_us(),
            context=claim.context,
            reason=reason,
            error=error,
            attempts=attempts,
            output=claim.output,
        )


def _messages(result: Any) -> list[Any]:
    if result is None:
        return []
    several = type(result) in (list, tuple)
    return list(cast("list[Any]", result)) if several else [result]


def _with_command(codec: Codec, failed: SendFailed, claim: OutputClaim) -> tuple[SendFailed, Encoded]:
    """Return what an instance learns of a command's failure with the command in it, where that is not too large."""
    if not is_internal(claim.workflow):
        try:
            whole = replace(failed, command=json.decode(claim.body))
            return whole, codec.encode(whole)
        except (CodecError, *UNREADABLE):
            log.info("%s is not told in its failure: it is too large, or nests too deep", failed.message_id)
    return failed, codec.encode(failed)


def _answering(job: Job, own: str) -> Context:
    """Return the context of what answers a command with this id."""
    context = read_context(job.claim.context)
    trace = context.trace if job.observed is None else job.observed.trace
    return Context(context.correlation_id, own, None, None, trace)
