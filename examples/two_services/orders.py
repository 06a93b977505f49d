"""The order service. It takes orders, has them paid by somebody else, and tells how each ended."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from mainspring import Complete, Decisions, Event, Mainspring, Publish, Received, Send, Workflow
from mainspring.brokers import Brokers
from mainspring.brokers.nats import NatsBroker
from mainspring.brokers.rabbitmq import RabbitBroker

# ---- messages: what goes to and comes from others is agreed upon by name and fields, not by a common module


@dataclass(frozen=True)
class PlaceOrder:
    order_id: str
    amount_cents: int
    card: str


@dataclass(frozen=True)
class ChargeCard:
    order_id: str
    amount_cents: int
    card: str


@dataclass(frozen=True)
class CardCharged:
    order_id: str
    charge_id: str


@dataclass(frozen=True)
class CardRefused:
    order_id: str
    reason: str


@dataclass(frozen=True)
class OrderConfirmed:
    order_id: str
    charge_id: str


@dataclass(frozen=True)
class OrderRejected:
    order_id: str
    reason: str


OrderInput = PlaceOrder | CardCharged | CardRefused
OrderOutput = ChargeCard | OrderConfirmed | OrderRejected

# ---- states


@dataclass(frozen=True)
class New:
    pass


@dataclass(frozen=True)
class AwaitingPayment:
    """However long that takes: the payment service may be away, and then finds the command when it is back."""


@dataclass(frozen=True)
class Settled:
    confirmed: bool


OrderState = New | AwaitingPayment | Settled

# ---- evolve and decide


class Order(Workflow[OrderInput, OrderState, OrderOutput]):
    begins = PlaceOrder
    initial_state = New()

    def route(self, message: OrderInput) -> str:
        return message.order_id

    def evolve(self, state: OrderState, event: Event[OrderInput, OrderOutput]) -> OrderState | None:
        match state, event:
            case New(), Received(PlaceOrder()):
                return AwaitingPayment()
            case AwaitingPayment(), Received(CardCharged()):
                return Settled(confirmed=True)
            case AwaitingPayment(), Received(CardRefused()):
                return Settled(confirmed=False)

    def decide(self, message: OrderInput, state: OrderState) -> Decisions[OrderInput, OrderOutput] | None:
        match message, state:
            case PlaceOrder(order_id, amount_cents, card), New():
                return [Send(ChargeCard(order_id, amount_cents, card))]
            case CardCharged(order_id, charge_id), AwaitingPayment():
                return [Publish(OrderConfirmed(order_id, charge_id)), Complete()]
            case CardRefused(order_id, reason), AwaitingPayment():
                return [Publish(OrderRejected(order_id, reason)), Complete()]


# ---- the app: where the brokers are is the environment's business, what goes where is in orders.toml

app = Mainspring(os.environ.get("ORDERS_DATABASE", "postgresql://postgres@localhost:5432/postgres?schema=orders"))
app.add(Order())

brokers = Brokers(app, "orders")
brokers.add("events", NatsBroker(os.environ.get("NATS_URL", "nats://localhost:4222"), streams={"SHOP": ["shop.>"]}))
brokers.add("commands", RabbitBroker(os.environ.get("RABBITMQ_URL", "amqp://guest:guest@localhost:5672/")))
brokers.endpoint("payments", "commands", os.environ.get("PAYMENTS_QUEUE", "payments"))
brokers.configure(Path(__file__).with_name("orders.toml"))
