"""Intake: messages from outside become inputs, and are handed to the stepper.

Each gets an id, a context and the instance that it is for; no more are under way at a time than memory should hold.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, TypedDict, Unpack

from mainspring.core.messages import Kind
from mainspring.engine.committing.committer import Committer
from mainspring.engine.inputs.outside_rule import check_outside
from mainspring.engine.inputs.pending import Answer, Inputs, Pending, ReceiptStatus
from mainspring.engine.inputs.publication import PUBLICATION
from mainspring.engine.inputs.refusals import precondition
from mainspring.engine.inputs.senders import checked_actor, checked_message_id
from mainspring.engine.registry import Registry, WorkflowEntry
from mainspring.engine.runtime import Runtime
from mainspring.errors import OperationError, WiringError, shown
from mainspring.port.records import Context, Ref
from mainspring.port.store import Store

INPUTS_IN_FLIGHT: Final = 10_000
# Of those that are sent together: then others get a turn of the event loop.
INPUTS_PER_TURN: Final = 100
# While a commit is under way. Its thread gives up the interpreter lock at each statement, and beside a loop that never
# rests it would wait a whole switch interval to get it back, every time.
REST_SECONDS: Final = 0.001


class AboutSent(TypedDict, total=False):
    """What may be said of a message that is sent, besides the message."""

    id: str | None
    actor: str | None
    correlation_id: str | None
    must_exist: bool
    expected_position: int | None
    workflow: str | type[Any] | None
    outside: bool


class Envelopes:
    """Makes inputs of messages from outside. It needs no store: a process that only posts has none open."""

    def __init__(self, registry: Registry, runtime: Runtime, now_us: Callable[[], int]) -> None:
        self._registry = registry
        self._runtime = runtime
        self._now_us = now_us
        self._observer = runtime.observer

    def envelop(
        self,
        message: Any,
        entry: WorkflowEntry,
        *,
        id: str | None = None,
        kind: Kind = Kind.COMMAND,
        actor: str | None = None,
        correlation_id: str | None = None,
        reply_to: str | None = None,
        instance: str | None = None,
        trace: str | None = None,
        outside: bool = False,
    ) -> Pending | None:
        """Return a message as an input of a workflow's instance; None if its route skips it.

        `trace` is what it carries from where it comes from, as `mainspring.telemetry.w3c` writes it. `outside` says
        that it is not the app's own code that sends it: see `mainspring.engine.inputs.outside_rule`.
        """
        instance = entry.route(message) if instance is None else instance
        if instance is None:
            return None
        if actor is not None:
            checked_actor(actor)
        if correlation_id is not None:
            checked_message_id(correlation_id, "Correlation id")
        encoded = self._registry.codec.encode(message)
        message_id = self._runtime.new_id() if id is None else checked_message_id(id)
        pending = Pending(
            Ref(entry.name, instance),
            message,
            encoded.name,
            encoded.version,
            encoded.body,
            message_id,
            kind,
            Context(correlation_id or message_id, None, None, reply_to, trace, outside=outside),
            self._now_us(),
            actor=actor,
            answer=Answer(),
        )
        if self._observer is not None:
            self._observer.sending(pending)
        return pending

    def handed_over(self, pendings: list[Pending]) -> None:
        """Note that no caller here waits for inputs: they are part of a caller's transaction, and taken in later."""
        if self._observer is not None:
            for pending in pendings:
                self._observer.handed_over(pending)

    def taker(self, message: Any, workflow: str | type[Any] | None = None) -> WorkflowEntry:
        """Return the one workflow that a sent message goes to: the one that is named, where several take it."""
        takers = self._registry.takers(message)
        name = type(message).__name__
        if workflow is not None:
            return _named(takers, name, workflow)
        if not takers:
            known = ", ".join(self._registry.workflows) or "none"
            raise WiringError(
                f"No workflow takes {name}", f"Add a workflow that has it among its inputs; this app knows {known}."
            )
        if len(takers) > 1:
            raise WiringError(
                f"{name} is taken by several workflows: {', '.join(entry.name for entry in takers)}",
                "Name the one that is meant, as in workflow=…; or publish it, so that each of them gets it.",
            )
        return takers[0]

    def sent(
        self,
        message: Any,
        *,
        id: str | None = None,
        actor: str | None = None,
        correlation_id: str | None = None,
        reply_to: str | None = None,
        must_exist: bool = False,
        expected_position: int | None = None,
        workflow: str | type[Any] | None = None,
        outside: bool = False,
    ) -> Pending:
        """Return a sent message as the input of the one workflow that takes it, or of the one that is named."""
        taker = self.taker(message, workflow)
        if outside:
            check_outside((taker,), message)
        pending = self.envelop(
            message,
            taker,
            id=id,
            actor=actor,
            correlation_id=correlation_id,
            reply_to=reply_to,
            outside=outside,
        )
        if pending is None:
            raise OperationError(type(message).__name__, "was skipped: route returned None", "Send it elsewhere.")
        if must_exist or expected_position is not None:
            pending.requires = precondition(must_exist=must_exist, expected_position=expected_position)
        return pending

    def published(
        self,
        message: Any,
        *,
        id: str | None = None,
        actor: str | None = None,
        correlation_id: str | None = None,
        outside: bool = False,
    ) -> list[Pending]:
        """Return a published message as inputs of all that want it.

        Where functions are among them, it is the one input of the publication that brings it to everybody.
        """
        own = self._runtime.new_id() if id is None else checked_message_id(id)
        registry = self._registry
        if outside:
            check_outside(registry.takers(message), message)
        if registry.has_subscribers(message):
            registry.add_publication()
            takers, instance = [registry.workflows[PUBLICATION]], own
        else:
            takers, instance = registry.takers(message), None
        found = (
            self.envelop(
                message,
                taker,
                id=own,
                kind=Kind.EVENT,
                actor=actor,
                correlation_id=correlation_id,
                instance=instance,
                outside=outside,
            )
            for taker in takers
        )
        return [pending for pending in found if pending is not None]


