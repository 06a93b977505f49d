"""NATS JetStream as a broker, by nats-py.

An address is a subject; a stream must hold it. A group is a durable consumer of that stream, of which one process at a
time pulls, so that order is kept: see `Turn`. Deliveries are acknowledged one by one. A published message is
confirmed when the stream has it, as durably as the stream's replicas and the server's `sync_interval` make it; its id
is the `Nats-Msg-Id`, by which JetStream drops a repetition within the stream's duplicate window (2 minutes by default).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from hashlib import sha256
from secrets import token_hex
from typing import Any, Final, cast
from weakref import WeakSet

from mainspring.brokers.adapters import going_on, installed
from mainspring.brokers.port import Outgoing, Subscription
from mainspring.brokers.routing import checked_name, checked_seconds
from mainspring.errors import BrokerError, SettingError
from mainspring.logs import logger

with installed("nats", "nats-py", "nats"):
    from nats.aio.client import Client
    from nats.js import JetStreamContext
    from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, KeyValueConfig, StorageType, StreamConfig
    from nats.js.errors import BucketNotFoundError, NotFoundError
    from nats.js.kv import KeyValue

    from mainspring.brokers.nats_publishing import Confirmations, no_stream
    from mainspring.brokers.nats_subscription import NatsSubscription
    from mainspring.brokers.nats_turn import Turn

BUCKET: Final = "mainspring-turns"
CONNECT_SECONDS: Final = 5
TAKEOVER_SECONDS: Final = 10.0
SHORTEST_TAKEOVER_SECONDS: Final = 0.5
LONGEST_TAKEOVER_SECONDS: Final = 3_600.0
RECONNECT_SECONDS: Final = 0.5
FOREVER: Final = -1
LOOKS: Final = 10
LARGEST_REPLICAS: Final = 5

log = logger("mainspring.brokers")


class NatsBroker:
    """A broker by the URL of a NATS server, or several with commas between them.

    `streams` are created if they are not there: their names, each with its subjects; with so many `replicas`.
    `takeover_seconds` is after how long without a sign of life another process takes over; it waits half as long again
    for what may still be out. `connect` is handed to the client: credentials, TLS and the like.

    >>> broker = NatsBroker("nats://localhost:4222", streams={"ORDERS": ["orders.>"]})
    """

    def __init__(
        self,
        url: str,
        *,
        streams: Mapping[str, Sequence[str]] | None = None,
        replicas: int = 1,
        takeover_seconds: float = TAKEOVER_SECONDS,
        connect: Mapping[str, Any] | None = None,
    ) -> None:
        checked_seconds("takeover_seconds", takeover_seconds, SHORTEST_TAKEOVER_SECONDS, LONGEST_TAKEOVER_SECONDS)
        if type(replicas) is not int or not 0 < replicas <= LARGEST_REPLICAS:
            raise SettingError("replicas", replicas, f"Use a whole number from 1 to {LARGEST_REPLICAS}.")
        self._servers = [server.strip() for server in url.split(",")]
        self._streams = dict(streams or {})
        self._replicas = replicas
        self._takeover_seconds = takeover_seconds
        self._connect = dict(connect or {})
        self._owner = token_hex(8)
        self._client: Client | None = None
        self._connecting = asyncio.Lock()
        self._js: JetStreamContext | None = None
        self._bucket: KeyValue | None = None
        self._declared = False
        self._confirmations: Confirmations | None = None
        self._held: WeakSet[Turn] = WeakSet()

    async def open(self) -> None:
        """Nothing to prepare: it connects on first use."""

    async def close(self) -> None:
        for turn in self._held:
            turn.abandon()
        client, self._client, self._js, self._bucket = self._client, None, None, None
        if client is not None:
            with going_on("closing the connection to NATS"):
                await asyncio.wait_for(client.close(), CONNECT_SECONDS)

    # ---- in

    async def subscribe(self, address: str, group: str, prefetch: int) -> Subscription:
        js: Any = await self._connected()
        stream = await self._stream_of(js, address)
        consumer = consumer_of(address, group)
        await js.add_consumer(
            stream,
            ConsumerConfig(
                durable_name=consumer,
                deliver_policy=DeliverPolicy.ALL,
                ack_policy=AckPolicy.EXPLICIT,
                ack_wait=self._takeover_seconds,
                max_deliver=-1,
                max_ack_pending=prefetch,
                filter_subject=address,
            ),
        )
        created = (await js.stream_info(stream)).created
        # A stream that was deleted and recreated counts from the start.
        prefix = f"nats:{stream}" if created is None else f"nats:{stream}@{created:%Y%m%dT%H%M%S.%f}"
        turn = Turn(await self._turns(), consumer_of(stream, consumer), self._owner, self._takeover_seconds)
        self._held.add(turn)
        assert self._client is not None  # noqa: S101  it is connected
        subscription = NatsSubscription(self._client, js, turn, stream, consumer, prefix, prefetch)
        await subscription.open(self._takeover_seconds / LOOKS)
        return subscription

    async def lag(self, address: str, group: str) -> int | None:
        js = await self._connected()
        stream = await self._stream_of(js, address)
        try:
            info = await js.consumer_info(stream, consumer_of(address, group))
        except NotFoundError:
            state = (await js.stream_info(stream, subjects_filter=address)).state
            return sum((state.subjects or {}).values())
        return (info.num_pending or 0) + (info.num_ack_pending or 0)

    async def _turns(self) -> KeyValue:
        if self._bucket is None:
            # The holder of the turn must know soon whether it was renewed.
            js: Any = cast("Any", self._client).jetstream(timeout=min(CONNECT_SECONDS, self._takeover_seconds / 2))
            try:
                bucket = await js.key_value(BUCKET)
            except BucketNotFoundError:
                bucket = await js.create_key_value(KeyValueConfig(bucket=BUCKET, history=1, replicas=self._replicas))
            self._bucket = cast("KeyValue", bucket)
        return self._bucket

    async def _stream_of(self, js: JetStreamContext, address: str) -> str:
        try:
            return await js.find_stream_name_by_subject(address)
        except NotFoundError:
            raise no_stream(address) from None

    # ---- out

    async def publish(self, messages: Sequence[Outgoing]) -> list[Exception | None]:
        await self._connected()
        assert self._confirmations is not None  # noqa: S101  it is connected
        return await self._confirmations.publish(messages)

    # ---- the connection

    async def _connected(self) -> JetStreamContext:
        """Return the connection, made when it is first needed; a client that lost it connects again by itself."""
        async with self._connecting:
            if self._js is None or self._client is None or self._client.is_closed:
                self._bucket = None
                self._client, self._confirmations = await self._new_client()
                self._js = cast("JetStreamContext", cast("Any", self._client).jetstream(timeout=CONNECT_SECONDS))
                self._declared = False
            if not self._client.is_connected:
                raise BrokerError("nats", "does not answer", "It is connected again by itself; look at the server.")
            if not self._declared:
                # A cluster that has no leader yet takes connections, and no streams: then they are declared next time.
                await self._declare(self._js)
                self._declared = True
            return self._js

    async def _new_client(self) -> tuple[Client, Confirmations]:
        """Return a client that is connected, and listens for confirmations: without those it would be of no use."""
        client = Client()
        options: dict[str, Any] = {
            "servers": self._servers,
            "name": "mainspring",
            "connect_timeout": CONNECT_SECONDS,
            "max_reconnect_attempts": FOREVER,
            "reconnect_time_wait": RECONNECT_SECONDS,
            "error_cb": _heard,
            **self._connect,
        }
        try:
            await asyncio.wait_for(client.connect(**options), CONNECT_SECONDS)
            confirmations = Confirmations(client)
            await confirmations.open()
        except BaseException as error:
            with going_on("closing the connection to NATS"):
                await client.close()
            if isinstance(error, TimeoutError | OSError):
                raise BrokerError("nats", "cannot be reached", "Look at the server and the network.") from error
            raise
        return client, confirmations

    async def _declare(self, js: Any) -> None:
        for name, subjects in self._streams.items():
            checked_name("The stream's name", name)
            try:
                await js.stream_info(name)
            except NotFoundError:
                await js.add_stream(
                    StreamConfig(
                        name=name, subjects=list(subjects), storage=StorageType.FILE, num_replicas=self._replicas
                    )
                )


def consumer_of(address: str, group: str) -> str:
    """Return the name of the durable consumer of a group: no dots, spaces or wildcards, and no two alike.

    >>> consumer_of("orders.placed", "shop")
    'shop-orders-placed-0ce6d1b9'
    """
    readable = "".join(char if char.isascii() and char.isalnum() else "-" for char in f"{group} {address}")
    return f"{readable[:100]}-{sha256(f'{group} {address}'.encode()).hexdigest()[:8]}"


async def _heard(error: Exception) -> None:
    """Log a trouble that the client mends by itself."""
    log.info("nats: %s", error or type(error).__name__)
