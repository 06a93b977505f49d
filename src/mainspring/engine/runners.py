"""Runners: carry out commands through their handlers, within the handlers' policies.

Quick handlers run one after the other in one task: a task for each would cost more than the work. When a handler waits
for something, the loop gets a turn, sees commands still ready, and starts more runners: one, two, four, up to the
handler's concurrency.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from msgspec import Struct

from mainspring.core.messages import Envelope, Kind
from mainspring.engine.handlers import Context, Handler
from mainspring.engine.pending import instance_id, moment, read_context
from mainspring.engine.policies import breaker, limits
from mainspring.engine.runtime import Runtime
from mainspring.port.records import OutputClaim, Ref

TURNS_BEFORE_YIELD: Final = 50
MICROSECONDS: Final = 1_000_000


class Job(Struct):
    """A command in a worker's hands."""

    claim: OutputClaim
    message: Any
    context: Context | None = None
    started_us: int = 0
    deadline_us: int = 0
    era: int = 0

    @property
    def ref(self) -> Ref:
        """The instance that sent it."""
        return Ref(self.claim.workflow, self.claim.instance)

    @property
    def id(self) -> str:
        """The command's id: the idempotency key of every attempt."""
        return f"{self.claim.workflow}/{self.claim.instance}/{self.claim.output.version}"


class Outcomes(Protocol):
    """Who hears how attempts ended."""

    def succeeded(self, handler: Handler, job: Job, result: Any, duration_us: int) -> None:
        """Take the result back to the instance that asked."""
        ...

    def failed(self, handler: Handler, job: Job, error: Exception) -> None:
        """Try again later, or give up."""
        ...

    def dropped(self, job: Job) -> None:
        """Settle a command whose instance was cancelled: nobody waits for its result."""
        ...

    async def remembered(self, handler: Handler, job: Job) -> tuple[bool, Any]:
        """Return whether a result is remembered under the command's business key, and which."""
        ...


