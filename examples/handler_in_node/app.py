"""An order whose card is charged by a handler in Node: see README.md."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import dataclass
from typing import TypeAlias

from mainspring import Complete, Decisions, Event, Mainspring, Send, Workflow
from mainspring.remote import Service

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # noqa: S105  of the example; yours stands in the environment


@dataclass(frozen=True)
class PlaceOrder:
    order_id: str
    amount: int


@dataclass(frozen=True)
class ChargeCard:
    order_id: str
    amount: int


@dataclass(frozen=True)
class CardCharged:
    order_id: str


@dataclass(frozen=True)
class AwaitingPayment:
    pass


Input: TypeAlias = PlaceOrder | CardCharged


class Orders(Workflow[Input, AwaitingPayment, ChargeCard]):
    begins = PlaceOrder
    initial_state = AwaitingPayment()

    def route(self, message: Input) -> str | None:
        return message.order_id

    def evolve(self, state: AwaitingPayment, event: Event[Input, ChargeCard]) -> AwaitingPayment | None:
        return None

    def decide(self, message: Input, state: AwaitingPayment) -> Decisions[Input, ChargeCard] | None:
        match message:
            case PlaceOrder(order_id, amount):
                return [Send(ChargeCard(order_id, amount))]
            case CardCharged():
                return [Complete()]


def shop(database: str, port: int) -> Mainspring:
    app = Mainspring(database)
    app.add(Orders())
    secret = os.environ.get("SECRET", SECRET)
    payments = Service(app, f"http://127.0.0.1:{port}/commands", secrets=secret, source="/shop")
    payments.handles(ChargeCard, returns=CardCharged)
    return app


async def main(order_id: str) -> None:
    async with shop("sqlite:///orders.db", 8500) as app:
        await (await app.send(PlaceOrder(order_id, 4200), id=order_id)).result()
        sys.stdout.write(f"{order_id} is paid\n")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:2] or ["o-1"]))
