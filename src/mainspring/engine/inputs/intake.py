"""Intake: inputs from outside, handed to the stepper, no more at a time than memory should hold."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, Unpack

from mainspring.engine.committing.committer import Committer
from mainspring.engine.inputs.envelopes import AboutSent, Envelopes
from mainspring.engine.inputs.pending import Answer, Inputs, Pending, ReceiptStatus
from mainspring.engine.registry import Registry
from mainspring.engine.runtime import Runtime
from mainspring.port.store import Store

INPUTS_IN_FLIGHT: Final = 10_000
# Of those that are sent together: then others get a turn of the event loop.
INPUTS_PER_TURN: Final = 100
# While a commit is under way. Its thread gives up the interpreter lock at each statement, and beside a loop that never
# rests it would wait a whole switch interval to get it back, every time.
REST_SECONDS: Final = 0.001


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
