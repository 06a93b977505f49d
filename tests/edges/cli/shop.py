"""The app that the command line is tried on: copied into a directory of its own, and imported from there as `shop`.

Files say how things are to go: decide refuses negative amounts until `mended` exists, the bank keeps an order waiting
until `open` exists.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from mainspring import (
    CancelSchedule,
    Complete,
    Decisions,
    DoNotRetryError,
    Event,
    Mainspring,
    Received,
    Schedule,
    Send,
    Workflow,
    message,
)

OPEN = Path("open")
WAITS, UNLUCKY, HANGS = 99, 13, 77


@message(aliases=["OrderPlaced"])
@dataclass(frozen=True)
class PlaceOrder:
    order_id: str
    amount: int


@dataclass(frozen=True)
class CardCharged:
    order_id: str


@dataclass(frozen=True)
class PaymentTimedOut:
    order_id: str


@dataclass(frozen=True)
class ChargeCard:
    order_id: str
    amount: int


@dataclass(frozen=True)
class HangUp:
    order_id: str


@dataclass(frozen=True)
class Receipt:
    amount: int


@dataclass(frozen=True)
class New:
    pass


@dataclass(frozen=True)
class AwaitingPayment:
    amount: int


Input = PlaceOrder | CardCharged | PaymentTimedOut
Output = ChargeCard | HangUp | Receipt
State = New | AwaitingPayment


class Orders(Workflow[Input, State, Output]):
    begins = PlaceOrder
    initial_state = New()

    def route(self, message: Input) -> str | None:
        return message.order_id

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        match message, state:
            case PlaceOrder(_, amount), New() if amount < 0 and not Path("mended").exists():
                raise ValueError("a negative amount")
            case PlaceOrder(order_id, amount), New() if amount == HANGS:
                return [Send(HangUp(order_id))]
            case PlaceOrder(order_id, amount), New():
                return [
                    Send(ChargeCard(order_id, amount)),
                    Schedule(PaymentTimedOut(order_id), after=timedelta(minutes=5)),
                ]
            case CardCharged(), AwaitingPayment(amount):
                return [CancelSchedule(PaymentTimedOut), Complete(Receipt(amount))]

    def evolve(self, state: State, event: Event[Input, Output]) -> State | None:
        match event:
            case Received(PlaceOrder(_, amount)):
                return AwaitingPayment(amount)


@dataclass(frozen=True)
class OpenTicket:
    ticket: str


class Tickets(Workflow[OpenTicket, New, Receipt]):
    initial_state = New()

    def route(self, message: OpenTicket) -> str | None:
        return message.ticket

    def decide(self, message: OpenTicket, state: New) -> Decisions[OpenTicket, Receipt] | None:
        return []

    def evolve(self, state: New, event: Event[OpenTicket, Receipt]) -> New | None:
        return None


app = Mainspring("sqlite:///orders.db")
app.add(Orders(), Tickets())
not_an_app = 7


@app.handler
async def charge(command: ChargeCard) -> CardCharged:
    sys.stderr.write(f"charging {command.order_id}\n")
    sys.stderr.flush()
    if command.amount == UNLUCKY:
        raise DoNotRetryError("the card is stolen")
    while command.amount == WAITS and not OPEN.exists():  # noqa: ASYNC110, ASYNC240  the test is another process
        await asyncio.sleep(0.01)  # a file is the only signal that another process can give
    return CardCharged(command.order_id)


@app.handler
def hang_up(command: HangUp) -> None:
    sys.stderr.write(f"hanging {command.order_id}\n")
    sys.stderr.flush()
    threading.Event().wait()
