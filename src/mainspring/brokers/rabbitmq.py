"""RabbitMQ as a broker, by aio-pika.

An address is a queue (`orders`), or an exchange and a routing key (`shop/orders.placed`). Publishing to a queue goes
through the default exchange. Subscribing to an exchange and key gives each group a queue of its own, bound to it;
subscribing to a queue means that queue, whatever the group: in AMQP a queue is what its consumers share.

Queues are declared as quorum queues with a single active consumer: the log is synced to disk before a publisher gets
its confirmation, and one consumer at a time gets deliveries, in order, until it is gone. Publishing is confirmed, and
mandatory: what no queue would take is an error and not lost.

AMQP has no name of its own for a message. Where the sender gives none (neither a message id nor an attribute of the
envelope), a redelivery cannot be distinguished from a second message with the same content: see `identify`.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, Literal

from mainspring.brokers.adapters import going_on, installed, published_by_address
from mainspring.brokers.port import Outgoing, Subscription
from mainspring.errors import BrokerError, SettingError
from mainspring.logs import logger

with installed("rabbitmq", "aio-pika", "aio_pika", "aiormq", "pamqp", "yarl"):
    import aio_pika
    from aio_pika.abc import AbstractChannel, AbstractConnection
    from aio_pika.exceptions import ChannelNotFoundEntity, ChannelPreconditionFailed, DeliveryError, PublishError
    from aiormq.abc import AbstractChannel as Underlay
    from pamqp.commands import Basic
    from yarl import URL

    from mainspring.brokers.rabbitmq_subscription import RabbitSubscription

CONNECT_SECONDS: Final = 10
CONFIRM_SECONDS: Final = 30
CLOSE_SECONDS: Final = 5
HEARTBEAT_SECONDS: Final = 10
# An AMQP connection has 2,047 channels by default. One that was closed to make room is opened again when it is needed.
CHANNELS: Final = 100
NAME_BYTES: Final = 255
NAME: Final = re.compile(r"[a-zA-Z0-9\-_.:@#,/+ ]*")
UNLIMITED_SINCE: Final = 4
PERSISTENT: Final = 2

log = logger("mainspring.brokers")


class RabbitBroker:
    """A broker by the URL of a RabbitMQ, such as `amqp://user:password@host:5672/vhost`.

    `declare=False` expects queues and exchanges to be there; such a queue must have `x-single-active-consumer`, else
    several workers would take its messages out of their order. `arguments` are for queues that are declared, beside
    their own: `{"x-queue-type": "classic"}`. `identify="content"` gives a message without an id the digest of its
    content for one: redeliveries are recognised, and of two equal messages the second is taken for one.

    >>> RabbitBroker("amqp://guest:guest@localhost/", declare=False)
    RabbitBroker('amqp://guest:***@localhost/')
    """

    def __init__(
        self,
        url: str,
        *,
        declare: bool = True,
        arguments: Mapping[str, Any] | None = None,
        identify: Literal["message id", "content"] = "message id",
    ) -> None:
        self._url = _checked(url)
        if identify not in ("message id", "content"):
            raise SettingError("RabbitBroker.identify", identify, 'Use "message id" or "content".')
        self._declare = declare
        self._arguments = {**arguments} if arguments is not None else {}
        self._by_content = identify == "content"
        self._subscriptions: set[RabbitSubscription] = set()
        self._connecting = asyncio.Lock()
        self._connection: AbstractConnection | None = None
        self._channels: OrderedDict[str, AbstractChannel] = OrderedDict()
        self._busy: Counter[str] = Counter()
        self._exchanges: set[str] = set()

    def __repr__(self) -> str:
        shown = self._url.with_password("***") if self._url.password else self._url
        return f"RabbitBroker({str(shown.with_query(None))!r})"

    async def open(self) -> None:
        """Nothing to prepare: it connects on first use."""

    async def close(self) -> None:
        for subscription in tuple(self._subscriptions):
            await subscription.close()
        connection, self._connection = self._connection, None
        self._channels.clear()
        self._exchanges.clear()
        if connection is not None:
            await _closed(connection)

    # ---- in

    async def subscribe(self, address: str, group: str, prefetch: int) -> Subscription:
        # Each has a connection of its own: RabbitMQ stops reading from one that publishes too much, and with it the
        # acknowledgements of all that share it.
        connection = await self._connected()
        try:
            queue = await self._queue(connection, address, group)
            subscription = RabbitSubscription(connection, queue, self._identity_of if self._by_content else None)
            await subscription.begin(prefetch, self._subscriptions.discard)
        except BaseException:
            await _closed(connection)
            raise
        self._subscriptions.add(subscription)
        return subscription

    async def lag(self, address: str, group: str) -> int | None:
        """Return how many wait in the queue, and with subscriptions of this process.

        AMQP does not report what is with another process's consumer, so that is not counted.
        """
        queue = queue_of(address, group)
        channel = await (await self._publishing()).channel()
        try:
            waiting = (await channel.declare_queue(queue, passive=True)).declaration_result.message_count
        except ChannelNotFoundEntity:
            return None
        finally:
            with going_on("closing a channel of RabbitMQ"):
                await channel.close()
        return (waiting or 0) + sum(own.held for own in self._subscriptions if own.queue == queue)

    async def _queue(self, connection: AbstractConnection, address: str, group: str) -> str:
        """Return the queue to consume from, which is there when this returns."""
        name = queue_of(address, group)
        exchange, key = place_of(address)
        channel = await connection.channel()
        try:
            await self._declared(channel, name, connection)
            if exchange and self._declare:
                await self._exchange(connection, exchange)
                await (await channel.get_queue(name, ensure=False)).bind(exchange, key)
        finally:
            with going_on("closing a channel of RabbitMQ"):
                await channel.close()
        return name

    async def _declared(self, channel: AbstractChannel, name: str, connection: AbstractConnection) -> None:
        arguments = {**queue_arguments(_version(connection)), **self._arguments}
        try:
            if self._declare:
                await channel.declare_queue(name, durable=True, arguments=arguments)
            else:
                await channel.declare_queue(name, passive=True)
        except ChannelPreconditionFailed as error:
            raise BrokerError(
                "rabbitmq",
                f"has a queue {name!r} that was declared otherwise ({error})",
                "Give RabbitBroker the queue's own `arguments`, or `declare=False` if it has a single active consumer.",
            ) from error
        except ChannelNotFoundEntity as error:
            raise BrokerError("rabbitmq", f"has no queue {name!r}", "Create it, or use `declare=True`.") from error

    def _identity_of(self, queue: str, message: aio_pika.abc.AbstractIncomingMessage) -> str:
        return f"rabbitmq:{queue}/{_digest(message)}"

    # ---- out

    async def publish(self, messages: Sequence[Outgoing]) -> list[Exception | None]:
        return await published_by_address(messages, self._published)

    async def _published(self, address: str, messages: list[Outgoing]) -> list[Exception | None]:
        self._busy[address] += 1
        try:
            exchange, key = place_of(address)
            underlay = await self._channel(address, exchange)
            return await asyncio.gather(*(_confirmed(underlay, exchange, key, message) for message in messages))
        except Exception as error:  # noqa: BLE001  the outcome of this address, and of no other
            return [error] * len(messages)
        finally:
            self._busy[address] -= 1

    async def _channel(self, address: str, exchange: str) -> Underlay:
        """Return a channel for one address alone.

        aiormq matches a return to its publication by the message id. Those of one address have ids of their
        own, while the same message may go to two addresses at once.
        """
        async with self._connecting:
            found = self._channels.get(address)
            if found is None or found.is_closed:
                connection = await self._publishing_alone()
                await self._there(connection, address, exchange)
                found = await connection.channel(on_return_raises=True)
                self._channels[address] = found
            self._channels.move_to_end(address)
            idle = [known for known in self._channels if not self._busy[known]]
            for known in idle[: max(0, len(self._channels) - CHANNELS)]:
                await self._channels.pop(known).close()
                del self._busy[known]
            return await found.get_underlay_channel()

    async def _there(self, connection: AbstractConnection, address: str, exchange: str) -> None:
        """Make sure that messages can go there: publishing to a missing exchange closes the whole connection."""
        if exchange:
            if exchange not in self._exchanges:
                await self._exchange(connection, exchange)
                self._exchanges.add(exchange)
        elif self._declare:
            channel = await connection.channel()
            try:
                await self._declared(channel, address, connection)
            finally:
                with going_on("closing a channel of RabbitMQ"):
                    await channel.close()

    async def _exchange(self, connection: AbstractConnection, name: str) -> None:
        channel = await connection.channel()
        try:
            await channel.declare_exchange(name, passive=True)
        except ChannelNotFoundEntity as error:
            if not self._declare:
                fix = "Create it, or use `declare=True`."
                raise BrokerError("rabbitmq", f"has no exchange {name!r}", fix, of_message=True) from error
            channel = await connection.channel()
            await channel.declare_exchange(name, aio_pika.ExchangeType.TOPIC, durable=True)
        finally:
            with going_on("closing a channel of RabbitMQ"):
                await channel.close()

    # ---- connections

    async def _publishing(self) -> AbstractConnection:
        async with self._connecting:
            return await self._publishing_alone()

    async def _publishing_alone(self) -> AbstractConnection:
        """Return the connection that is not for consuming; a new one where the last was lost."""
        if self._connection is None or self._connection.is_closed or _is_lost(self._connection):
            lost, self._connection = self._connection, None
            self._channels.clear()
            self._exchanges.clear()
            if lost is not None:
                await _closed(lost)
            self._connection = await self._connected()
        return self._connection

    async def _connected(self) -> AbstractConnection:
        return await aio_pika.connect(self._url, timeout=CONNECT_SECONDS)


def place_of(address: str) -> tuple[str, str]:
    """Return the exchange and the routing key of an address.

    >>> place_of("orders"), place_of("shop/orders.placed")
    (('', 'orders'), ('shop', 'orders.placed'))
    """
    exchange, slash, key = address.rpartition("/")
    if not key or (slash and not exchange) or any(len(part.encode()) > NAME_BYTES for part in (exchange, key)):
        fix = f"Write the name of a queue, or exchange/routing.key, with at most {NAME_BYTES} bytes each."
        raise SettingError("An address in RabbitMQ", address, fix)
    _check_name(exchange)
    return exchange, key


def queue_of(address: str, group: str) -> str:
    """Return the queue from which a group consumes.

    >>> queue_of("orders", "billing"), queue_of("shop/orders.*", "billing")
    ('orders', 'billing:shop/orders.+')
    """
    exchange, key = place_of(address)
    name = f"{group}:{address}".replace("*", "+") if exchange else key
    _check_name(name)
    return name


def _check_name(name: str) -> None:
    if len(name.encode()) > NAME_BYTES or not NAME.fullmatch(name):
        fix = f"Use at most {NAME_BYTES} letters, digits, spaces and -_.:@#,/+ for queues, exchanges and groups."
        raise SettingError("A name in RabbitMQ", name, fix)


def queue_arguments(version: int) -> dict[str, Any]:
    """Return how queues are declared, by RabbitMQ's major version.

    >>> sorted(queue_arguments(3)), queue_arguments(4)["x-delivery-limit"]
    (['x-queue-type', 'x-single-active-consumer'], -1)
    """
    arguments: dict[str, Any] = {"x-queue-type": "quorum", "x-single-active-consumer": True}
    if version >= UNLIMITED_SINCE:
        # Since then a quorum queue drops what came back twenty times, unless it is set not to. To those before, -1
        # would mean to drop it at once.
        arguments["x-delivery-limit"] = -1
    return arguments


def name_of(id: str) -> str:
    """Return an id as a message id of AMQP, which has few bytes. The envelope carries it whole.

    >>> name_of("OrderFulfilment/o-1/7"), len(name_of("x" * 300))
    ('OrderFulfilment/o-1/7', 72)
    """
    return id if len(id.encode()) <= NAME_BYTES else f"blake2b:{blake2b(id.encode(), digest_size=32).hexdigest()}"


async def _confirmed(channel: Any, exchange: str, key: str, message: Outgoing) -> Exception | None:
    """Publish one, and return None when RabbitMQ has it safely."""
    headers = {name.lower(): value for name, value in message.headers.items()}
    type_name = headers.get("ce-type", "")
    properties = Basic.Properties(
        message_id=name_of(message.id),
        content_type=headers.pop("content-type", None),
        # It has as few bytes as a name; the header carries it in any case.
        message_type=type_name if 0 < len(type_name.encode()) <= NAME_BYTES else None,
        delivery_mode=PERSISTENT,
        headers={**headers},
    )
    try:
        await channel.basic_publish(
            message.body,
            exchange=exchange,
            routing_key=key,
            properties=properties,
            mandatory=True,
            timeout=CONFIRM_SECONDS,
            wait=False,
        )
    except PublishError:
        fix = "Bind a queue to it, or create the queue."
        return BrokerError("rabbitmq", f"has no queue for {message.address!r}", fix, of_message=True)
    except DeliveryError:
        # A queue that is being declared by another has no leader yet; one that is full may refuse more.
        fix = "It is published again under the same id; look at the queue if that goes on."
        return BrokerError("rabbitmq", f"could not take a message for {message.address!r} now", fix)
    except asyncio.CancelledError:
        # A channel that is closed cancels its waiters, though their tasks were not cancelled.
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return BrokerError("rabbitmq", "was lost before it confirmed", "It is published again under the same id.")
    except TimeoutError:
        fix = "It is published again under the same id; look whether RabbitMQ has an alarm."
        return BrokerError("rabbitmq", f"has not confirmed within {CONFIRM_SECONDS} s", fix)
    except Exception as error:  # noqa: BLE001  the outcome of this message, and of no other
        return error
    return None


def _digest(message: aio_pika.abc.AbstractIncomingMessage) -> str:
    """Return a digest of all that its sender said."""
    digest = blake2b(message.body, digest_size=20)
    said = {name: value for name, value in (message.headers or {}).items() if name not in _BROKERS_OWN}
    digest.update(repr(sorted(said.items(), key=lambda item: item[0])).encode())
    for value in (message.content_type, message.type, message.correlation_id, message.reply_to, message.timestamp):
        digest.update(repr(value).encode())
    return digest.hexdigest()


_BROKERS_OWN: Final = frozenset(
    {
        "x-acquired-count",
        "x-death",
        "x-delivery-count",
        "x-first-death-exchange",
        "x-first-death-queue",
        "x-first-death-reason",
        "x-last-death-exchange",
        "x-last-death-queue",
        "x-last-death-reason",
    }
)


def _checked(url: str) -> URL:
    fix = "Write amqp://user:password@host:5672/vhost, and %2F for a / in the vhost's name."
    try:
        found = URL(url)
    except (ValueError, TypeError):
        raise SettingError("RabbitBroker.url", "no URL", fix) from None
    if found.scheme not in ("amqp", "amqps") or not found.host:
        raise SettingError("RabbitBroker.url", found.scheme, fix)
    return found if "heartbeat" in found.query else found.update_query(heartbeat=str(HEARTBEAT_SECONDS))


def _version(connection: AbstractConnection) -> int:
    """Return RabbitMQ's major version, 0 where it does not say."""
    transport: Any = connection.transport
    told = transport.connection.server_properties.get("version") if transport is not None else None
    major = (told.decode() if isinstance(told, bytes) else str(told)).partition(".")[0]
    return int(major) if major.isdecimal() else 0


def _is_lost(connection: AbstractConnection) -> bool:
    """Return True if the connection below was lost; aio-pika's own flag only says whether it was asked to close."""
    transport: Any = connection.transport
    return transport is None or transport.connection.is_closed


async def _closed(connection: AbstractConnection) -> None:
    try:
        async with asyncio.timeout(CLOSE_SECONDS):
            await connection.close()
    except Exception as error:  # noqa: BLE001  it is closed by losing it, then
        log.debug("a connection to RabbitMQ was not closed in order: %s", error)
