"""A consumer of a queue in RabbitMQ."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Self

from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractIncomingMessage
from aiormq.abc import AbstractChannel as Underlay
from msgspec.structs import replace

from mainspring.brokers.port import Delivery
from mainspring.errors import BrokerError
from mainspring.logs import logger

CLOSE_SECONDS: Final = 5
COUNT_DIGITS: Final = 9
FOREIGN_PREFIXES: Final = ("cloudevents:", "cloudevents_")

log = logger("mainspring.brokers")

Identify = Callable[[str, AbstractIncomingMessage], str]


class RabbitSubscription:
    """What RabbitMQ pushes is held here until it is asked for; never more than the prefetch, which RabbitMQ keeps to.

    What is given back stays here, in its order, before all that came later: RabbitMQ need not know, as long as it is
    not acknowledged.
    """

    def __init__(self, connection: AbstractConnection, queue: str, identify: Identify | None) -> None:
        self.queue = queue
        self._connection = connection
        self._identify = identify
        self._ready: deque[Delivery] = deque()
        self._out: dict[int, Delivery] = {}
        self._news = asyncio.Event()
        self._lost: str | None = None
        self._channel: Underlay | None = None
        self._on_close: Callable[[Self], None] = lambda _: None

    @property
    def held(self) -> int:
        """How many are here and not acknowledged."""
        return len(self._ready) + len(self._out)

    async def begin(self, prefetch: int, on_close: Callable[[Self], None]) -> None:
        """Begin to consume."""
        channel = await self._connection.channel(publisher_confirms=False)
        channel.close_callbacks.add(self._when_closed)
        self._channel = await channel.get_underlay_channel()
        self._channel.on_consumer_cancel_callbacks.add(self._when_cancelled)
        await channel.set_qos(prefetch_count=prefetch)
        await (await channel.get_queue(self.queue, ensure=False)).consume(self._taken)
        self._on_close = on_close

    async def receive(self, limit: int, wait_seconds: float) -> list[Delivery]:
        if not self._ready and self._lost is None:
            self._news.clear()
            try:
                async with asyncio.timeout(wait_seconds):
                    await self._news.wait()
            except TimeoutError:
                return []
        self._check()
        found = [self._ready.popleft() for _ in range(min(limit, len(self._ready)))]
        self._out.update((delivery.token, delivery) for delivery in found)
        return found

    async def acknowledge(self, deliveries: Sequence[Delivery]) -> None:
        channel = self._check()
        tags = [delivery.token for delivery in deliveries if delivery.token in self._out]
        if not tags:
            return
        others = self._not_among(tags)
        if not others or max(tags) < min(others):
            await channel.basic_ack(max(tags), multiple=True)
        else:
            for tag in tags:
                await channel.basic_ack(tag)
        for tag in tags:
            del self._out[tag]

    async def give_back(self, deliveries: Sequence[Delivery]) -> None:
        self._check()
        again = [self._out.pop(delivery.token) for delivery in deliveries if delivery.token in self._out]
        back = [replace(delivery, attempt=delivery.attempt + 1) for delivery in again]
        self._ready = deque(sorted([*back, *self._ready], key=lambda delivery: delivery.token))
        self._news.set()

    async def extend(self, deliveries: Sequence[Delivery]) -> None:
        """RabbitMQ waits half an hour for an acknowledgement, and cannot be asked for more: then they come again."""
        self._check()

    async def close(self) -> None:
        self._on_close(self)
        self._ready.clear()
        self._out.clear()
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._connection.close()  # RabbitMQ then gives all of it to the next, in its order
        except Exception as error:  # noqa: BLE001  what RabbitMQ does not hear, it finds out
            log.debug("a subscription to RabbitMQ was not closed in order: %s", error)

    def _not_among(self, tags: Sequence[int]) -> set[int]:
        held = self._out.keys() | {delivery.token for delivery in self._ready}
        return held - set(tags)

    def _check(self) -> Underlay:
        if self._lost is not None or self._channel is None:
            why = self._lost or "was not begun"
            raise BrokerError("rabbitmq", f"{why}, at the queue {self.queue!r}", "Subscribe again.")
        return self._channel

    async def _taken(self, message: AbstractIncomingMessage) -> None:
        # Nothing is awaited here: each message has a task, and only so do they keep their order.
        self._ready.append(self._delivery(message))
        self._news.set()

    def _delivery(self, message: AbstractIncomingMessage) -> Delivery:
        headers = texts_of(message.headers or {})
        for name, value in (("content-type", message.content_type), ("ce-type", message.type)):
            if value:
                headers.setdefault(name, value)
        counted = headers.get("x-delivery-count", "")
        # Where the broker does not count, it is whatever the sender wrote.
        counts = counted.isdecimal() and len(counted) <= COUNT_DIGITS
        attempt = int(counted) + 1 if counts else 1 + bool(message.redelivered)
        identity = None if self._identify is None else self._identify(self.queue, message)
        return Delivery(message.body, headers, identity, message.message_id, attempt, message.delivery_tag)

    def _when_closed(self, _: AbstractChannel | None, error: BaseException | None) -> None:
        self._lose(f"was lost ({error!r})")

    def _when_cancelled(self, _: Any) -> None:
        self._lose("has cancelled the consumer, perhaps because the queue was deleted")

    def _lose(self, why: str) -> None:
        self._lost = self._lost or why
        self._news.set()


def texts_of(headers: Mapping[str, Any]) -> dict[str, str]:
    """Return AMQP's headers as texts, their names in lower case, CloudEvents' attributes as they are named elsewhere.

    >>> texts_of({"cloudEvents:id": "7", "Retries": 3, "urgent": True, "raw": b"x"})
    {'ce-id': '7', 'retries': '3', 'urgent': 'true', 'raw': 'x'}
    """
    found: dict[str, str] = {}
    for name, value in headers.items():
        own = name.lower()
        for prefix in FOREIGN_PREFIXES:
            own = f"ce-{own.removeprefix(prefix)}" if own.startswith(prefix) else own
        found[own] = _text(value)
    return found


def _text(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case bytes() | bytearray():
            return value.decode(errors="replace")
        case datetime():
            return value.isoformat()
        case _:
            return str(value)
