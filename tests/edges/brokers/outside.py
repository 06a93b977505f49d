"""Brokers as other programs see them: entries written and read by the brokers' own clients, past mainspring."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final
from uuid import uuid4

import aiormq
import nats
from confluent_kafka import Consumer, Producer, TopicPartition
from pamqp.commands import Basic
from redis.asyncio import Redis

from mainspring.brokers.kafka import KafkaBroker
from mainspring.brokers.nats import NatsBroker
from mainspring.brokers.port import Broker
from mainspring.brokers.rabbitmq import RabbitBroker
from mainspring.brokers.redis import RedisBroker
from tests.edges.brokers import queues
from tests.edges.brokers.kafka_mock import KafkaMock
from tests.edges.brokers.rabbit import rabbit_url
from tests.edges.brokers.servers import nats_url, redis_url
from tests.edges.brokers.wire_page import Place, queue_arguments

Parts = Mapping[Place, bytes]
"""An entry: all that stands in it, by where it stands."""

# pamqp's name of a property, where AMQP's would hide a builtin.
OWN_NAMES: Final = {"type": "message_type"}
AMQP_NAMES: Final = {own: name for name, own in OWN_NAMES.items()}
POLL_SECONDS: Final = 0.05
FLUSH_SECONDS: Final = 30


class Outside:
    """A broker by its own client. `name` is its column on the page; addresses begin with a prefix of its own."""

    name: str
    needs_id = False

    def __init__(self) -> None:
        self.prefix = f"wire{uuid4().hex[:10]}"

    def broker(self) -> Broker:
        """Return mainspring's adapter to it."""
        raise NotImplementedError

    def address(self, name: str) -> str:
        """Return an address of this test's own."""
        return f"{self.prefix}.{name}"

    @asynccontextmanager
    async def ready(self, *addresses: str) -> AsyncGenerator[None]:
        """Have these addresses there, and a client that is connected."""
        raise NotImplementedError
        yield

    async def put(self, address: str, parts: Parts) -> dict[str, str]:
        """Put an entry there, just as it is given; return what stands for placeholders in the broker's id for it."""
        raise NotImplementedError

    async def entries(self, address: str) -> list[Parts]:
        """Return what is there."""
        raise NotImplementedError


class OutsideRedis(Outside):
    name = "Redis, Valkey"
    client: Any

    def broker(self) -> Broker:
        return RedisBroker(redis_url())

    @asynccontextmanager
    async def ready(self, *addresses: str) -> AsyncGenerator[None]:
        async with Redis.from_url(redis_url()) as self.client:
            yield

    async def put(self, address: str, parts: Parts) -> dict[str, str]:
        assert {kind for kind, _ in parts} == {"field"}
        id = await self.client.xadd(address, {name: value for (_, name), value in parts.items()})
        return {"entry": id.decode()}

    async def entries(self, address: str) -> list[Parts]:
        found = await self.client.xrange(address)
        return [{("field", name.decode()): value for name, value in fields.items()} for _, fields in found]


class OutsideNats(Outside):
    name = "NATS"
    client: Any

    def broker(self) -> Broker:
        return NatsBroker(nats_url())

    @asynccontextmanager
    async def ready(self, *addresses: str) -> AsyncGenerator[None]:
        async with await nats.connect(nats_url()) as self.client:
            await self.client.jetstream().add_stream(name=self.prefix, subjects=list(addresses))
            try:
                yield
            finally:
                await self.client.jetstream().delete_stream(self.prefix)

    async def put(self, address: str, parts: Parts) -> dict[str, str]:
        js = self.client.jetstream()
        headers = {name: value.decode() for (kind, name), value in parts.items() if kind == "header"}
        assert len(headers) == len(parts) - 1
        confirmed = await js.publish(address, parts["payload", ""], headers=headers)
        created = (await js.stream_info(self.prefix)).created
        return {"stream": self.prefix, "created": f"{created:%Y%m%dT%H%M%S.%f}", "sequence": str(confirmed.seq)}

    async def entries(self, address: str) -> list[Parts]:
        js = self.client.jetstream()
        last = (await js.stream_info(self.prefix)).state.last_seq
        found = [await js.get_msg(self.prefix, number) for number in range(1, last + 1)]
        return [
            {("payload", ""): each.data or b"", **{("header", k): v.encode() for k, v in (each.headers or {}).items()}}
            for each in found
            if each.subject == address
        ]


class OutsideRabbit(Outside):
    name = "RabbitMQ"
    needs_id = True
    channel: Any

    def broker(self) -> Broker:
        return RabbitBroker(rabbit_url())

    @asynccontextmanager
    async def ready(self, *addresses: str) -> AsyncGenerator[None]:
        connection: Any = await aiormq.connect(rabbit_url())
        self._came: dict[str, list[Parts]] = {}
        try:
            self.channel = await connection.channel()
            version = int(connection.server_properties["version"].partition(".")[0])
            for address in addresses:
                await self.channel.queue_declare(address, durable=True, arguments=queue_arguments(version))
            yield
        finally:
            last = await connection.channel()  # a test that failed may have cost the other one
            for address in addresses:
                await last.queue_delete(address)
            await connection.close()

    async def put(self, address: str, parts: Parts) -> dict[str, str]:
        properties: dict[str, Any] = {
            OWN_NAMES.get(name, name): value.decode() for (kind, name), value in parts.items() if kind == "property"
        }
        properties["headers"] = {name: value.decode() for (kind, name), value in parts.items() if kind == "header"}
        assert len(properties) + len(properties["headers"]) == len(parts)
        body = parts["body", ""]
        await self.channel.basic_publish(body, routing_key=address, properties=Basic.Properties(**properties))
        return {"message_id": properties.get("message_id", "")}

    async def entries(self, address: str) -> list[Parts]:
        """Return what has come so far: a queue with a single active consumer cannot be looked into otherwise."""
        if address not in self._came:
            self._came[address] = []
            await self.channel.basic_consume(address, self._take, consumer_tag=address)
        return self._came[address]

    async def _take(self, message: Any) -> None:
        properties, parts = message.header.properties, {("body", ""): message.body}
        for name in Basic.Properties.attributes():
            value = getattr(properties, name)
            if name == "headers":
                parts |= {("header", header): str(text).encode() for header, text in (value or {}).items()}
            elif value not in (None, ""):
                parts["property", AMQP_NAMES.get(name, name)] = str(value).encode()
        self._came[message.delivery.consumer_tag].append(parts)


