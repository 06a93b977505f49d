"""A consumer in a group of Kafka."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Self

from aiokafka import errors  # pyright: ignore[reportMissingTypeStubs]  it has none
from aiokafka.abc import ConsumerRebalanceListener  # pyright: ignore[reportMissingTypeStubs]  as above
from msgspec import Struct
from msgspec.structs import replace

from mainspring.brokers.port import Delivery
from mainspring.logs import logger

COMMIT_SECONDS: Final = 10
CLOSE_SECONDS: Final = 5
JOIN_SECONDS: Final = 10
ASSIGNMENT_SECONDS: Final = 1

_errors: Any = errors
_Listener: Any = ConsumerRebalanceListener

log = logger("mainspring.brokers")


class _Token(Struct, frozen=True, gc=False):
    """Where a delivery came from, and in which assignment."""

    partition: Any
    offset: int
    assignment: int


class KafkaSubscription:
    """What aiokafka fetches ahead is bounded by bytes; of what it hands out, no more is out than the prefetch."""

    def __init__(self, consumer: Any, topic: str, prefetch: int, prefix: str, on_close: Callable[[Self], None]) -> None:
        self._prefix = prefix
        self._on_close = on_close
        self._consumer = consumer
        self._topic = topic
        self._prefetch = prefetch
        # In a new assignment everything is read from the committed offset on: what came before it is void.
        self._assignment = 0
        self._ready: deque[Delivery] = deque()
        self._out: dict[Any, dict[int, bool]] = {}
        self._closed = False
        self._assigned = asyncio.Event()

    async def begin(self) -> None:
        """Join the group. Returns with a share of the partitions, or when that takes too long: it comes later, then."""
        self._consumer.subscribe([self._topic], listener=_Rebalance(self))
        with suppress(TimeoutError):
            async with asyncio.timeout(JOIN_SECONDS):
                await self._assigned.wait()

    async def receive(self, limit: int, wait_seconds: float) -> list[Delivery]:
        room = min(limit, self._prefetch - sum(len(out) for out in self._out.values()))
        if room <= 0:
            await asyncio.sleep(wait_seconds)
            return []
        if not self._ready:
            await self._fetch(room, wait_seconds)
        found = [self._ready.popleft() for _ in range(min(room, len(self._ready)))]
        for delivery in found:
            self._out.setdefault(delivery.token.partition, {})[delivery.token.offset] = False
        return found

    async def _fetch(self, limit: int | None, wait_seconds: float) -> None:
        for partition, some in (await self._polled(wait_seconds, limit)).items():
            self._ready.extend(self._delivery(partition, record) for record in some)

    async def _polled(self, wait_seconds: float, limit: int | None) -> dict[Any, list[Any]]:
        # While partitions are handed round, aiokafka would wait for its share without end.
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_seconds + ASSIGNMENT_SECONDS):
                return await self._consumer.getmany(timeout_ms=int(wait_seconds * 1000), max_records=limit)
        return {}

    def _delivery(self, partition: Any, record: Any) -> Delivery:
        identity = f"{self._prefix}{record.topic}/{record.partition}/{record.offset}"
        token = _Token(partition, record.offset, self._assignment)
        return Delivery(record.value or b"", texts_of(record.headers), identity, token=token)

    async def acknowledge(self, deliveries: Sequence[Delivery]) -> None:
        touched: set[Any] = set()
        for delivery in deliveries:
            token = delivery.token
            if token.assignment == self._assignment and token.offset in self._out.get(token.partition, {}):
                self._out[token.partition][token.offset] = True
                touched.add(token.partition)
        offsets = {partition: offset for partition in touched if (offset := self._settled(partition)) is not None}
        if offsets:
            await self._commit(offsets)

    def _settled(self, partition: Any) -> int | None:
        """Forget what is acknowledged up to the first that is not, and return the offset behind it."""
        out = self._out[partition]
        behind = None
        for offset in sorted(out):
            if not out[offset]:
                break
            del out[offset]
            behind = offset + 1
        return behind

    async def _commit(self, offsets: dict[Any, int]) -> None:
        try:
            async with asyncio.timeout(COMMIT_SECONDS):
                await self._consumer.commit(offsets)
        except (_errors.CommitFailedError, _errors.IllegalStateError) as gone:
            # The partition has gone to another consumer, which gets these again and finds them to be duplicates.
            log.debug("not committed, as partitions of %s were revoked: %s", self._topic, gone)

    async def give_back(self, deliveries: Sequence[Delivery]) -> None:
        back: list[Delivery] = []
        for delivery in deliveries:
            token = delivery.token
            if token.assignment == self._assignment and token.offset in self._out.get(token.partition, {}):
                del self._out[token.partition][token.offset]
                back.append(replace(delivery, attempt=delivery.attempt + 1))
        # What has been fetched since stays behind what comes again.
        self._ready = deque(sorted([*back, *self._ready], key=_place))

    async def extend(self, deliveries: Sequence[Delivery]) -> None:
        """Show that this consumer is alive: one that asks for nothing for five minutes is taken for stuck."""
        mine = tuple(self._consumer.assignment())
        self._consumer.pause(*mine)
        try:
            # Partitions that were assigned meanwhile are not paused: what came of them stays here.
            await self._fetch(None, 0)
        finally:
            self._consumer.resume(*(partition for partition in mine if partition in self._consumer.assignment()))

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._on_close(self)
        self.forget()
        await stopped(self._consumer)

    def assigned(self) -> None:
        """Start over with the partitions that are assigned now."""
        self.forget()
        self._assigned.set()

    def forget(self) -> None:
        """Forget all deliveries here: other consumers may have their partitions now, and get them again."""
        self._assignment += 1
        self._ready.clear()
        self._out.clear()


class _Rebalance(_Listener):
    """Partitions are handed round among the group: all are revoked, then some are assigned."""

    def __init__(self, subscription: KafkaSubscription) -> None:
        self._subscription = subscription

    async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        self._subscription.forget()

    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        self._subscription.assigned()


async def stopped(client: Any) -> None:
    """End a consumer or a producer: in order, unless the cluster keeps it waiting."""
    stopping = asyncio.ensure_future(client.stop())
    stopping.add_done_callback(_note)
    done, _ = await asyncio.wait([stopping], timeout=CLOSE_SECONDS)
    if not done and (sender := getattr(client, "_sender", None)) is not None:
        # It waits for the cluster to take its last messages. They are in the outbox, and go with the next producer.
        await sender.close()
        await asyncio.wait([stopping], timeout=CLOSE_SECONDS)


def _note(stopping: asyncio.Future[None]) -> None:
    if not stopping.cancelled() and (error := stopping.exception()) is not None:
        log.debug("a client of Kafka was not ended in order: %s", error)


def _place(delivery: Delivery) -> tuple[int, int]:
    return delivery.token.partition.partition, delivery.token.offset


def texts_of(headers: Iterable[tuple[str, bytes | None]]) -> dict[str, str]:
    """Return a record's headers as texts, with names in lower case, and CloudEvents' attributes named as elsewhere.

    >>> texts_of([("ce_id", b"7"), ("Content-Type", b"application/json"), ("empty", None)])
    {'ce-id': '7', 'content-type': 'application/json'}
    """
    found: dict[str, str] = {}
    for name, value in headers:
        own = name.lower()
        if value is not None:
            found[f"ce-{own[3:]}" if own.startswith("ce_") else own] = value.decode(errors="replace")
    return found


def record_headers(headers: Mapping[str, str]) -> list[tuple[str, bytes]]:
    """Return headers as a record has them: in Kafka CloudEvents writes `ce_` before its attributes.

    >>> record_headers({"ce-id": "7", "traceparent": "00-4bf9"})
    [('ce_id', b'7'), ('traceparent', b'00-4bf9')]
    """
    return [(f"ce_{name[3:]}" if name.startswith("ce-") else name, value.encode()) for name, value in headers.items()]