class Runner:
    """Runs one handler."""

    def __init__(
        self,
        handler: Handler,
        runtime: Runtime,
        now_us: Callable[[], int],
        outcomes: Outcomes,
        resources: Mapping[str, Any],
    ) -> None:
        self.handler = handler
        self._runtime = runtime
        self._now_us = now_us
        self._outcomes = outcomes
        self._resources = resources
        self._ready: deque[Job] = deque()
        self._pumping = False
        self.active = 0
        self.running: dict[asyncio.Task[Any], list[Job]] = {}
        self._overdue: set[asyncio.Task[Any]] = set()
        self._cancelled: set[asyncio.Task[Any]] = set()
        self.breaker = breaker.BreakerState()
        self._bucket = limits.BucketState()
        self._waking = False
        self.closing = False

    @property
    def waiting(self) -> int:
        """How many commands wait for their turn."""
        return len(self._ready)

    def put(self, job: Job) -> None:
        """Carry a command out as soon as the policies allow."""
        self._ready.append(job)
        self._wake()

    def take_back(self) -> list[Job]:
        """Return the commands that were not begun, and forget them."""
        jobs = list(self._ready)
        self._ready.clear()
        return jobs

    def stop_overdue(self, now_us: int) -> None:
        """End attempts that are over their time."""
        for task, jobs in list(self.running.items()):
            if all(job.deadline_us <= now_us for job in jobs) and task not in self._overdue:
                self._overdue.add(task)
                self._stop(task, jobs)

    def running_since(self, moment_us: int) -> set[Ref]:
        """Return the instances whose attempts have been running since before a moment."""
        return {job.ref for jobs in self.running.values() for job in jobs if job.started_us < moment_us}

    def cancel_instance(self, ref: Ref) -> None:
        """Drop the commands of a cancelled instance, and tell those that run."""
        for job in [job for job in self._ready if job.ref == ref]:
            self._ready.remove(job)
            self._outcomes.dropped(job)
        for task, jobs in list(self.running.items()):
            if len(jobs) == 1 and jobs[0].ref == ref and task not in self._cancelled:
                self._cancelled.add(task)
                self._stop(task, jobs)

    def cancel_all(self) -> None:
        """End what still runs."""
        for task in list(self.running):
            task.cancel()

    def _stop(self, task: asyncio.Task[Any], jobs: list[Job]) -> None:
        for job in jobs:
            if job.context is not None:
                job.context.cancelled = True
        task.cancel()

    def _wake(self) -> None:
        if not self._pumping:
            self._pumping = True
            asyncio.get_running_loop().call_soon(self._pump)

    def _pump(self) -> None:
        self._pumping = False
        if not self._ready or self.closing:
            return
        room = self.handler.options.concurrency - self.active
        for _ in range(min(len(self._ready), max(1, self.active), room)):
            self._runtime.spawn(self._run(), f"mainspring-{self.handler.name}")
            self.active += 1
        if room > 0:
            self._wake()

    async def _run(self) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  it is the task that runs this very line
        turns = 0
        try:
            while self._ready and not self.closing and self._admitted():
                jobs = self._next()
                await self._attempt(task, jobs)
                turns += 1
                if turns % TURNS_BEFORE_YIELD == 0:
                    await asyncio.sleep(0)
        finally:
            self.active -= 1

    def _next(self) -> list[Job]:
        count = min(self.handler.options.batch or 1, len(self._ready))
        return [self._ready.popleft() for _ in range(count)]

    def _admitted(self) -> bool:
        """Ask breaker and rate limit; when they say no, come back when they may say yes. Waiting costs no attempt."""
        options = self.handler.options
        if self.breaker.since_us is None and options.rate is None:
            return True
        now_us = self._now_us()
        passes, self.breaker = breaker.admit(options.breaker, self.breaker, now_us)
        if not passes:
            self._wake_in(breaker.wait_us(options.breaker, self.breaker, now_us))
            return False
        if options.rate is not None:
            passes, self._bucket = limits.take(options.rate, self._bucket, now_us)
            if not passes:
                self._wake_in(limits.wait_us(options.rate, self._bucket, now_us))
        return passes

    def _wake_in(self, wait_us: int) -> None:
        async def later() -> None:
            await self._runtime.clock.sleep(max(wait_us, 1_000) / MICROSECONDS)
            self._waking = False
            self._wake()

        if not self._waking:
            self._waking = True
            self._runtime.spawn(later(), "mainspring-breaker")

    async def _attempt(self, task: asyncio.Task[Any], jobs: list[Job]) -> None:
        handler = self.handler
        if handler.options.idempotency_key is not None:
            jobs = [job for job in jobs if not await self._answered(job)]
            if not jobs:
                return
        for job in jobs:
            self._begin(job)
        self.running[task] = jobs
        try:
            if handler.is_async:
                message = jobs[0].message if handler.options.batch is None else [job.message for job in jobs]
                result = await handler.call(message, jobs[0].context)
            else:
                result = await self._in_thread(jobs)
        except asyncio.CancelledError:
            self._ended_by_cancellation(task, jobs)
        except Exception as error:  # noqa: BLE001  a handler may fail in any way
            self._report_failure(jobs, error)
        else:
            self._report_success(jobs, result)
        finally:
            del self.running[task]
            self._overdue.discard(task)
            self._cancelled.discard(task)

    def _ended_by_cancellation(self, task: asyncio.Task[Any], jobs: list[Job]) -> None:
        """Tell why an attempt was cancelled: its instance was, its time is up, the worker stops, or by itself."""
        if task in self._cancelled:
            task.uncancel()
            self._outcomes.dropped(jobs[0])
        elif task in self._overdue:
            task.uncancel()
            timeout = self.handler.options.timeout
            self._report_failure(jobs, TimeoutError(f"{self.handler.name} took longer than {timeout}"))
        elif task.cancelling():
            raise asyncio.CancelledError
        else:
            self._report_failure(jobs, RuntimeError(f"{self.handler.name} raised CancelledError by itself"))

    async def _answered(self, job: Job) -> bool:
        known, result = await self._outcomes.remembered(self.handler, job)
        if known:
            self._outcomes.succeeded(self.handler, job, result, 0)
        return known

    def _begin(self, job: Job) -> None:
        timeout_us = self.handler.timeout_us
        job.era = self.breaker.era
        job.started_us = self._now_us()
        job.deadline_us = job.started_us + timeout_us
        if self.handler.wants_context:

            def beat() -> None:
                job.deadline_us = self._now_us() + timeout_us

            job.context = Context(
                idempotency_key=job.id,
                attempt=job.claim.attempts + 1,
                instance=str(job.ref),
                envelope=envelope_of(job),
                resources=self._resources,
                beat=beat,
            )

    async def _in_thread(self, jobs: list[Job]) -> Any:
        message = jobs[0].message if self.handler.options.batch is None else [job.message for job in jobs]
        return await self._runtime.in_thread(self.handler.bind(message, jobs[0].context))

    def _report_success(self, jobs: list[Job], result: Any) -> None:
        now_us = self._now_us()
        self.breaker = breaker.succeeded(self.breaker, jobs[0].era)
        if not self.handler.options.batch:
            self._outcomes.succeeded(self.handler, jobs[0], result, now_us - jobs[0].started_us)
            return
        results: list[Any] = [None] * len(jobs) if result is None else list(result)
        if len(results) != len(jobs):
            error = ValueError(f"{self.handler.name} took {len(jobs)} commands and returned {len(results)} results")
            self._report_failure(jobs, error)
            return
        for job, each in zip(jobs, results, strict=True):
            if isinstance(each, Exception):
                self._outcomes.failed(self.handler, job, each)
            else:
                self._outcomes.succeeded(self.handler, job, each, now_us - job.started_us)

    def _report_failure(self, jobs: list[Job], error: Exception) -> None:
        self.breaker = breaker.failed(self.handler.options.breaker, self.breaker, self._now_us(), jobs[0].era)
        for job in jobs:
            self._outcomes.failed(self.handler, job, error)


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
        context.trace,
    )
