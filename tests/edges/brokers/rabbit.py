"""RabbitMQ for tests: the one that MAINSPRING_TEST_RABBITMQ names, or one that runs here. No wheel brings any."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any, Final
from uuid import uuid4

import aio_pika
import pytest
from aiormq.abc import ChannelFrame
from pamqp import commands
from pamqp.body import ContentBody
from pamqp.header import ContentHeader
from yarl import URL

VARIABLE: Final = "MAINSPRING_TEST_RABBITMQ"
USUAL: Final = "amqp://guest:guest@127.0.0.1:5672/"
CONNECT_SECONDS: Final = 2


@cache
def rabbit_url() -> str:
    """Return the URL of a RabbitMQ, or skip the test with the reason why there is none."""
    url = os.environ.get(VARIABLE, USUAL)
    place = URL(url)
    try:
        socket.create_connection((place.host or "", place.port or 5672), timeout=CONNECT_SECONDS).close()
    except OSError as error:
        pytest.skip(f"no RabbitMQ at {place.host}:{place.port} ({error}); {VARIABLE} may name another")
    return url


def own_name() -> str:
    """Return a name that nobody else uses."""
    return f"mainspring-test-{uuid4().hex[:12]}"


@asynccontextmanager
async def channel() -> AsyncGenerator[aio_pika.abc.AbstractChannel]:
    """Talk to RabbitMQ past mainspring."""
    async with await aio_pika.connect(rabbit_url()) as connection, connection.channel(on_return_raises=True) as opened:
        yield opened


async def publish_without_id(opened: aio_pika.abc.AbstractChannel, queue: str, body: bytes) -> None:
    """Publish as clients in other languages do: aio-pika would give the message an id."""
    underlay: Any = await opened.get_underlay_channel()
    header = ContentHeader(body_size=len(body), properties=commands.Basic.Properties(delivery_mode=2))
    frames = [commands.Basic.Publish(routing_key=queue), header, ContentBody(body)]
    sent = underlay.create_future()
    await underlay.write_queue.put(
        ChannelFrame.marshall(channel_number=underlay.number, frames=frames, drain_future=sent)
    )
    await sent


@asynccontextmanager
async def queue_of_its_own() -> AsyncGenerator[str]:
    """Have the name of a queue, which is deleted in the end."""
    name = own_name()
    try:
        yield name
    finally:
        async with channel() as opened:
            await opened.queue_delete(name)