class OutsideKafka(Outside):
    name = "Kafka"

    def __init__(self) -> None:
        super().__init__()
        self.mock = KafkaMock()

    def broker(self) -> Broker:
        # The mock lets who asks for news wait to the end of the first.
        return KafkaBroker(f"kafka://{self.mock.servers}", consumer={"fetch_max_wait_ms": 20})

    @asynccontextmanager
    async def ready(self, *addresses: str) -> AsyncGenerator[None]:
        for address in addresses:
            self.mock.create(address)
        self.producer = Producer({"bootstrap.servers": self.mock.servers})
        self.consumer = Consumer(self.looking("nobody"))
        try:
            yield
        finally:
            self.consumer.close()
            self.mock.close()

    def looking(self, group: str) -> dict[str, Any]:
        """Return a consumer's settings."""
        return {"bootstrap.servers": self.mock.servers, "group.id": group, "enable.auto.commit": False}

    async def put(self, address: str, parts: Parts) -> dict[str, str]:
        headers: list[Any] = [(name, value) for (kind, name), value in parts.items() if kind == "header"]
        put: list[Any] = []
        self.producer.produce(
            address,
            parts["value", ""],
            key=parts.get(("key", "")),
            headers=headers,
            on_delivery=lambda *it: put.append(it),
        )
        assert await asyncio.to_thread(self.producer.flush, FLUSH_SECONDS) == 0
        ((error, record),) = put
        assert error is None
        return {"partition": str(record.partition()), "offset": str(record.offset())}

    async def entries(self, address: str) -> list[Parts]:
        return await asyncio.to_thread(self._entries, address)

    def _entries(self, topic: str) -> list[Parts]:
        place = TopicPartition(topic, 0, 0)
        _, end = self.consumer.get_watermark_offsets(place, FLUSH_SECONDS)
        self.consumer.assign([place])
        found: list[Parts] = []
        while len(found) < end:
            record: Any = self.consumer.poll(POLL_SECONDS)
            if record is not None and record.error() is None:
                parts: dict[Place, bytes] = {("value", ""): record.value()}
                parts |= {("header", name): value for name, value in record.headers() or []}
                found.append(parts if record.key() is None else {**parts, ("key", ""): record.key()})
        return found


class OutsideSqs(Outside):
    name = "Amazon SQS"

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[str, list[Parts]] = {}

    def broker(self) -> Broker:
        return queues.sqs_broker()

    def address(self, name: str) -> str:
        return queues.queue_of(super().address(name))

    @asynccontextmanager
    async def ready(self, *addresses: str) -> AsyncGenerator[None]:
        self.urls = {address: await queues.create(address) for address in addresses}
        try:
            yield
        finally:
            for url in self.urls.values():
                await asyncio.to_thread(queues.client().delete_queue, QueueUrl=url)

    async def put(self, address: str, parts: Parts) -> dict[str, str]:
        given = {name: value.decode() for (kind, name), value in parts.items() if kind == "header"}
        assert len(given) == len(parts) - 1
        attributes = {name: {"DataType": "String", "StringValue": value} for name, value in given.items()}
        message = {"MessageGroupId": "k", "MessageDeduplicationId": uuid4().hex, "MessageAttributes": attributes}
        body = parts["body", ""].decode()
        put = await asyncio.to_thread(
            lambda: queues.client().send_message(QueueUrl=self.urls[address], MessageBody=body, **message)
        )
        return {"message": put["MessageId"]}

    async def entries(self, address: str) -> list[Parts]:
        """Return what has come so far: of a queue everything can be received once, and each only when it is deleted."""
        seen = self._seen.setdefault(address, [])
        seen += await asyncio.to_thread(self._entries, self.urls[address])
        return seen

    def _entries(self, url: str) -> list[Parts]:
        asked = {"MessageAttributeNames": ["All"], "MessageSystemAttributeNames": ["All"], "MaxNumberOfMessages": 10}
        found = queues.client().receive_message(QueueUrl=url, **asked).get("Messages", [])
        for message in found:
            queues.client().delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return [_sqs_parts(message) for message in found]


def _sqs_parts(message: Mapping[str, Any]) -> Parts:
    parts: dict[Place, bytes] = {("body", ""): message["Body"].encode()}
    for name, value in message["MessageAttributes"].items():
        if name == "headers":
            parts |= {("header", own): text.encode() for own, text in json.loads(value["StringValue"]).items()}
        else:
            parts["attribute", name] = value["StringValue"].encode()
    system = message["Attributes"]
    parts["property", "MessageGroupId"] = system["MessageGroupId"].encode()
    parts["property", "MessageDeduplicationId"] = system["MessageDeduplicationId"].encode()
    return parts
