"""Runners: carry out commands through their handlers, within the handlers' policies.

Quick handlers run one after the other in one task: a task for each would cost more than the work. When a handler waits
for something, the loop gets a turn, sees commands still ready, and starts more runners: one, two, four, up to the
handler's concurrency.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, Final

from mainspring.engine.handlers.gate import Gate
from mainspring.engine.handlers.handler import Context, Handler
from mainspring.engine.handlers.job import MICROSECONDS, Job, JobEnds, as_exception, envelope_of
from mainspring.engine.handlers.prefetch import Prefetch
from mainspring.engine.inputs.pending import NEVER_US
from mainspring.engine.recording.saga_rows import Doomed, undone_by
from mainspring.engine.runtime import HANDLER_THREADS, Runtime, unbroken
from mainspring.logs import logger
from mainspring.port.loans import Connection
from mainspring.port.records import Ref

TURNS_BEFORE_YIELD: Final = 50

log = logger("mainspring.engine")


class Runner:
    """Runs one handler."""

    def __init__(
        self,
        handler: Handler,
        runtime: Runtime,
        now_us: Callable[[], int],
        ends: JobEnds,
        resources: Mapping[str, Any],
        *,
        on_capacity: Callable[[], None],
        on_begin: Callable[[], None],
        on_gate: Callable[[], None],
    ) -> None:
        self.handler = handler
        self._runtime = runtime
        self._observer = runtime.observer
        self._now_us = now_us
        self._ends = ends
        self._resources = resources
        self._ready: deque[Job] = deque()
        self._pumping = False
        self.active = 0
        self.running: dict[asyncio.Task[Any], list[Job]] = {}
        self._overdue: set[asyncio.Task[Any]] = set()
        self._cancelled: set[asyncio.Task[Any]] = set()
        self.gate = Gate(handler, now_us, on_gate)
        self._waker: asyncio.Task[None] | None = None
        self.held_back = runtime.hung.holds_back(handler.name)
        self.closing = self.paused = False
        # More would wait for a thread or a process, where they cannot be taken back.
        self.concurrency = min(handler.options.concurrency, _places(handler, runtime))
        self._at_once = handler.options.batch or 1
        self.prefetch = Prefetch(self.concurrency * self._at_once, handler.options.rate)
        # Whether commands were left to others, and what to call when there is capacity again.
        self.turned_away = False
        self._on_capacity = on_capacity
        # Called when something begins to run.
        self._on_begin = on_begin

    @property
    def waiting(self) -> int:
        """How many commands wait for their turn."""
        return len(self._ready)

    @property
    def in_hand(self) -> int:
        """How many commands wait or run, at most."""
        return len(self._ready) + self.active * self._at_once

    def put(self, job: Job) -> None:
        """Carry a command out as soon as the policies allow. A worker that stops releases its row instead."""
        if self.paused:
            self._give_back(job)
        elif not self.closing:
            self._ready.append(job)
            self._wake()

    def jobs(self) -> Iterator[Job]:
        """Return all commands in hand, waiting and running."""
        yield from self._ready
        for jobs in self.running.values():
            yield from jobs

    def take_back(self) -> list[Job]:
        """Return the commands that were not begun, and forget them."""
        jobs = list(self._ready)
        self._ready.clear()
        return jobs

    def pause(self, paused: bool) -> None:
        """Begin nothing more and release what has not begun, for any worker to claim later; or take commands again."""
        self.paused = paused
        for job in self.take_back() if paused else ():
            self._give_back(job)

    def _give_back(self, job: Job) -> None:
        """Let a command wait in the store as it came. Waiting costs no attempt."""
        self._ends.retry(job.claim, job.claim.attempts, 0, job.claim.error or "")

    def stop_overdue(self, now_us: int) -> None:
        """End attempts that have timed out."""
        for task, jobs in list(self.running.items()):
            if all(job.deadline_us <= now_us for job in jobs) and task not in self._overdue:
                self._overdue.add(task)
                self._stop(task, jobs)

    def running_since(self, moment_us: int) -> set[Ref]:
        """Return the instances whose attempts have been running since before a moment."""
        return {job.ref for jobs in self.running.values() for job in jobs if job.started_us < moment_us}

    def cancel_instance(self, ref: Ref, which: Doomed = "all", up_to: int = sys.maxsize) -> None:
        """Drop the commands of a cancelled instance, up to one of its versions, and cancel those that run."""
        for job in [job for job in self._ready if job.is_doomed(ref, which, up_to)]:
            self._ready.remove(job)
            self._ends.dropped(self.handler, job)
        for task, jobs in list(self.running.items()):
            if len(jobs) == 1 and jobs[0].is_doomed(ref, which, up_to) and task not in self._cancelled:
                self._cancelled.add(task)
                self._stop(task, jobs)

    def cancel_all(self) -> None:
        """End what still runs."""
        self._rest_is_over()
        for task in list(self.running):
            task.cancel()

    def _stop(self, task: asyncio.Task[Any], jobs: list[Job]) -> None:
        for job in jobs:
            if job.context is not None:
                job.context.cancelled = True
        task.cancel()

    def hold_back(self, held_back: bool) -> None:
        """Call the handler no more, as too many of its calls hang; or resume."""
        went_on, self.held_back = self.held_back and not held_back, held_back
        if went_on:
            self.turned_away = True  # nothing was claimed for it meanwhile
            self._has_capacity()
            self._wake()

    def _wake(self) -> None:
        if self.held_back:
            return
        if self._waker is not None:
            if self.gate.fails_fast:
                asyncio.get_running_loop().call_soon(self._refuse)
        elif not self.active:
            self._pump()  # the first one starts in the loop's next turn, and finds all that comes in this one
        elif not self._pumping:
            self._pumping = True
            asyncio.get_running_loop().call_soon(self._pump)

    def _pump(self) -> None:
        self._pumping = False
        # While breaker, rate limit or calls that hang hold everything back, another look would only cost time.
        if not self._ready or self.closing or self.held_back or self._waker is not None:
            return
        wanted = min(len(self._ready), self.concurrency - self.active)
        started = min(wanted, max(1, self.active))
        for _ in range(started):
            self._runtime.spawn(self._run(), f"mainspring-{self.handler.name}")
            self.active += 1
        self._on_begin()
        if started < wanted:
            self._wake()

    async def _run(self) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  it is the task that runs this very line
        turns = 0
        try:
            while self._ready and not self.closing and not self.held_back and self._admitted():
                jobs = self._next()
                await self._attempt(task, jobs)
                turns += 1
                if turns % TURNS_BEFORE_YIELD == 0:
                    await asyncio.sleep(0)
        finally:
            self.active -= 1
            if self._ready:
                self._wake()

    def _next(self) -> list[Job]:
        if self._at_once > 1:
            return [self._ready.popleft() for _ in range(min(self._at_once, len(self._ready)))]
        if not self.gate.state.probing:
            return [self._ready.popleft()]
        # The command that has failed most is the least likely to find out that the destination is well.
        probe = min(self._ready, key=lambda job: job.claim.attempts)
        self._ready.remove(probe)
        return [probe]

    def _admitted(self) -> bool:
        """Ask breaker and rate limit; if they refuse, ask again when they may admit. Waiting costs no attempt."""
        if self.gate.clear or not (wait_us := self.gate.wait_us()):
            return True
        if self.gate.fails_fast:
            self._refuse()
        if self._ready:
            self._wake_in(wait_us)
        return False

    def _refuse(self) -> None:
        """Give up what is not to wait for the breaker. A compensation is: what it undoes has been done."""
        if not self.gate.fails_fast or not self.gate.is_open:
            return
        for job in self.take_back():
            if undone_by(job.claim) is None:
                self._failed(job, self.gate.refusal(job.claim.attempts))
            else:
                self._ready.append(job)
        self._has_capacity()

    def _wake_in(self, wait_us: int) -> None:
        async def later() -> None:
            await self._runtime.clock.sleep(max(wait_us, 1_000) / MICROSECONDS)
            self._waker = None
            self._wake()

        if self._waker is None:
            self._waker = self._runtime.spawn(later(), "mainspring-breaker")

    def _rest_is_over(self) -> None:
        if self._waker is not None:
            self._waker.cancel()
            self._waker = None

    async def _attempt(self, task: asyncio.Task[Any], jobs: list[Job]) -> None:
        """Make an attempt. Whatever happens, each job ends as succeeded, failed or dropped, or its worker stops."""
        self.running[task] = jobs
        begun_us = started_us = self._now_us()
        ended_us: int | None = None
        options, flips = self.handler.options, self.gate.state.flips
        for job in jobs:
            job.flips = flips
        try:
            if options.idempotency_key is not None:
                jobs = self.running[task] = [job for job in jobs if not await self._answered(task, job)]
                started_us = self._now_us()
            if jobs and options.transaction is not None:
                call = self._call_in_transaction(jobs[0])
                await (call if self._observer is None else self._observed(task, jobs, call))
            elif jobs:
                call = self._call(jobs, started_us)
                result = await (call if self._observer is None else self._observed(task, jobs, call))
                ended_us = self._now_us()
                self._report_success(jobs, result, ended_us)
        except asyncio.CancelledError:
            self._ended_by_cancellation(task, jobs)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a handler may fail in any way
            if isinstance(error, GeneratorExit) and not _is_current(task):
                raise  # the handler did not raise it: the task itself is being closed
            self._report_failure(jobs, as_exception(self.handler, error))
        finally:
            del self.running[task]
            if task in self._overdue or task in self._cancelled:
                # Also when the handler swallowed it: the task continues with other commands, which were not cancelled.
                while task.cancelling():
                    task.uncancel()
                self._overdue.discard(task)
                self._cancelled.discard(task)
            self.prefetch.measured((self._now_us() if ended_us is None else ended_us) - begun_us)
            if self.gate.state.probing and self.gate.ended(flips):
                self._rest_is_over()
                self._wake()
            self._has_capacity()

    def _has_capacity(self) -> None:
        # Half of it, so that not every command that ends costs a claim.
        if self.turned_away and 2 * self.in_hand <= self.prefetch.most:
            self.turned_away = False
            self._on_capacity()

    def _ended_by_cancellation(self, task: asyncio.Task[Any], jobs: list[Job]) -> None:
        """Report why an attempt was cancelled: its instance was, its time is up, the worker stops, or by itself."""
        if task in self._cancelled:
            self._ends.dropped(self.handler, jobs[0])
        elif task in self._overdue:
            limit = self.handler.options.transaction or self.handler.options.timeout
            self._report_failure(jobs, TimeoutError(f"{self.handler.name} took longer than {limit}"))
        elif task.cancelling():
            raise asyncio.CancelledError
        else:
            self._report_failure(jobs, RuntimeError(f"{self.handler.name} raised CancelledError by itself"))

    async def _answered(self, task: asyncio.Task[Any], job: Job) -> bool:
        """Return True if a command has its end without a call: its result is remembered, or cannot be looked up."""
        try:
            known, result = await self._ends.remembered(self.handler, job)
        except asyncio.CancelledError:
            if task.cancelling():
                raise
            self._failed(job, RuntimeError("the look-up of its business key was cancelled"))
            return True
        except Exception as error:  # noqa: BLE001  the author's key function, or the store
            self._failed(job, error)
            return True
        if known:
            self._succeeded(job, result, 0)
        return known

    def _observed(self, task: asyncio.Task[Any], jobs: list[Job], call: Awaitable[Any]) -> Awaitable[Any]:
        assert self._observer is not None  # noqa: S101  it was asked for
        return self._observer.around(self.handler.name, jobs, call, lambda: task in self._overdue)

    async def _call(self, jobs: list[Job], now_us: int) -> Any:
        handler = self.handler
        for job in jobs:
            self._begin(job, now_us)
        message = jobs[0].message if handler.options.batch is None else [job.message for job in jobs]
        if handler.is_async:
            return await handler.call(message, jobs[0].context)

        def begin() -> None:
            # All threads or processes may be taken by then: waiting for one is no part of the attempt.
            begun_us = self._now_us()
            for job in jobs:
                self._start_time(job, begun_us)

        observer, called = self._observer, handler.function
        if handler.in_process:
            apart = handler.apart
            if apart is not None:
                called, message = apart.function, apart.given(message)
            called = called if observer is None else observer.in_process(called, handler.name, jobs[0])
            result = await self._runtime.in_process(called, message, begin)
            return result if apart is None else apart.result(result)
        function = handler.bind(message, jobs[0].context)

        def begin_and_call() -> Any:
            begin()
            return function()

        return await self._runtime.in_thread(
            begin_and_call if observer is None else observer.in_thread(begin_and_call), handler.name
        )

    async def _call_in_transaction(self, job: Job) -> None:
        loan = await self._ends.lend(self.handler)
        try:
            self._begin(job, self._now_us(), loan.connection)
            result = await self.handler.call(job.message, job.context)
            # Its end is being recorded: that is never stopped for its timeout, or in the middle.
            job.deadline_us = NEVER_US
            duration_us = self._now_us() - job.started_us
            self._went_well(job)
            await unbroken(self._ends.succeeded_in(loan, self.handler, job, result, duration_us))
        finally:
            await unbroken(loan.roll_back())

    def _begin(self, job: Job, now_us: int, connection: Connection | None = None) -> None:
        job.started_us = now_us
        if self.handler.is_async:
            self._start_time(job, now_us)
        if self.handler.wants_context:
            job.context = Context(
                idempotency_key=job.id,
                attempt=job.claim.attempts + 1,
                instance=str(job.ref),
                envelope=envelope_of(job),
                resources=self._resources,
                beat=lambda: self._beat(job),
                connection=connection,
                in_thread=self._in_thread,
            )

    async def _in_thread(self, function: Callable[[], Any]) -> Any:
        call = function if self._observer is None else self._observer.in_thread(function)
        return await self._runtime.in_thread(call, self.handler.name)

    def _start_time(self, job: Job, now_us: int) -> None:
        job.started_us = now_us
        job.deadline_us = now_us + self.handler.timeout_us

    def _beat(self, job: Job) -> None:
        if self.handler.options.transaction is not None:
            return  # others wait for a transaction: it gets no more time than it was promised
        job.deadline_us = self._now_us() + self.handler.timeout_us

    def _report_success(self, jobs: list[Job], result: Any, now_us: int) -> None:
        if self.handler.options.batch is None:
            self._went_well(jobs[0])
            self._succeeded(jobs[0], result, now_us - jobs[0].started_us)
            return
        results = self.handler.results(result, len(jobs))
        if all(isinstance(each, Exception) for each in results):
            self._went_badly(jobs[0], ExceptionGroup("a batch", results))
        else:
            self._went_well(jobs[0])
        for job, each in zip(jobs, results, strict=True):
            if isinstance(each, Exception):
                self._failed(job, each)
            else:
                self._succeeded(job, each, now_us - job.started_us)

    def _went_well(self, job: Job) -> None:
        if not self.gate.clear and self.gate.succeeded(job.flips):
            self._rest_is_over()
            self._wake()

    def _went_badly(self, job: Job, error: Exception) -> None:
        if self.gate.failed(error, job.flips):
            self._rest_is_over()
            self._wake()

    def _report_failure(self, jobs: list[Job], error: Exception) -> None:
        if jobs:
            self._went_badly(jobs[0], error)
        for job in jobs:
            job.shared = len(jobs) > 1
            self._failed(job, error)

    def _succeeded(self, job: Job, result: Any, duration_us: int) -> None:
        try:
            self._ends.succeeded(self.handler, job, result, duration_us)
        except Exception as error:  # noqa: BLE001  a result may be anything, and so may go wrong in any way
            self._failed(job, error)

    def _failed(self, job: Job, error: Exception) -> None:
        try:
            self._ends.failed(self.handler, job, error)
        except Exception:
            log.exception("%s failed, and its error cannot be recorded", job.id)
            plain = RuntimeError(f"{type(error).__name__}, which cannot be shown")
            self._ends.failed(self.handler, job, plain)


def _places(handler: Handler, runtime: Runtime) -> int:
    """Return how many calls of a handler there can be at once, whatever it allows itself."""
    if handler.is_async:
        return handler.options.concurrency
    return runtime.processes if handler.in_process else HANDLER_THREADS


def _is_current(task: asyncio.Task[Any]) -> bool:
    try:
        return asyncio.current_task() is task
    except RuntimeError:  # no loop runs
        return False
