"""A subscription to a consumer of JetStream, pulled by requests of its own: one that is cancelled loses nothing.

The consumer numbers its deliveries. A gap says that some were lost on their way, with a connection as a rule; they come
again when their time is up, and nothing behind them may be taken before. So the subscription ends with an error, and
the next one waits for them. So it does where something new comes before what a dead process was given.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast

from msgspec import json
from nats.aio.msg import Msg

from mainspring.brokers.adapters import going_on
from mainspring.brokers.nats_turn import Turn
from mainspring.brokers.port import Delivery
from mainspring.errors import BrokerError

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.js import JetStreamContext

# How long a request for messages waits at the server. Short, for a consumer that leaves in order waits for its end.
PULL_SECONDS: Final = 0.25
PULL_GRACE_SECONDS: Final = 1.0
MARGIN_SECONDS: Final = 0.5
FLUSH_SECONDS: Final = 5
CLOSE_SECONDS: Final = 5.0
CONNECTED_LOOK_SECONDS: Final = 0.05
MESSAGE_ID: Final = "Nats-Msg-Id"
STATUS: Final = "Status"
HEARTBEAT: Final = "100"
# There were no messages, or not so many, until the request's time was up.
OVER: Final = ("404", "408")
NANOSECONDS: Final = 1_000_000_000
ACK, NAK, IN_PROGRESS = b"+ACK", b"-NAK", b"+WPI"


class NatsSubscription:
    """A place among the consumers; see `Turn` for whose turn it is."""

    def __init__(
        self, client: Client, js: JetStreamContext, turn: Turn, stream: str, consumer: str, prefix: str, prefetch: int
    ) -> None:
        self._client = client
        self._js = js
        self._turn = turn
        self._stream = stream
        self._consumer = consumer
        self._prefix = prefix
        self._prefetch = prefetch
        self._inbox = client.new_inbox()
        self._subscription: Any = None
        self._look_seconds = 0.0
        # The number of the last delivery, once it is clear that none is in doubt.
        self._last: int | None = None
        # How many are still out at a former holder, by the server's word: they come again before anything new.
        self._owed = 0
        self._buffer: deque[Msg] = deque()
        self._out: dict[str, Msg] = {}
        self._requests = 0
        self._asked = 0
        self._asked_until = 0.0
        self._news = asyncio.Event()
        self._failure: BrokerError | None = None

    async def open(self, look_seconds: float) -> None:
        """Listen for what will be pulled; look for its turn so often."""
        self._look_seconds = look_seconds
        self._subscription = await cast("Any", self._client).subscribe(f"{self._inbox}.*", cb=self._came)

    # ---- the contract

    async def receive(self, limit: int, wait_seconds: float) -> list[Delivery]:
        deadline = _now() + wait_seconds
        if not await self._has_turn(deadline):
            return []
        while True:
            self._check()
            if self._buffer and not self._owed:
                return self._taken(limit)
            await self._pull()
            self._news.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout_at(min(deadline, self._asked_until) if self._asked else deadline):
                    await self._news.wait()
            if self._owed and not self._news.is_set():
                await self._count_owed()
            if _now() >= deadline and (self._owed or not self._buffer):
                self._check()
                return []

    async def acknowledge(self, deliveries: Sequence[Delivery]) -> None:
        await self._tell(ACK, [delivery.token for delivery in deliveries], ends=True)

    async def give_back(self, deliveries: Sequence[Delivery]) -> None:
        # They stay here, before all that came meanwhile: the server would redeliver them behind it.
        returned = [self._out.pop(delivery.token) for delivery in deliveries if delivery.token in self._out]
        self._buffer = deque(sorted((*returned, *self._buffer), key=_stream_sequence))
        self._news.set()

    async def extend(self, deliveries: Sequence[Delivery]) -> None:
        self._check()
        waiting = [msg.reply for msg in self._buffer]
        await self._tell(IN_PROGRESS, [*(delivery.token for delivery in deliveries), *waiting], ends=False)

    async def close(self) -> None:
        try:
            with going_on("leaving a stream of NATS"):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await self._leave()
        finally:
            # Where the release did not reach the server, the turn must expire: renewed, it would block all others.
            self._turn.abandon()

    async def _leave(self) -> None:
        doubt = not await self._all_came() or self._failure is not None or self._owed > 0
        if self._subscription is not None:
            await self._subscription.unsubscribe()
        if not doubt:
            # What is in doubt comes again by itself when its time is up, all of it together.
            held = sorted((*self._out.values(), *self._buffer), key=_stream_sequence)
            await self._tell(NAK, [msg.reply for msg in held], ends=True)
        while not self._client.is_connected:  # noqa: ASYNC110  the client has no other signal
            await asyncio.sleep(CONNECTED_LOOK_SECONDS)
        await self._turn.release(doubt=doubt)

    # ---- whose turn it is

    async def _has_turn(self, deadline: float) -> bool:
        """Return True if it is this one's turn, and nothing is in doubt; wait for that until the deadline."""
        while self._last is None:
            if not self._turn.held and not await self._turn.take():
                wait_seconds = self._look_seconds
            elif (wait_seconds := await self._doubt_seconds()) <= 0:
                info = await self._js.consumer_info(self._stream, self._consumer)
                self._last = info.delivered.consumer_seq if info.delivered is not None else 0
                # Who left in order has acknowledged or given back all that it had: nothing of that is late.
                self._owed = (info.num_ack_pending or 0) if self._turn.doubt_until else 0
                return True
            if _now() + wait_seconds > deadline:
                await asyncio.sleep(max(0.0, min(wait_seconds, deadline - _now())))
                return False
            await asyncio.sleep(wait_seconds)
        return True

    async def _doubt_seconds(self) -> float:
        """Return how long something may still be out that a former holder was given."""
        left = self._turn.doubt_until + MARGIN_SECONDS - _now() if self._turn.doubt_until else 0.0
        if left > 0:
            info = await self._js.consumer_info(self._stream, self._consumer)
            if not info.num_ack_pending:
                return 0.0
        return left

    def _check(self) -> None:
        if self._failure is None and not self._client.is_connected:
            self._failure = BrokerError("nats", "lost its connection", "It is connected again by itself.")
        elif self._failure is None and not self._turn.held:
            self._failure = BrokerError("nats", "let the turn go to another consumer", "It waits for its turn again.")
        if self._failure is not None:
            raise self._failure

    # ---- pulling

    async def _pull(self) -> None:
        """Ask for more, unless a request waits already, or as much is out as may be."""
        now = _now()
        room = self._prefetch - len(self._out) - len(self._buffer)
        if room <= 0 or (self._asked and now < self._asked_until):
            return
        self._requests += 1
        self._asked, self._asked_until = room, now + PULL_SECONDS + PULL_GRACE_SECONDS
        request = json.encode({"batch": room, "expires": int(PULL_SECONDS * NANOSECONDS)})
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{self._stream}.{self._consumer}"
        await self._client.publish(subject, request, reply=f"{self._inbox}.{self._requests}")

    async def _came(self, msg: Msg) -> None:
        """Take what the server sends: a message, or how a request ended."""
        status = (msg.headers or {}).get(STATUS)
        if status is not None and not msg.reply:
            if status != HEARTBEAT and msg.subject == f"{self._inbox}.{self._requests}":
                self._asked = 0
            if status not in (HEARTBEAT, *OVER):
                # The consumer was deleted, or another server leads it now: what was asked of it may be lost.
                said = (msg.headers or {}).get("Description") or status
                self._failure = BrokerError("nats", f"ended a request: {said}", "It is asked again after a while.")
        else:
            number = msg.metadata.sequence.consumer
            if self._last is not None and number != self._last + 1:
                self._failure = BrokerError("nats", "lost deliveries on their way", "They come again after a while.")
            elif self._owed and msg.metadata.num_delivered == 1:
                # A server under load is late with what a dead process was given, however long was waited for it.
                self._failure = BrokerError("nats", "has not brought back what was out", "It comes after a while.")
            self._last = number
            self._asked = max(0, self._asked - 1)
            self._take(msg)
        self._news.set()

    def _take(self, msg: Msg) -> None:
        """Take a message. What is owed comes back as its times are up, some of it twice: it waits for all of it."""
        if self._owed:
            others = [each for each in self._buffer if _stream_sequence(each) != _stream_sequence(msg)]
            self._owed -= len(others) == len(self._buffer)
            self._buffer = deque(sorted((*others, msg), key=_stream_sequence))
        else:
            self._buffer.append(msg)

    async def _count_owed(self) -> None:
        """Ask how many are owed still: what a former holder acknowledged last may have been on its way."""
        info = await self._js.consumer_info(self._stream, self._consumer)
        self._owed = max(0, (info.num_ack_pending or 0) - len(self._buffer))

    async def _all_came(self) -> bool:
        """Wait until nothing can come any more. False: that is not known."""
        if self._last is None:
            return True
        while self._asked and self._client.is_connected and _now() < self._asked_until:
            self._news.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout_at(self._asked_until):
                    await self._news.wait()
        return not self._asked and self._client.is_connected

    def _taken(self, limit: int) -> list[Delivery]:
        taken = [self._buffer.popleft() for _ in range(min(limit, len(self._buffer)))]
        self._out.update({msg.reply: msg for msg in taken})
        return [self._delivery(msg) for msg in taken]

    def _delivery(self, msg: Msg) -> Delivery:
        headers = {name.lower(): str(value) for name, value in (msg.headers or {}).items()}
        metadata = msg.metadata
        identity = f"{self._prefix}/{metadata.sequence.stream}"
        sender_id = (msg.headers or {}).get(MESSAGE_ID)
        return Delivery(msg.data, headers, identity, sender_id, metadata.num_delivered, msg.reply)

    async def _tell(self, what: bytes, replies: Sequence[str], *, ends: bool) -> None:
        for reply in replies:
            await self._client.publish(reply, what)
            if ends:
                self._out.pop(reply, None)
        await self._flush()

    async def _flush(self) -> None:
        """Wait until the server has received all that was sent; the client would not notice that the line was cut."""
        reconnects = self._client.stats["reconnects"]
        flushing = asyncio.ensure_future(self._client.flush(timeout=FLUSH_SECONDS))
        try:
            while not flushing.done():
                await asyncio.wait((flushing,), timeout=CONNECTED_LOOK_SECONDS)
                if not self._client.is_connected or self._client.stats["reconnects"] != reconnects:
                    raise BrokerError("nats", "lost its connection", "It is connected again by itself.")
            flushing.result()
        finally:
            flushing.cancel()


def _stream_sequence(msg: Msg) -> int:
    return msg.metadata.sequence.stream


def _now() -> float:
    return asyncio.get_running_loop().time()
