"""What all four have in common: an order is confirmed by mail, and then it is done."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from mainspring import Complete, Decisions, Event, Mainspring, Received, Send, Workflow


@dataclass(frozen=True)
class PlaceOrder:
    order_id: str
    product: str


@dataclass(frozen=True)
class ConfirmByMail:
    order_id: str
    text: str


@dataclass(frozen=True)
class Confirmed:
    order_id: str


@dataclass(frozen=True)
class New:
    pass


@dataclass(frozen=True)
class Confirming:
    product: str


class OrderConfirmation(Workflow[PlaceOrder | Confirmed, New | Confirming, ConfirmByMail]):
    begins = PlaceOrder
    initial_state = New()

    def route(self, message: PlaceOrder | Confirmed) -> str | None:
        return message.order_id

    def evolve(
        self, state: New | Confirming, event: Event[PlaceOrder | Confirmed, ConfirmByMail]
    ) -> New | Confirming | None:
        match state, event:
            case New(), Received(PlaceOrder(_, product)):
                return Confirming(product)

    def decide(
        self, message: PlaceOrder | Confirmed, state: New | Confirming
    ) -> Decisions[PlaceOrder | Confirmed, ConfirmByMail] | None:
        match message, state:
            case PlaceOrder(order_id, product), New():
                return [Send(ConfirmByMail(order_id, f"We have your order: {product}"))]
            case Confirmed(), Confirming():
                return [Complete()]


async def confirm(command: ConfirmByMail) -> Confirmed:
    await asyncio.sleep(0.05)  # a real one talks to a mail server here
    return Confirmed(command.order_id)


def shop(url: str) -> Mainspring:
    app = Mainspring(url)
    app.add(OrderConfirmation())
    app.handler(confirm)
    return app
