"""Two small services that speak through brokers: orders, and the payments that they ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from msgspec import json

from mainspring import Complete, Mainspring, Publish, Reply, Retry, Send, Workflow
from mainspring.brokers import Brokers
from mainspring.brokers.memory import MemoryBroker
from mainspring.brokers.port import Broker, Outgoing
from mainspring.core.decisions import Decisions
from mainspring.core.events import Event, Received
from tests.support.waiting import until


@dataclass(frozen=True)
class PlaceOrder:
    order_id: str
    amount: int


@dataclass(frozen=True)
class Remark:
    order_id: str
    text: str


@dataclass(frozen=True)
class ChargeCard:
    order_id: str
    amount: int


@dataclass(frozen=True)
class CardCharged:
    order_id: str


@dataclass(frozen=True)
class OrderPaid:
    order_id: str


@dataclass(frozen=True)
class Placed:
    remarks: tuple[str, ...] = ()


class Orders(Workflow[PlaceOrder | Remark | CardCharged, Placed, ChargeCard | OrderPaid]):
    """Charges what was ordered, collects remarks in their order, and tells when it is paid."""

    begins = PlaceOrder
    initial_state = Placed()

    def route(self, message: PlaceOrder | Remark | CardCharged, /) -> str | None:
        if message.order_id == "broken":
            raise ValueError("no such order")
        return None if message.order_id == "nobody's" else message.order_id

    def decide(
        self, message: PlaceOrder | Remark | CardCharged, state: Placed, /
    ) -> Decisions[Any, ChargeCard | OrderPaid] | None:
        match message:
            case PlaceOrder(order_id, amount):
                return [Send(ChargeCard(order_id, amount))]
            case Remark():
                return []
            case CardCharged(order_id):
                return [Publish(OrderPaid(order_id)), Complete()]

    def evolve(self, state: Placed, event: Event[Any, Any], /) -> Placed | None:
        match event:
            case Received(Remark(_, text)):
                return Placed((*state.remarks, text))


class Payments(Workflow[ChargeCard, Placed, CardCharged]):
    """Charges, and replies to whoever asked."""

    initial_state = Placed()

    def route(self, message: ChargeCard, /) -> str | None:
        return message.order_id

    def decide(self, message: ChargeCard, state: Placed, /) -> Decisions[ChargeCard, CardCharged] | None:
        return [Reply(CardCharged(message.order_id)), Complete()]

    def evolve(self, state: Placed, event: Event[Any, Any], /) -> Placed | None:
        return None


QUICK = Retry(first=timedelta(milliseconds=10), cap=timedelta(milliseconds=50), max_attempts=1_000)


def orders(url: str, broker: Broker, **app_options: Any) -> tuple[Mainspring, Brokers]:
    """Return the order service: commands in at `orders`, payments out and back, what was paid out to `events`."""
    app = Mainspring(url, **app_options)
    app.add(Orders())
    brokers = Brokers(app, "shop")
    brokers.add("main", broker)
    brokers.endpoint("orders", "main", "orders.in")
    brokers.endpoint("payments", "main", "payments.in", replies="paid")
    brokers.endpoint("paid", "main", "payments.out")
    brokers.endpoint("events", "main", "orders.out")
    brokers.receive("orders", PlaceOrder, Remark)
    brokers.receive("paid", CardCharged)
    brokers.send(ChargeCard, to="payments", retry=QUICK, breaker=None)
    brokers.publish(OrderPaid, to="events", retry=QUICK)
    return app, brokers


def payments(url: str, broker: Broker) -> Mainspring:
    """Return the payment service: what it is asked comes in at `payments.in`, its replies go to `payments.out`."""
    app = Mainspring(url)
    app.add(Payments())
    brokers = Brokers(app, "bank")
    brokers.add("main", broker)
    brokers.endpoint("asked", "main", "payments.in", replies="answers")
    brokers.endpoint("answers", "main", "payments.out")
    brokers.receive("asked", ChargeCard)
    return app


def message(address: str, id: str, body: Any, type: str = "PlaceOrder", **attributes: str) -> Outgoing:
    """Return a message as another service would send it; `body` may be bytes that are no message at all."""
    headers = {"ce-specversion": "1.0", "ce-id": id, "ce-source": "/door", "ce-type": type}
    headers |= {f"ce-{name}": value for name, value in attributes.items()}
    raw = body if isinstance(body, bytes) else json.encode(body)
    return Outgoing(address, f"{address} {id} {raw!r}", raw, headers, key="k")


async def confirmed(broker: Broker, messages: Sequence[Outgoing]) -> None:
    """Publish as every sender has to: again, until the broker has confirmed all of them.

    A broker may refuse for a moment, as RabbitMQ does where a queue is being declared by another and has no leader yet.
    """

    async def all_taken() -> bool:
        return await broker.publish(messages) == [None] * len(messages)

    await until(all_taken)


async def drained(broker: Broker, address: str, group: str = "shop") -> None:
    """Wait until everything at an address was acknowledged."""

    async def none_left() -> bool:
        return await broker.lag(address, group) == 0

    await until(none_left)


def remarks(count: int, order: str = "o-1") -> list[Outgoing]:
    """Return an order and so many remarks on it, numbered."""
    numbered = [message("orders.in", f"r-{n}", Remark(order, str(n)), "Remark") for n in range(count)]
    return [message("orders.in", f"p-{order}", PlaceOrder(order, 1)), *numbered]


def memory() -> MemoryBroker:
    """Return a broker in memory."""
    return MemoryBroker()
