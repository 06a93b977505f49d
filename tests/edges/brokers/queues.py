"""FIFO queues for tests, at moto's server, or in the region of AWS that MAINSPRING_TEST_SQS names."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any, Final
from uuid import uuid4

from botocore.session import get_session  # pyright: ignore[reportMissingTypeStubs]  it has none

from mainspring.brokers.sqs import SqsBroker
from tests.edges.brokers.servers import sqs_endpoint

VARIABLE: Final = "MAINSPRING_TEST_SQS"
REGION: Final = "eu-west-1"
KEYS: Final = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
FIFO: Final = {"FifoQueue": "true"}


def sqs_broker(**settings: Any) -> SqsBroker:
    """Return a broker at moto's server."""
    given: dict[str, Any] = {"poll_seconds": 1, "connect": KEYS, **settings}
    return SqsBroker(f"sqs://{REGION}?endpoint={sqs_endpoint()}", **given)


@cache
def client(region: str | None = None) -> Any:
    """Return botocore's client, to moto's server or to a region of AWS."""
    session: Any = get_session()
    if region is not None:
        return session.create_client("sqs", region_name=region)
    return session.create_client("sqs", region_name=REGION, endpoint_url=sqs_endpoint(), **KEYS)


def queue_of(address: str) -> str:
    """Return the name of a queue for an address, which may have dots."""
    return f"{address.replace('.', '-')}.fifo"


def own_name() -> str:
    """Return the name of a queue that nobody else uses."""
    return f"mainspring-test-{uuid4().hex[:12]}.fifo"


async def create(name: str, region: str | None = None, **attributes: str) -> str:
    """Make a queue, and return its URL."""
    made = await asyncio.to_thread(client(region).create_queue, QueueName=name, Attributes={**FIFO, **attributes})
    return made["QueueUrl"]


@asynccontextmanager
async def queue(**attributes: str) -> AsyncGenerator[str]:
    """Have a queue, which is deleted in the end."""
    name = own_name()
    url = await create(name, **attributes)
    try:
        yield name
    finally:
        await asyncio.to_thread(client().delete_queue, QueueUrl=url)
