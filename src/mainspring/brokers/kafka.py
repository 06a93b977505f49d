"""Kafka as a broker, by aiokafka.

An address is a topic, which must be there: how many partitions it has and how often they are kept is decided by its
creator. A group is a consumer group, in which each consumer has partitions of its own; messages with the same key are
in the same partition, and so in order.

What is acknowledged is committed as an offset, and an offset speaks for all before it: only what lies before the first
that is not acknowledged is ever committed. What was out when a partition went to another consumer is not committed any
more; that consumer gets it again, and it is recognised by its identity: topic, partition and offset.

A producer is idempotent and waits for all replicas in sync (`acks=all`; how many those must be is the topic's
`min.insync.replicas`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from mainspring.brokers.adapters import installed, published_by_address
from mainspring.brokers.port import Outgoing, Subscription
from mainspring.brokers.routing import checked_name, checked_seconds
from mainspring.codec.limits import BODY_LIMIT_BYTES
from mainspring.errors import BrokerError, DoNotRetryError, SettingError

with installed("kafka", "aiokafka", "aiokafka"):
    import aiokafka  # pyright: ignore[reportMissingTypeStubs]  it has none
    from aiokafka import errors  # pyright: ignore[reportMissingTypeStubs]  as above

    from mainspring.brokers.kafka_subscription import KafkaSubscription, record_headers, stopped

CONNECT_SECONDS: Final = 10
CONFIRM_SECONDS: Final = 30
REQUEST_SECONDS: Final = 10
LAG_SECONDS: Final = 10
SESSION_SECONDS: Final = 10
SHORTEST_SESSION_SECONDS: Final = 0.1
LONGEST_SESSION_SECONDS: Final = 3_600.0
# A body, and what stands beside it in the record.
REQUEST_BYTES: Final = BODY_LIMIT_BYTES + 256 * 1_024

_library: Any = aiokafka
_errors: Any = errors


class KafkaBroker:
    """A broker by the addresses of some servers of a Kafka cluster: `kafka://host:9092,another:9092`.

    `cluster` is a name that stands in the ids of messages which have none of their own: needed where two clusters, or
    a recreated topic, could give two messages the same topic, partition and offset.
    `session_seconds` is how long a consumer that does not answer is waited for before its partitions go to others.
    `connect` is handed to aiokafka's consumers and producer alike (`{"security_protocol": "SASL_SSL", …}`), `consumer`
    and `producer` to one of them (`{"compression_type": "zstd"}`); what the guarantees rest on cannot be changed so.

    >>> KafkaBroker("kafka://kafka-1:9092,kafka-2:9092")
    KafkaBroker('kafka://kafka-1:9092,kafka-2:9092')
    """

    def __init__(
        self,
        url: str,
        *,
        cluster: str | None = None,
        session_seconds: float = SESSION_SECONDS,
        connect: Mapping[str, Any] | None = None,
        consumer: Mapping[str, Any] | None = None,
        producer: Mapping[str, Any] | None = None,
    ) -> None:
        self._servers = _servers(url)
        self._prefix = "kafka:" if cluster is None else f"kafka:{checked_name('KafkaBroker.cluster', cluster)}/"
        self._session_seconds = checked_seconds(
            "KafkaBroker.session_seconds", session_seconds, SHORTEST_SESSION_SECONDS, LONGEST_SESSION_SECONDS
        )
        self._connect: dict[str, Any] = {**(connect or {}), "bootstrap_servers": self._servers}
        self._consuming = {**self._connect, **(consumer or {}), "enable_auto_commit": False}
        self._producing = {**self._connect, **(producer or {}), "acks": "all", "enable_idempotence": True}
        self._starting = asyncio.Lock()
        self._producer: Any = None
        self._subscriptions: set[KafkaSubscription] = set()
        self._flying: dict[tuple[str, str], asyncio.Future[Any]] = {}

    def __repr__(self) -> str:
        return f"KafkaBroker({f'kafka://{self._servers}'!r})"

    async def open(self) -> None:
        """Have nothing to prepare: it connects when it is used."""

    async def close(self) -> None:
        for subscription in tuple(self._subscriptions):
            await subscription.close()
        await self._drop_producer()

    # ---- in

    async def subscribe(self, address: str, group: str, prefetch: int) -> Subscription:
        usual = {
            "auto_offset_reset": "earliest",
            "isolation_level": "read_committed",
            "max_partition_fetch_bytes": REQUEST_BYTES,
            "request_timeout_ms": REQUEST_SECONDS * 1000,
            "session_timeout_ms": int(self._session_seconds * 1000),
            "heartbeat_interval_ms": max(1, int(self._session_seconds * 1000 / 3)),
        }
        consumer = _library.AIOKafkaConsumer(**{**usual, **self._consuming, "group_id": group})
        subscription = KafkaSubscription(consumer, address, prefetch, self._prefix, self._subscriptions.discard)
        self._subscriptions.add(subscription)
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await consumer.start()
                await _partitions(consumer, address)
            await subscription.begin()
        except BaseException:
            await subscription.close()
            raise
        return subscription

    async def lag(self, address: str, group: str) -> int | None:
        """Return how many offsets lie between what the group has committed and the ends of the partitions."""
        # It belongs to the group, so that it may ask for its offsets, and joins it not: it subscribes to nothing.
        looker = _library.AIOKafkaConsumer(
            group_id=group, enable_auto_commit=False, isolation_level="read_committed", **self._connect
        )
        try:
            async with asyncio.timeout(LAG_SECONDS):
                await looker.start()
                partitions = await _partitions(looker, address)
                ends = await looker.end_offsets(partitions)
                begins = await looker.beginning_offsets(partitions)
                done = {partition: await looker.committed(partition) for partition in partitions}
        finally:
            await stopped(looker)
        return sum(max(0, ends[p] - (begins[p] if done[p] is None else max(begins[p], done[p]))) for p in partitions)

    # ---- out

    async def publish(self, messages: Sequence[Outgoing]) -> list[Exception | None]:
        outcomes = await published_by_address(messages, self._published)
        if any(_is_the_producers(outcome) for outcome in outcomes):
            await self._drop_producer()
        return [None if outcome is None else _told(outcome) for outcome in outcomes]

    async def _published(self, topic: str, messages: list[Outgoing]) -> list[Exception | None]:
        try:
            producer = await self._started()
            # The client itself gives up on a topic that is not there after a request's time, and says so.
            async with asyncio.timeout(REQUEST_SECONDS + CONNECT_SECONDS):
                await producer.partitions_for(topic)
        except Exception as error:  # noqa: BLE001  the outcome of this topic, and of no other
            return [error] * len(messages)
        # One after the other into the producer, which sends them in this order; then all are awaited.
        sent = [await self._sent(producer, message) for message in messages]
        return await asyncio.gather(*map(_confirmed, sent))

    async def _sent(self, producer: Any, message: Outgoing) -> asyncio.Future[Any] | Exception:
        """Return a future that is done when Kafka has the message.

        An idempotent producer never gives a message up. So one that was not confirmed in time, and is published again,
        is not sent once more: the first is still on its way.
        """
        place = message.address, message.id
        if (flying := self._flying.get(place)) is not None:
            return flying
        try:
            async with asyncio.timeout(CONFIRM_SECONDS):
                sent: asyncio.Future[Any] = await producer.send(
                    message.address,
                    message.body,
                    key=None if message.key is None else message.key.encode(),
                    headers=record_headers(message.headers),
                )
        except Exception as error:  # noqa: BLE001  the outcome of this message, and of no other
            return error
        self._flying[place] = sent
        sent.add_done_callback(lambda _: self._flying.pop(place, None))
        return sent

    async def _started(self) -> Any:
        async with self._starting:
            if self._producer is None:
                usual = {"max_request_size": REQUEST_BYTES, "request_timeout_ms": REQUEST_SECONDS * 1000}
                producer = _library.AIOKafkaProducer(**{**usual, **self._producing})
                try:
                    async with asyncio.timeout(CONNECT_SECONDS):
                        await producer.start()
                except BaseException:
                    await stopped(producer)
                    raise
                self._producer = producer
            return self._producer

    async def _drop_producer(self) -> None:
        """End the producer: after an error its numbering may have a gap, and the cluster would refuse the rest."""
        producer, self._producer = self._producer, None
        if producer is not None:
            await stopped(producer)
        for future in tuple(self._flying.values()):
            future.cancel()
        self._flying.clear()


def _servers(url: str) -> str:
    scheme, _, servers = url.partition("://") if isinstance(url, str) else ("", "", "")
    places = servers.rstrip("/").split(",")
    if scheme != "kafka" or not all(place.strip() for place in places) or any(c in servers for c in "@/?# "):
        fix = "Write kafka://host:9092, several hosts separated by commas; passwords go into `connect`."
        raise SettingError("KafkaBroker.url", scheme or "no URL", fix)
    return ",".join(places)


async def _partitions(consumer: Any, topic: str) -> list[Any]:
    """Return the partitions of a topic, or say that there is none."""
    cluster = await consumer._client.fetch_all_metadata()  # noqa: SLF001  the consumer gives only names of topics
    if not (numbers := cluster.partitions_for_topic(topic)):
        fix = "Create it, with as many partitions as workers shall share it."
        raise BrokerError("kafka", f"has no topic {topic!r}", fix)
    return [_library.TopicPartition(topic, number) for number in sorted(numbers)]


async def _confirmed(sent: asyncio.Future[Any] | Exception) -> Exception | None:
    if isinstance(sent, Exception):
        return sent
    done, _ = await asyncio.wait([sent], timeout=CONFIRM_SECONDS)
    if not done:
        fix = "It is still on its way; publishing it again waits for that."
        return BrokerError("kafka", f"has not confirmed within {CONFIRM_SECONDS} s", fix)
    if sent.cancelled():
        return BrokerError("kafka", "was left before it confirmed", "It is published again under the same id.")
    error = sent.exception()
    return error if isinstance(error, Exception) else None


def _is_the_producers(outcome: Exception | None) -> bool:
    """Return True if an error says more than that this message was not taken now."""
    ordinary = (
        _errors.MessageSizeTooLargeError,
        _errors.RecordListTooLargeError,
        _errors.UnknownTopicOrPartitionError,
        _errors.TopicAuthorizationFailedError,
        _errors.KafkaTimeoutError,
    )
    return isinstance(outcome, _errors.KafkaError) and not isinstance(outcome, ordinary)


def _told(error: Exception) -> Exception:
    """Return an outcome as others understand it."""
    match error:
        case _errors.MessageSizeTooLargeError() | _errors.RecordListTooLargeError():
            return DoNotRetryError(f"Kafka takes no message of this size: {error}")
        case _errors.UnknownTopicOrPartitionError():
            return BrokerError("kafka", "has no such topic", "Create it.", of_message=True)
        case TimeoutError():
            return BrokerError("kafka", "does not answer", "It is published again under the same id.")
        case _:
            return error
