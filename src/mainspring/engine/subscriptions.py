"""Publishing: one message to none or many, workflows and functions alike."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from mainspring.core.messages import Kind
from mainspring.core.route import route
from mainspring.engine.handlers import Context, Handler
from mainspring.engine.intake import Intake
from mainspring.engine.pending import input_of
from mainspring.engine.registry import Registry
from mainspring.engine.runners import MICROSECONDS, Job, envelope_of
from mainspring.engine.runtime import Runtime
from mainspring.engine.units import error_text
from mainspring.port.records import OutputClaim, OutputKey, Ref, Remembered
from mainspring.port.store import Store

if TYPE_CHECKING:
    from mainspring.engine.dispatch import Dispatcher

log = logging.getLogger("mainspring.engine")


class Subscriptions:
    """Brings published messages to workflows and subscribers.

    All workflows that take the message get it in one commit, which settles the output. Functions are called before
    that; one that was successful is remembered, and left out when another one failed and all are tried again.
    """

    def __init__(
        self, store: Store, registry: Registry, intake: Intake, runtime: Runtime, dispatcher: Dispatcher
    ) -> None:
        self._store = store
        self._registry = registry
        self._intake = intake
        self._runtime = runtime
        self._dispatcher = dispatcher
        self._running: set[asyncio.Task[None]] = set()
        self._in_hand: set[OutputKey] = set()

    @property
    def running(self) -> int:
        """How many publications wait for their subscribers."""
        return len(self._running)

    def outputs_in_hand(self) -> set[OutputKey]:
        """Return the publications that wait for their subscribers here."""
        return set(self._in_hand)

    def publish(self, claim: OutputClaim, message: Any) -> None:
        """Begin to bring a message to all who want it."""
        try:
            targets = self._targets(message)
        except Exception as error:  # noqa: BLE001  an author's route may fail in any way
            self._dispatcher.bury(claim, "a workflow could not route it", error)
            return
        subscribers = self._registry.subscribers.get(claim.type, [])
        if subscribers:
            task = self._runtime.spawn(self._tell(claim, message, targets, subscribers), "mainspring-publish")
            self._running.add(task)
            task.add_done_callback(self._running.discard)
            self._in_hand.add(claim.output)
            task.add_done_callback(lambda _: self._in_hand.discard(claim.output))
        elif len(targets) == 1:
            self._intake.submit(input_of(claim, message, targets[0], Kind.EVENT, self._store.now_us()))
        else:
            self._settle(claim, message, targets, ())

    def _targets(self, message: Any) -> list[Ref]:
        routed = [(entry.name, route(entry.workflow, message)) for entry in self._registry.takers(message)]
        return [Ref(name, id) for name, id in routed if id is not None]

    def _settle(self, claim: OutputClaim, message: Any, targets: list[Ref], told: tuple[Remembered, ...]) -> None:
        now_us = self._store.now_us()
        inputs = [input_of(claim, message, ref, Kind.EVENT, now_us) for ref in targets]
        self._dispatcher.settle(claim, tuple(pending.input_row(claimed=True) for pending in inputs), told)

    async def _tell(self, claim: OutputClaim, message: Any, targets: list[Ref], subscribers: list[Handler]) -> None:
        job = Job(claim, message)
        failures: list[tuple[Handler, Exception]] = []
        for handler in subscribers:
            key = f"told:{job.id}:{handler.name}"
            # With one subscriber there is nobody to be left out.
            if len(subscribers) > 1 and await self._store.remembered(key) is not None:
                continue
            try:
                await self._call(handler, job)
            except Exception as error:  # noqa: BLE001  a subscriber may fail in any way
                failures.append((handler, error))
            else:
                if len(subscribers) > 1:
                    await self._dispatcher.remember(self._told(key))
        if not failures:
            self._settle(claim, message, targets, ())
            return
        handler, error = failures[0]
        attempts = claim.attempts + 1
        if handler.options.retry.wants_another(error, attempts):
            delay_us = handler.options.retry.delay_us(attempts, self._runtime.random())
            self._dispatcher.retry(claim, attempts, delay_us, f"{handler.name}: {error_text(error)}")
        else:
            self._dispatcher.bury(claim, f"{handler.name} gave up", error)

    async def _call(self, handler: Handler, job: Job) -> None:
        context = Context(
            idempotency_key=f"{job.id}/{handler.name}",
            attempt=job.claim.attempts + 1,
            instance=str(job.ref),
            envelope=envelope_of(job),
            resources=self._dispatcher.resources,
            beat=lambda: None,
        )
        async with asyncio.timeout(handler.options.timeout.total_seconds()):
            if handler.is_async:
                await handler.call(job.message, context)
            else:
                await self._runtime.in_thread(handler.bind(job.message, context))

    def _told(self, key: str) -> Remembered:
        day_us = 24 * 3600 * MICROSECONDS
        return Remembered(key, None, 1, b"null", self._store.now_us() + day_us)
