"""The example of two services runs: PostgreSQL and NATS from wheels, RabbitMQ where one runs."""

import asyncio
from pathlib import Path

import pytest

from examples.two_services import __main__ as example
from tests.edges.brokers.rabbit import channel, own_name, rabbit_url
from tests.edges.brokers.servers import Unavailable, nats_server
from tests.support.postgres.server import postgres_url

ORDERS = 40


def test_two_services_settle_every_order_once_though_one_is_killed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    queue, rabbit, postgres = own_name(), rabbit_url(), postgres_url(tmp_path)
    server = None
    try:
        server = nats_server()
        server.start()
        places = [
            "--postgres",
            postgres,
            "--nats",
            f"nats://127.0.0.1:{server.port}",
            "--rabbitmq",
            rabbit,
            "--queue",
            queue,
        ]
        code = example.main([*places, "--orders", str(ORDERS)])
    except Unavailable as reason:
        pytest.skip(f"no NATS: {reason}")
    finally:
        if server is not None:
            server.remove()
        asyncio.run(_delete(queue))
    told = capfd.readouterr()
    assert code == 0, told
    assert "payments: killed when" in told.out
    assert "orders: 31 confirmed, 9 rejected, 0 lost" in told.out
    assert "bank: 31 charges, 0 doubled" in told.out


async def _delete(queue: str) -> None:
    async with channel() as opened:
        await opened.queue_delete(queue)
