"""Sinks: the way out. A message is settled in the outbox when the broker has confirmed it, not before.

A sink is a handler (of what is sent) or a subscriber (to what is published), with their retries, breaker and dead
letters. The output's id is the broker's deduplication id, so an attempt whose confirmation was lost adds nothing.
Messages of many instances gather while a batch is under way and go together in the next one, in their order.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, Final

from msgspec.structs import replace

from mainspring.app.answers import sender_of
from mainspring.brokers.port import Broker, Outgoing
from mainspring.brokers.wire import outgoing
from mainspring.codec import Codec
from mainspring.codec.wire import envelope_of
from mainspring.engine.handlers.handler import Context, Handler, HandlerOptions
from mainspring.engine.handlers.policies.retry import Retry
from mainspring.errors import BrokerError

MESSAGES_PER_BATCH: Final = 500
# A broker that is down for days is no reason to give up: at most a minute passes between two of them.
SINK_RETRY: Final = Retry(max_attempts=10_000)
SINK_TIMEOUT: Final = timedelta(seconds=60)
# Longer than any adapter of ours waits for its broker: one that never answers must not keep all that come later.
PUBLISH_SECONDS: Final = 120.0


class Sink:
    """Publishes to one address, in batches, one at a time.

    >>> from mainspring.brokers.memory import MemoryBroker
    >>> async def main() -> None:
    ...     broker = MemoryBroker()
    ...     sink = Sink(broker, "orders")
    ...     await asyncio.gather(*(sink.publish(Outgoing("orders", f"m-{n}", b"{}")) for n in range(3)))
    ...     print([message.id for message in broker.log("orders")], sink.published)
    >>> asyncio.run(main())
    ['m-0', 'm-1', 'm-2'] 3
    """

    def __init__(self, broker: Broker, address: str) -> None:
        self._broker = broker
        self.address = address
        self.published = 0
        self._waiting: deque[tuple[Outgoing, asyncio.Future[None]]] = deque()
        self._task: asyncio.Task[None] | None = None

    async def publish(self, message: Outgoing) -> None:
        """Publish a message with others. Returns when the broker has confirmed it, or raises why it did not."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((message, future))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="mainspring-sink")
        await future

    async def _run(self) -> None:
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(MESSAGES_PER_BATCH, len(self._waiting)))]
            # A caller that timed out meanwhile retries.
            batch = [(message, future) for message, future in batch if not future.done()]
            outcomes = await self._outcomes([message for message, _ in batch])
            for (_, future), outcome in zip(batch, outcomes, strict=True):
                self.published += outcome is None
                if future.done():
                    continue
                if outcome is None:
                    future.set_result(None)
                else:
                    future.set_exception(outcome)

    async def _outcomes(self, messages: list[Outgoing]) -> list[Exception | None]:
        if not messages:
            return []
        limit = asyncio.timeout(PUBLISH_SECONDS)
        try:
            async with limit:
                outcomes = await self._broker.publish(messages)
        except Exception as error:  # noqa: BLE001  whatever it is, each of them learns of it and is tried again
            late = f"did not answer within {PUBLISH_SECONDS:g} s", "It is sent again under the same id."
            told = BrokerError(type(self._broker).__name__, *late) if limit.expired() else error
            return [told] * len(messages)
        if len(outcomes) != len(messages):
            problem = f"told of {len(outcomes)} messages, and was given {len(messages)}"
            return [BrokerError(type(self._broker).__name__, problem, "Mend its adapter.")] * len(messages)
        return outcomes


class Publisher:
    """Makes the functions that carry messages of an app out to a sink."""

    def __init__(self, codec: Codec, source: str, sink: Sink, *, reply_to: str | None = None) -> None:
        self._codec = codec
        self._source = source
        self._sink = sink
        self._reply_to = reply_to

    def handler(self, message_type: type[Any], name: str, kind: str, options: dict[str, Any]) -> Handler:
        """Return the handler, or the subscriber, of a type."""
        chosen: dict[str, Any] = {"retry": SINK_RETRY, "timeout": SINK_TIMEOUT, "name": name, **options}
        return Handler(self._function(message_type, kind), HandlerOptions(**chosen))

    def reply_handler(self, name: str) -> Handler:
        """Return what brings replies to the instances elsewhere that asked."""
        return self.handler(object, name, "reply", {})

    def _function(self, message_type: type[Any], kind: str) -> Callable[[Any, Context], Awaitable[None]]:
        async def publish(message: Any, context: Context) -> None:
            own = context.envelope
            encoded = self._codec.encode(message)
            envelope = envelope_of(own, encoded.name, encoded.version, encoded.body, source=self._source)
            # Not the instance's own return address, which means nothing elsewhere: where this service listens.
            envelope = replace(envelope, kind=kind, sender=sender_of(context.instance), reply_to=self._reply_to)
            if kind == "reply":
                envelope = replace(envelope, instance=(own.reply_to or "").split(":", 2)[2], reply_to=None)
            await self._sink.publish(outgoing(envelope, self._sink.address, key=envelope.sender or context.instance))

        publish.__annotations__ = {"message": message_type, "context": Context, "return": None}
        return publish
