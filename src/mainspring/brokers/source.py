"""Sources: the way in. Consumed, accepted durably, acknowledged; never the other way round.

Deliveries are taken in batches, in their order: their messages are submitted together, so that they share commits, and
are acknowledged when every one of them is durable, known already, or kept as a dead letter with its bytes. While the
store is in trouble nothing is acknowledged and nothing more is read. Whatever happens in between, the broker delivers
again, and what was accepted before is recognised by its id.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, json

from mainspring.app.answers import id_of_arrival
from mainspring.app.arrivals import Arrival, Arrivals
from mainspring.app.given import checked_reason
from mainspring.app.internals import internals_of
from mainspring.app.services import SourceFigures, SourceState
from mainspring.app.undelivered import keep_undelivered, undelivered_in
from mainspring.brokers.port import PREFETCH, WAIT_SECONDS, Broker, Delivery, Subscription
from mainspring.brokers.wire import id_of_unread, incoming, kept_headers, own_id
from mainspring.codec.wire import WireEnvelope
from mainspring.engine.inputs.intake import INPUTS_PER_TURN
from mainspring.engine.inputs.pending import TROUBLE, Pending, ReceiptStatus
from mainspring.engine.inputs.senders import checked_actor
from mainspring.errors import (
    CodecError,
    DuplicateIdError,
    InvalidIdError,
    NewerSchemaError,
    NotFromOutsideError,
    OperationError,
    RouteError,
    StoreClosedError,
    WiringError,
    told,
)
from mainspring.logs import Quoted, logger
from mainspring.port.records import DeadLetter, Remembered, Unit

if TYPE_CHECKING:
    from mainspring.app.app import Mainspring

BATCH: Final = 500
# While deliveries cannot be accepted yet, their deadline is extended so often at the broker.
EXTEND_SECONDS: Final = 3.0
# How soon a pause is noticed that another process asked for.
LOOK_SECONDS: Final = 2.0
FIRST_BACKOFF_SECONDS: Final = 0.2
LONGEST_BACKOFF_SECONDS: Final = 30.0
PAUSE_AFTER_STORE_ERROR_SECONDS: Final = 1.0
# A message that no store could keep is tried so often before it is taken for undeliverable.
FAULT_ATTEMPTS: Final = 3
# How long a batch that is under way may take at the end, and then the leaving: together less than a service may take.
STOP_SECONDS: Final = 8.0
LEAVE_SECONDS: Final = 6.0
LAG_SECONDS: Final = 5.0
PAUSED_US: Final = 100 * 365 * 24 * 3_600 * 1_000_000

_REASONS: Final[tuple[tuple[type[Exception], str], ...]] = (
    (CodecError, "it cannot be read"),
    (WiringError, "nothing here takes it"),
    (NotFromOutsideError, "its workflow does not take it from outside"),
    (RouteError, "its workflow could not route it"),
    (InvalidIdError, "its id, or its instance's, cannot be stored"),
    (DuplicateIdError, "its id was used before, for another message"),
)

log = logger("mainspring.brokers")


class SourceOptions(Struct, frozen=True, kw_only=True):
    """What a source takes, and how. `bare_type` is the type of messages that do not say theirs."""

    group: str
    types: frozenset[str] | None = None
    bare_type: str | None = None
    prefetch: int = PREFETCH
    reply_to: str | None = None


class _Refusal(Struct, frozen=True):
    """Why a delivery could not become a message: it is kept as it came."""

    id: str
    type: str | None
    error: Exception
    anew: bool
    """It has no name, and came for the first time: one with the same bytes was another message."""


class BrokerSource:
    """Takes what comes to one endpoint. At most one task uses it."""

    def __init__(
        self,
        app: Mainspring,
        name: str,
        broker: Broker,
        broker_name: str,
        address: str,
        options: SourceOptions,
        asking: Counter[str],
    ) -> None:
        self.name = name
        self.options = options
        self._app = app
        self._broker = broker
        self._broker_name = broker_name
        self._address = address
        # How many ask each broker for a lag now, in all sources.
        self._asking = asking
        self._arrivals: Arrivals | None = None
        self._state: SourceState = "stopped"
        self._error: str | None = None
        self._counts = {"received": 0, "accepted": 0, "duplicates": 0, "skipped": 0, "undelivered": 0}
        self._task: asyncio.Task[None] | None = None
        self._ending = False
        # Set when it is to interrupt its wait: to stop, or because it was paused or resumed.
        self._called = asyncio.Event()
        self._paused = False
        self._look_at = 0.0
        self._failures = 0

    # ---- life

    def start(self) -> None:
        """Start consuming."""
        self._arrivals = Arrivals(self._app, self.options.types)
        self._ending, self._look_at = False, 0.0
        self._task = asyncio.create_task(self._run(), name=f"mainspring-source-{self.name}")

    async def stop(self) -> None:
        """Stop: finish the current batch, or give it back, and leave."""
        task, self._task = self._task, None
        if task is None:
            return
        self._ending = True
        self._called.set()
        try:
            await asyncio.wait((task,), timeout=STOP_SECONDS)
        finally:
            if not task.done():
                log.warning("source %s: what it holds could not be accepted in time, and is given back", self.name)
                task.cancel()
                await asyncio.wait((task,), timeout=LEAVE_SECONDS)
            self._state = "stopped"

    @property
    def figures(self) -> SourceFigures:
        """Its figures, without its lag."""
        return SourceFigures(
            self.name,
            self._broker_name,
            self._address,
            self.options.group,
            self._state,
            self._error,
            None,
            **self._counts,
        )

    async def lag(self) -> int | None:
        """Return how many messages wait for it at its broker; None where that is not known."""
        self._asking[self._broker_name] += 1
        try:
            async with asyncio.timeout(LAG_SECONDS):
                return await self._broker.lag(self._address, self.options.group)
        finally:
            self._asking[self._broker_name] -= 1
            if not internals_of(self._app).engine.works and not self._asking[self._broker_name]:
                await self._broker.close()  # where nothing is received or published, nothing else would

    # ---- pausing

    @property
    def _pause_key(self) -> str:
        return f"source:{self.name}:paused"

    async def pause(self, reason: str = "by an operator", *, actor: str | None = None) -> None:
        """Take nothing more, in all processes, until it is resumed. What waits stays at the broker."""
        why = {"reason": checked_reason(reason), "actor": checked_actor(actor)}
        await self._remember_pause(json.encode(why), internals_of(self._app).engine.store.now_us() + PAUSED_US)

    async def resume(self) -> None:
        """Take messages again."""
        await self._remember_pause(b"null", internals_of(self._app).engine.store.now_us())

    async def paused(self) -> str | None:
        """Return why it is paused, and by which actor; None if it is not."""
        found = await internals_of(self._app).engine.store.remembered(self._pause_key)
        if found is None:
            return None
        why = json.decode(found.body)
        return why["reason"] if why["actor"] is None else f"{why['reason']} ({why['actor']})"

    async def _remember_pause(self, body: bytes, until_us: int) -> None:
        pause = Remembered(self._pause_key, None, 1, body, until_us)
        await internals_of(self._app).engine.committer.commit(Unit("", "", remembers=(pause,)))
        self._look_at = 0.0
        self._called.set()

    async def _is_paused(self) -> bool:
        now = asyncio.get_running_loop().time()
        if now >= self._look_at:
            self._paused = await self.paused() is not None
            self._look_at = now + LOOK_SECONDS
        return self._paused

    # ---- taking

    async def _run(self) -> None:
        while not self._ending:
            try:
                if await self._is_paused():
                    self._state, self._error = "paused", None
                    await self._wait(LOOK_SECONDS)
                else:
                    await self._consume()
            except Exception as error:  # noqa: BLE001  whatever it is, the broker is asked again
                self._failures += 1
                seconds = self._backoff_seconds()
                self._state, self._error = "failing", told(error)
                log.warning("source %s: again in %.1f s: %s", self.name, seconds, Quoted(self._error))
                await self._wait(seconds)

    def _backoff_seconds(self) -> float:
        longest = min(LONGEST_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * 2 ** min(self._failures, 16))
        return longest * (0.5 + internals_of(self._app).engine.runtime.random() / 2)

    async def _wait(self, seconds: float) -> None:
        """Wait, but not longer than until it is called."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._called.wait()
        if not self._ending:
            self._called.clear()

    async def _consume(self) -> None:
        """Take batches until it is to pause or to end."""
        if self._state != "failing":
            self._state = "connecting"
        options = self.options
        subscription = await self._broker.subscribe(self._address, options.group, options.prefetch)
        try:
            while not self._ending and not await self._is_paused():
                deliveries = await self._received(subscription)
                self._state, self._error, self._failures = "running", None, 0
                if deliveries:
                    await self._take(subscription, deliveries)
        finally:
            await subscription.close()

    async def _received(self, subscription: Subscription) -> list[Delivery]:
        """Return the next deliveries; a call meanwhile interrupts the wait at once."""
        limit = min(BATCH, self.options.prefetch)
        receiving = asyncio.ensure_future(subscription.receive(limit, WAIT_SECONDS))
        called = asyncio.ensure_future(self._called.wait())
        try:
            await asyncio.wait((receiving, called), return_when=asyncio.FIRST_COMPLETED)
            if not receiving.done():
                receiving.cancel()
            with suppress(asyncio.CancelledError):
                return await receiving
            return []
        finally:
            called.cancel()
            receiving.cancel()
            if not self._ending:
                self._called.clear()

    async def _take(self, subscription: Subscription, deliveries: list[Delivery]) -> None:
        """Process a batch: accept or keep it durably, then acknowledge it."""
        taking = asyncio.ensure_future(self._accepted(deliveries))
        try:
            while not taking.done():
                await asyncio.wait((taking,), timeout=EXTEND_SECONDS)
                if not taking.done():
                    await subscription.extend(deliveries)
            counts = taking.result()
        finally:
            if not taking.done():
                taking.cancel()
                await asyncio.wait((taking,))
        await subscription.acknowledge(deliveries)
        for name, count in counts.items():
            self._counts[name] += count

    async def _accepted(self, deliveries: Sequence[Delivery]) -> dict[str, int]:
        """Return when every delivery is accepted, known, skipped or kept, with how many of each there were."""
        counts = dict.fromkeys(self._counts, 0)
        counts["received"] = len(deliveries)
        read = await self._all_read(deliveries)
        outcomes = await self._outcomes([each for each in read if isinstance(each, Arrival)])
        # Each once: two that are kept at the same time do not see each other.
        keeping: dict[Any, tuple[Delivery, str, str | None, Exception, bool]] = {}
        for number, (delivery, each) in enumerate(zip(deliveries, read, strict=True)):
            refusal = each if isinstance(each, _Refusal) else None
            outcome = outcomes[id(each)] if refusal is None else refusal.error
            if isinstance(outcome, Exception):
                kind = each.type if isinstance(each, _Refusal) else each.inputs[0].type
                anew = refusal is not None and refusal.anew
                keeping[number if anew else (each.id, delivery.body)] = delivery, each.id, kind, outcome, anew
                counts["undelivered"] += 1
            else:
                counts[outcome] += 1
        # Together, so that they share commits.
        await asyncio.gather(*(self._keep(*each) for each in keeping.values()))
        return counts

    async def _all_read(self, deliveries: Sequence[Delivery]) -> list[Arrival | _Refusal]:
        read: list[Arrival | _Refusal] = []
        for number, delivery in enumerate(deliveries, 1):
            read.append(self._read(delivery))
            if number % INPUTS_PER_TURN == 0:
                await internals_of(self._app).engine.intake.rest()
        return read

    def _read(self, delivery: Delivery) -> Arrival | _Refusal:
        internals_of(self._app).engine.intake  # noqa: B018  one that has ended by itself says so, and no message is at fault
        assert self._arrivals is not None  # noqa: S101  it was started
        envelope: WireEnvelope | None = None
        id = id_of_unread(delivery, self._address)
        try:
            envelope, own = self._incoming(delivery)
            id = own if own.isprintable() else id
            return self._arrivals.arrival(envelope, own, reply_to=self._reply_to(envelope), patient=True)
        except Exception as error:  # noqa: BLE001  what is wrong with one message keeps no other from being taken
            anew = envelope is None and delivery.attempt == 1 and own_id(delivery, self._address) is None
            return _Refusal(id, None if envelope is None else envelope.type, error, anew)

    def _incoming(self, delivery: Delivery) -> tuple[WireEnvelope, str]:
        envelope, own = incoming(delivery, self._address, self.options.bare_type)
        return envelope, id_of_arrival(envelope, own)

    def _reply_to(self, envelope: WireEnvelope) -> str | None:
        to = self.options.reply_to
        return None if to is None or envelope.sender is None else f"endpoint:{to}:{envelope.sender}"

    async def _outcomes(self, arrivals: Sequence[Arrival]) -> dict[int, str | Exception]:
        """Return what became of each: the name of a count, or the error that is the message's own."""
        found: dict[int, str | Exception] = {id(arrival): "skipped" for arrival in arrivals if not arrival.inputs}
        left = [arrival for arrival in arrivals if arrival.inputs]
        for attempt in range(1, FAULT_ATTEMPTS + 1):
            inputs = [pending for arrival in left for pending in arrival.inputs]
            answers = iter(await internals_of(self._app).engine.intake.each_answered(inputs))
            for arrival in left:
                found[id(arrival)] = _outcome([next(answers) for _ in arrival.inputs])
            left = [arrival for arrival in left if _is_doubtful(found[id(arrival)])]
            if not left or attempt == FAULT_ATTEMPTS:
                break
            for pending in (pending for arrival in left for pending in arrival.inputs):
                _renew(pending)
            await asyncio.sleep(PAUSE_AFTER_STORE_ERROR_SECONDS)
        return found

    async def _keep(self, delivery: Delivery, id: str, type: str | None, error: Exception, anew: bool) -> None:
        """Keep what could not be taken, however long the store is in trouble."""
        reason = next((reason for kind, reason in _REASONS if isinstance(error, kind)), "it cannot be taken")
        log.error("source %s: %s is a dead letter: %s", self.name, id, Quoted(told(error, 200)))
        while True:
            try:
                await keep_undelivered(
                    internals_of(self._app).engine,
                    self.name,
                    id=id,
                    body=delivery.body,
                    headers=kept_headers(delivery.headers),
                    reason=reason,
                    type=type,
                    error=error,
                    anew=anew,
                )
            except TROUBLE as trouble:
                log.warning("source %s: a dead letter is not kept yet: %s", self.name, trouble)
                await asyncio.sleep(PAUSE_AFTER_STORE_ERROR_SECONDS)
            else:
                return

    # ---- dead letters, again

    async def again(self, letter: DeadLetter, message: Any, actor: str | None) -> None:
        """Take a dead letter of this source, or `message` in its place; raise if it cannot be taken still."""
        arrivals = Arrivals(self._app, self.options.types)
        came = undelivered_in(letter)
        delivery = Delivery(came.bytes, came.headers, letter.message_id)
        try:
            envelope, id = self._incoming(delivery)
        except CodecError:
            if message is None:
                raise
            envelope, id = WireEnvelope(id=letter.message_id, type=letter.type, data=b"{}"), letter.message_id
        if message is not None:
            envelope = arrivals.corrected(envelope, message, actor)
        arrival = arrivals.arrival(envelope, id, reply_to=self._reply_to(envelope))
        if not arrival.inputs:
            raise OperationError(
                f"Dead letter {letter.id}", "was skipped: every route returned None", "Correct or discard it."
            )
        for outcome in await internals_of(self._app).engine.intake.each_answered(arrival.inputs):
            if isinstance(outcome, DuplicateIdError) and message is not None:
                await self._again_under_another_id(arrivals, envelope, id)
                return
            if isinstance(outcome, Exception):
                raise outcome

    async def _again_under_another_id(self, arrivals: Arrivals, envelope: WireEnvelope, id: str) -> None:
        """Take a corrected message whose own id was used before, for another one."""
        arrival = arrivals.arrival(envelope, f"{id}/corrected", reply_to=self._reply_to(envelope))
        for outcome in await internals_of(self._app).engine.intake.each_answered(arrival.inputs):
            if isinstance(outcome, Exception):
                raise outcome


def _outcome(answers: Sequence[ReceiptStatus | Exception]) -> str | Exception:
    """Return what became of a message that may have gone to several: an error if there is one."""
    error = next((answer for answer in answers if isinstance(answer, Exception)), None)
    if isinstance(error, StoreClosedError | NewerSchemaError):
        raise error  # the engine stops: no message is at fault, and all come again
    if error is not None:
        return error
    return "duplicates" if all(answer == "duplicate" for answer in answers) else "accepted"


def _is_doubtful(outcome: str | Exception) -> bool:
    """Return True if another attempt may help."""
    return isinstance(outcome, Exception) and not isinstance(outcome, DuplicateIdError)


def _renew(pending: Pending) -> None:
    """Have a failed input submitted again, as if it had just come."""
    pending.answer, pending.conflicts = None, 0
