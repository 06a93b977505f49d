"""Run both services, place orders, kill the payment service in the middle, and see that each order was settled once."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from uuid import uuid4

from examples.two_services.bank import LIMIT_CENTS, read_book
from mainspring.brokers import Broker, Outgoing
from mainspring.brokers.nats import NatsBroker

ROOT: Final = Path(__file__).parent.parent.parent
ORDERS: Final = "examples.two_services.orders:app"
PAYMENTS: Final = "examples.two_services.payments:app"
PLACED: Final = "shop.orders.placed"
SETTLED: Final = "shop.orders.settled"
PREFETCH: Final = 500
END_SECONDS: Final = 40
# Far above what it takes on a slow machine: an example that hangs must end and say so.
PATIENCE_SECONDS: Final = 120

Settled = Counter[tuple[str, str]]


class Service:
    """One of the two, as a process of its own: `mainspring worker MODULE:app`."""

    def __init__(self, address: str, environment: dict[str, str]) -> None:
        command = [sys.executable, "-m", "mainspring.cli", "worker", address, "--log-level", "error"]
        self._process = subprocess.Popen(command, cwd=ROOT, env=environment)  # noqa: S603  our own program

    def kill(self) -> None:
        """End it as a crash would."""
        self._process.kill()
        self._process.wait(END_SECONDS)

    def stop(self) -> None:
        """Ask it to finish what runs."""
        self._process.terminate()
        self._process.wait(END_SECONDS)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m examples.two_services", description=__doc__)
    parser.add_argument("--postgres", default="postgresql://postgres@localhost:5432/postgres", metavar="URL")
    parser.add_argument("--nats", default="nats://localhost:4222", metavar="URL")
    parser.add_argument("--rabbitmq", default="amqp://guest:guest@localhost:5672/", metavar="URL")
    parser.add_argument("--queue", default="payments", metavar="NAME", help="the queue of the payment service")
    parser.add_argument("--orders", type=int, default=200, metavar="N", help="how many orders to place")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="mainspring-two-services-") as folder:
        book = Path(folder) / "bank.jsonl"
        environment = {
            **os.environ,
            "ORDERS_DATABASE": _with_schema(asked.postgres, "orders"),
            "PAYMENTS_DATABASE": _with_schema(asked.postgres, "payments"),
            "NATS_URL": asked.nats,
            "RABBITMQ_URL": asked.rabbitmq,
            "PAYMENTS_QUEUE": asked.queue,
            "BANK_BOOK": str(book),
        }
        settled = asyncio.run(_drive(asked.nats, environment, asked.orders))
        return _tell(settled, asked.orders, book)


async def _drive(nats: str, environment: dict[str, str], count: int) -> Settled:
    run = uuid4().hex[:8]  # a second run finds the first one's orders in the database, and must not repeat them
    broker = NatsBroker(nats, streams={"SHOP": ["shop.>"]})
    await broker.open()
    orders, payments = Service(ORDERS, environment), Service(PAYMENTS, environment)
    settled = Settled()
    collecting = asyncio.ensure_future(_collect(broker, run, settled))
    try:
        await _place(broker, run, range(count // 2))
        await _until(settled, count // 4)
        payments.kill()
        print(f"payments: killed when {len(settled)} of {count} orders were settled")
        await _place(broker, run, range(count // 2, count))
        payments = Service(PAYMENTS, environment)
        await _until(settled, count)
    finally:
        collecting.cancel()
        await asyncio.gather(collecting, return_exceptions=True)
        orders.stop()
        payments.stop()
        await broker.close()
    return settled


async def _place(broker: Broker, run: str, numbers: range) -> None:
    """Order as somebody who knows of nothing but CloudEvents."""
    messages: list[Outgoing] = []
    for number in numbers:
        id = f"{run}-{number}"
        order = {
            "order_id": id,
            "amount_cents": 4_200 if number % 10 else LIMIT_CENTS + 1,
            "card": "stolen" if number % 7 == 3 else "visa",
        }
        headers = {"ce-specversion": "1.0", "ce-id": id, "ce-source": "/shopper", "ce-type": "PlaceOrder"}
        headers["content-type"] = "application/json"
        messages.append(Outgoing(PLACED, id, json.dumps(order).encode(), headers))
    for outcome in await broker.publish(messages):
        if outcome is not None:
            raise outcome


async def _collect(broker: Broker, run: str, settled: Settled) -> None:
    """Listen to what becomes of the orders of this run."""
    subscription = await broker.subscribe(SETTLED, f"shopper-{run}", PREFETCH)
    try:
        while True:
            deliveries = await subscription.receive(PREFETCH, 1)
            for delivery in deliveries:
                order_id = json.loads(delivery.body)["order_id"]
                if order_id.startswith(run):
                    settled[order_id, delivery.headers["ce-type"]] += 1
            await subscription.acknowledge(deliveries)
    finally:
        await subscription.close()


async def _until(settled: Settled, count: int) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(settled) < count:  # noqa: ASYNC110  what it waits for is counted elsewhere
            await asyncio.sleep(0.05)


def _tell(settled: Settled, count: int, book: Path) -> int:
    confirmed = {order for order, type in settled if type == "OrderConfirmed"}
    rejected = {order for order, type in settled if type == "OrderRejected"}
    charged = Counter(charge["order_id"] for charge in read_book(book))
    doubled = [order for order, times in charged.items() if times > 1] + sorted(confirmed & rejected)
    lost = count - len(confirmed | rejected)
    strange = charged.keys() ^ confirmed
    print(f"orders: {len(confirmed)} confirmed, {len(rejected)} rejected, {lost} lost")
    print(f"bank: {charged.total()} charges, {len(doubled)} doubled, {len(strange)} without a confirmed order")
    return int(bool(doubled or lost or strange))


def _with_schema(url: str, schema: str) -> str:
    """Return where one of the services keeps its tables: in a schema of its own."""
    return f"{url}_{schema}" if "schema=" in url else f"{url}{'&' if '?' in url else '?'}schema={schema}"


if __name__ == "__main__":
    sys.exit(main())