class Intake(Envelopes):
    """Makes inputs of messages and hands them to the stepper, no more at a time than memory should hold."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        runtime: Runtime,
        committer: Committer,
        inputs: Inputs,
    ) -> None:
        super().__init__(registry, runtime, store.now_us)
        self._committer = committer
        self._inputs = inputs
        self._in_flight = 0
        self._at_the_door: deque[asyncio.Future[None]] = deque()
        self._awaited: set[Answer] = set()

    async def take_place(self) -> None:
        """Take a place for one more input in flight. Senders that wait for one get it in the order of arrival."""
        if self._in_flight < INPUTS_IN_FLIGHT:
            self._in_flight += 1
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._at_the_door.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if not place.cancelled():
                self.leave()  # it was given the place and cannot use it any more
            raise

    def leave(self) -> None:
        """Give a place to the next sender in the queue. Only that one is woken: the others would find no place."""
        while self._at_the_door:
            place = self._at_the_door.popleft()
            if not place.done():
                place.set_result(None)
                return
        self._in_flight -= 1

    async def rest(self) -> None:
        """Let others have a turn, and the store's thread the time for a few statements if it is committing."""
        await asyncio.sleep(0 if self._committer.idle else REST_SECONDS)

    async def send(self, message: Any, **about: Unpack[AboutSent]) -> Pending:
        """Send a message to the one workflow that takes it, or that is named. Return it when it is durable."""
        pending = self.sent(message, **about)
        await self.answered(pending)
        return pending

    async def answered(self, pending: Pending) -> ReceiptStatus:
        """Submit an input and wait until it is durable. Return what became of it."""
        if self._in_flight < INPUTS_IN_FLIGHT:
            self._in_flight += 1
        else:
            await self.take_place()
        answer = self._enter(pending)
        try:
            return await answer.wait()
        finally:
            self._left(answer)

    async def all_answered(self, pendings: Sequence[Pending]) -> None:
        """Submit inputs and wait until each is durable or failed; then raise the first failure."""
        first: Exception | None = None

        def note(became: ReceiptStatus | Exception) -> None:
            nonlocal first
            if first is None and isinstance(became, Exception):
                first = became

        await self._answers(pendings, note)
        if first is not None:
            raise first

    async def each_answered(self, pendings: Sequence[Pending]) -> list[ReceiptStatus | Exception]:
        """Submit inputs in their order and wait until each is durable. Return what became of each, or why it failed."""
        each: list[ReceiptStatus | Exception] = []
        await self._answers(pendings, each.append)
        return each

    async def _answers(self, pendings: Sequence[Pending], take: Callable[[ReceiptStatus | Exception], None]) -> None:
        """Submit inputs in their order, and pass on what became of each: no more are kept than are in flight."""
        entered: deque[Answer] = deque()
        try:
            for number, pending in enumerate(pendings, 1):
                # A sender that waited for a place while it holds places could deadlock with itself.
                while entered and self._in_flight >= INPUTS_IN_FLIGHT:
                    take(await self._became(entered.popleft()))
                if self._in_flight < INPUTS_IN_FLIGHT:
                    self._in_flight += 1
                else:
                    await self.take_place()
                entered.append(self._enter(pending))
                if number % INPUTS_PER_TURN == 0:
                    await self.rest()
            while entered:
                take(await self._became(entered.popleft()))
        finally:
            for answer in entered:
                self._left(answer)

    def give_up(self, error: Exception) -> None:
        """Fail all callers that wait for what becomes of an input: the answer will not come here."""
        for answer in self._awaited:
            if answer.status == "pending" and answer.error is None:
                answer.fail(error)

    async def _became(self, answer: Answer) -> ReceiptStatus | Exception:
        try:
            return await answer.wait()
        except Exception as error:  # noqa: BLE001  it is what became of the input
            return error
        finally:
            self._left(answer)

    def _enter(self, pending: Pending) -> Answer:
        answer = pending.answer = pending.answer or Answer()
        try:
            self._inputs.submit(pending)
        except BaseException:
            self.leave()
            raise
        self._awaited.add(answer)
        return answer

    def _left(self, answer: Answer) -> None:
        """Wait no longer for an input that was handed over."""
        self._awaited.discard(answer)
        self.leave()
        if self._observer is not None:
            self._observer.sent(answer)


def _named(takers: list[WorkflowEntry], message: str, workflow: str | type[Any]) -> WorkflowEntry:
    """Return the one of several workflows that has a name, or whose class it is, in whatever version."""
    for entry in takers:
        if workflow == entry.name or any(type(version.workflow) is workflow for version in entry.versions):
            return entry
    name = workflow.__name__ if isinstance(workflow, type) else shown(workflow, 80)
    known = ", ".join(entry.name for entry in takers)
    raise WiringError(
        f"No workflow {name} takes {message}",
        f"It is taken by {known}." if known else "No workflow of this app takes it at all.",
    )
