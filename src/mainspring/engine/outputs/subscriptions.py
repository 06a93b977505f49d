"""Publishing: one message to none or many, workflows and functions alike."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Iterator
from typing import Any, Final, cast

from msgspec import Struct

from mainspring.core.messages import Kind, type_of
from mainspring.engine.handlers.handler import Context, Handler
from mainspring.engine.handlers.job import MICROSECONDS, Job, as_exception, envelope_of
from mainspring.engine.handlers.policies.checks import microseconds
from mainspring.engine.handlers.runners import Runners
from mainspring.engine.inputs.delivered_output import input_of
from mainspring.engine.inputs.pending import NEVER_US, Inputs
from mainspring.engine.outputs.settlements import Settlements
from mainspring.engine.recording.error_text import error_text
from mainspring.engine.registry import Registry
from mainspring.engine.runtime import Runtime
from mainspring.logs import logger
from mainspring.port.records import OutputClaim, OutputKey, Ref, Remembered
from mainspring.port.store import Store

PUBLICATIONS_AT_ONCE: Final = 100
HELD_US: Final = 10 * MICROSECONDS
"""How long a message waits whose subscriber is held back. Waiting costs no attempt."""

log = logger("mainspring.engine")


class Publication(Struct, eq=False):
    """A published message on its way to its subscribers."""

    job: Job
    targets: list[Ref]
    subscribers: list[Handler]
    context: Context | None = None
    deadline_us: int = NEVER_US
    overdue: bool = False


class Subscriptions:
    """Brings published messages to workflows and subscribers.

    All workflows that take the message get it in one commit, which settles the output. Functions are called before
    that; one that was successful is remembered, and left out when another one failed and all are retried. As long
    as one of those that failed wants another attempt, there is one; when all have given up, the message is buried.
    """

    def __init__(
        self,
        store: Store,
        registry: Registry,
        runtime: Runtime,
        inputs: Inputs,
        settlements: Settlements,
        runners: Runners,
    ) -> None:
        self._store = store
        self._registry = registry
        self._runtime = runtime
        self._observer = runtime.observer
        self._inputs = inputs
        self._settlements = settlements
        self._runners = runners
        self._waiting: deque[Publication] = deque()
        self._running: dict[asyncio.Task[None], Publication] = {}
        self.closing = False

    @property
    def running(self) -> int:
        """How many publications have their subscribers called now."""
        return len(self._running)

    @property
    def waiting(self) -> int:
        """How many publications wait for their turn."""
        return len(self._waiting)

    def outputs_in_hand(self) -> set[OutputKey]:
        """Return the publications that are here, waiting and running."""
        return {each.job.claim.output for each in (*self._waiting, *self._running.values())}

    def attempts(self) -> Iterator[tuple[asyncio.Task[None], str, int]]:
        """Return the publications whose subscribers are called now: task, name, and when its time is up."""
        for task, publication in self._running.items():
            names = ", ".join(handler.name for handler in publication.subscribers)
            yield task, names, publication.deadline_us

    def close(self) -> None:
        """Begin no more. What waits is forgotten here: its rows go back with the worker's."""
        self.closing = True
        self._waiting.clear()

    def cancel_all(self) -> None:
        """End what still runs; it will be redelivered."""
        for task in list(self._running):
            task.cancel()

    def stop_overdue(self, now_us: int) -> None:
        """End calls of subscribers that have timed out."""
        for task, publication in list(self._running.items()):
            if publication.deadline_us <= now_us and not publication.overdue:
                publication.overdue = True
                if publication.context is not None:
                    publication.context.cancelled = True
                task.cancel()

    def publish(self, claim: OutputClaim, message: Any) -> None:
        """Begin to deliver a message to all that want it."""
        try:
            targets = self._targets(message)
        except Exception as error:  # noqa: BLE001  an author's route may fail in any way
            self._settlements.bury(claim, "a workflow could not route it", error)
            return
        subscribers = self._registry.subscribers.get(type_of(cast("Any", type(message))).name, [])
        if subscribers:
            if not self.closing:
                self._waiting.append(Publication(Job(claim, message), targets, subscribers))
                self._start()
        elif len(targets) == 1:
            self._inputs.submit(input_of(claim, message, targets[0], Kind.EVENT, self._store.now_us()))
        else:
            self._settle(claim, message, targets, ())

    def _start(self) -> None:
        while self._waiting and len(self._running) < PUBLICATIONS_AT_ONCE:
            publication = self._waiting.popleft()
            task = self._runtime.spawn(self._tell(publication), "mainspring-publish")
            self._running[task] = publication
            self._runners.busy.set()
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._running[task]
        self._start()

    def _targets(self, message: Any) -> list[Ref]:
        routed = [(entry.name, entry.route(message)) for entry in self._registry.takers(message)]
        return [Ref(name, id) for name, id in routed if id is not None]

    def _settle(self, claim: OutputClaim, message: Any, targets: list[Ref], told: tuple[Remembered, ...]) -> None:
        now_us = self._store.now_us()
        inputs = [input_of(claim, message, ref, Kind.EVENT, now_us) for ref in targets]
        self._settlements.settle(claim, tuple(pending.input_row(claimed=True) for pending in inputs), told)

    async def _tell(self, publication: Publication) -> None:
        """Call the subscribers. Whatever happens, the message is settled, retried or buried."""
        job, began_us = publication.job, self._store.now_us()
        try:
            failures: list[tuple[Handler, Exception]] = []
            held_back = ""
            for handler in publication.subscribers:
                if self._runtime.hung.holds_back(handler.name):
                    held_back = handler.name
                    continue
                error = await self._tell_one(handler, publication)
                if error is not None:
                    failures.append((handler, error))
            if held_back:
                attempts = job.claim.attempts + bool(failures)
                self._settlements.retry(job.claim, attempts, HELD_US, f"too many calls of {held_back} hang", began_us)
            elif failures:
                self._again_or_bury(job.claim, failures, began_us)
            else:
                self._settle(job.claim, job.message, publication.targets, ())
        except Exception as error:
            log.exception("%s cannot be brought to its subscribers", job.id)
            self._settlements.bury(job.claim, "it cannot be brought to its subscribers", error)

    async def _tell_one(self, handler: Handler, publication: Publication) -> Exception | None:
        """Call one subscriber, unless it has succeeded already. Return why it failed."""
        # With one subscriber there is no other to be left out.
        several = len(publication.subscribers) > 1
        key = f"told:{publication.job.id}:{handler.name}"
        try:
            if several and await self._store.remembered(key) is not None:
                return None
            call = self._call(handler, publication)
            await (call if self._observer is None else self._observed(handler, publication.job, call))
            if several:
                await self._settlements.remember(self._told(key))
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return RuntimeError(f"{handler.name} raised CancelledError by itself")
        except (KeyboardInterrupt, GeneratorExit):
            raise  # the process is being stopped, or the task itself is being closed
        except BaseException as error:  # noqa: BLE001  a subscriber may fail in any way, and so may the store
            return as_exception(handler, error)
        return None

    async def _observed(self, handler: Handler, job: Job, call: Awaitable[None]) -> None:
        assert self._observer is not None  # noqa: S101  it was asked for
        job.started_us = self._store.now_us()
        end = "failed"
        try:
            await self._observer.around(handler.name, [job], call, lambda: False)
            end = "succeeded"
        finally:
            self._observer.attempted(handler.name, job, end, self._store.now_us())

    def _again_or_bury(self, claim: OutputClaim, failures: list[tuple[Handler, Exception]], began_us: int) -> None:
        attempts = claim.attempts + 1
        for handler, error in failures:
            if handler.options.retry.wants_another(error, attempts):
                delay_us = microseconds(handler.options.retry.wait(error, attempts, self._runtime.random()))
                self._settlements.retry(claim, attempts, delay_us, f"{handler.name}: {error_text(error)}", began_us)
                return
        last, error = failures[0]
        self._settlements.tried(claim, attempts, began_us, f"{last.name}: {error_text(error)}")
        names = ", ".join(handler.name for handler, _ in failures)
        self._settlements.bury(claim, f"{names} gave up", failures[0][1])

    async def _call(self, handler: Handler, publication: Publication) -> None:
        """Call a subscriber; one that takes too long ends with a TimeoutError."""
        job = publication.job

        def start_time() -> None:
            publication.deadline_us = self._store.now_us() + handler.timeout_us

        context = publication.context = Context(
            idempotency_key=f"{job.id}/{handler.name}",
            attempt=job.claim.attempts + 1,
            instance=str(job.ref),
            envelope=envelope_of(job),
            resources=self._runners.resources,
            beat=start_time,
        )
        function = handler.bind(job.message, context)

        def begin_and_call() -> None:
            # All threads may be taken by then: waiting for one is no part of the call.
            start_time()
            function()

        try:
            if handler.is_async:
                start_time()
                await handler.call(job.message, context)
            else:
                call = begin_and_call if self._observer is None else self._observer.in_thread(begin_and_call)
                await self._runtime.in_thread(call, handler.name)
        except asyncio.CancelledError:
            if not publication.overdue:
                raise
            raise TimeoutError(f"{handler.name} took longer than {handler.options.timeout}") from None
        finally:
            publication.deadline_us = NEVER_US
            self._forget_cancellation(publication)

    def _forget_cancellation(self, publication: Publication) -> None:
        """Let the next subscriber begin anew, even after one that swallowed its cancellation."""
        task = asyncio.current_task()
        if publication.overdue and task is not None:
            publication.overdue = False
            # One is for the time that was up; any more are the worker's, which stops.
            task.uncancel()

    def _told(self, key: str) -> Remembered:
        day_us = 24 * 3600 * MICROSECONDS
        return Remembered(key, None, 1, b"null", self._store.now_us() + day_us)
