"""A shop for the studio's tests: orders whose cards are charged, boxes that are carried, leave to be granted."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Never

from mainspring import (
    Complete,
    Context,
    Decisions,
    Event,
    Mainspring,
    Received,
    Retry,
    Schedule,
    Send,
    StartChild,
    Workflow,
)
from mainspring.testing.samples import LeaveRequests, RequestLeave
from tests.support.waiting import until


@dataclass(frozen=True)
class PlaceOrder:
    """A customer wants something."""

    order_id: str
    amount: int
    note: str = ""


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
    note: str


@dataclass(frozen=True)
class New:
    pass


@dataclass(frozen=True)
class AwaitingPayment:
    """The card is being charged."""

    amount: int
    note: str


@dataclass(frozen=True)
class Paid:
    amount: int


OrderInput = PlaceOrder | CardCharged | PaymentTimedOut
OrderState = New | AwaitingPayment | Paid


class Orders(Workflow[OrderInput, OrderState, ChargeCard]):
    """Takes an order and charges the card."""

    begins = PlaceOrder
    initial_state = New()

    def route(self, message: OrderInput) -> str | None:
        return message.order_id

    def decide(self, message: OrderInput, state: OrderState) -> Decisions[OrderInput, ChargeCard] | None:
        match message, state:
            case PlaceOrder(order_id, amount, note), New():
                charge = Send(ChargeCard(order_id, amount, note))
                return [charge, Schedule(PaymentTimedOut(order_id), after=timedelta(hours=1))]
            case CardCharged(), AwaitingPayment(amount) if amount < 1_000:
                return [Complete()]
            case CardCharged(), AwaitingPayment():
                return []
            case PaymentTimedOut(), AwaitingPayment():
                return [Complete()]

    def evolve(self, state: OrderState, event: Event[OrderInput, ChargeCard]) -> OrderState | None:
        match state, event:
            case New(), Received(PlaceOrder(_, amount, note)):
                return AwaitingPayment(amount, note)
            case AwaitingPayment(amount), Received(CardCharged()):
                return Paid(amount)

    def attributes(self, state: OrderState) -> Mapping[str, str | int]:
        match state:
            case AwaitingPayment(amount) | Paid(amount):
                return {"amount": amount, "size": "very, very big" if amount >= 1_500 else "small"}
            case New():
                return {}


@dataclass(frozen=True)
class Tick:
    meter: str
    value: int


@dataclass(frozen=True)
class Reading:
    ticks: int = 0
    total: int = 0


class Meters(Workflow[Tick, Reading, Never]):
    """Adds up, for ever."""

    initial_state = Reading()

    def route(self, message: Tick) -> str | None:
        return message.meter

    def decide(self, message: Tick, state: Reading) -> Decisions[Tick, Never] | None:
        return []

    def evolve(self, state: Reading, event: Event[Tick, Never]) -> Reading | None:
        match event:
            case Received(Tick(_, value)):
                return Reading(state.ticks + 1, state.total + value)


@dataclass(frozen=True)
class MoveHouse:
    house: str


@dataclass(frozen=True)
class CarryBox:
    box: str


@dataclass(frozen=True)
class BoxCarried:
    box: str


@dataclass(frozen=True)
class Busy:
    pass


class Moves(Workflow[MoveHouse | BoxCarried, Busy, CarryBox]):
    """Lets somebody carry a box."""

    begins = MoveHouse
    initial_state = Busy()

    def route(self, message: MoveHouse | BoxCarried) -> str | None:
        return message.house if isinstance(message, MoveHouse) else None

    def decide(
        self, message: MoveHouse | BoxCarried, state: Busy
    ) -> Decisions[MoveHouse | BoxCarried, CarryBox] | None:
        match message:
            case MoveHouse(house):
                return [StartChild(CarryBox(f"box of {house}"))]
            case BoxCarried():
                return [Complete()]

    def evolve(self, state: Busy, event: Event[MoveHouse | BoxCarried, CarryBox]) -> Busy | None:
        return None


class Carriers(Workflow[CarryBox, Busy, BoxCarried]):
    """Carries a box."""

    initial_state = Busy()

    def route(self, message: CarryBox) -> str | None:
        return message.box

    def decide(self, message: CarryBox, state: Busy) -> Decisions[CarryBox, BoxCarried] | None:
        return [Complete(BoxCarried(message.box))]

    def evolve(self, state: Busy, event: Event[CarryBox, BoxCarried]) -> Busy | None:
        return None


class CardRefusedError(Exception):
    """The bank says no."""


def shop(folder: Path) -> Mainspring:
    """Return the app, on the file in a folder."""
    app = Mainspring(f"sqlite:///{folder / 'shop.db'}")
    app.add(Orders(), Meters(), Moves(), Carriers(), LeaveRequests())
    # A day that is far away, whenever the tests run.
    app.schedules.add("leap-day", cron="0 3 29 2 *", message=Tick("night", 1))

    @app.handler(retry=Retry(max_attempts=1))
    async def charge(command: ChargeCard, context: Context) -> CardCharged:
        if command.amount < 0:
            raise CardRefusedError(f"the bank refuses {command.note}")
        return CardCharged(command.order_id)

    return app


Sent = tuple[Any, str | None]
"""A message, and who sends it."""


def fill(folder: Path, messages: Sequence[Sent], together: int = 500) -> None:
    """Send messages to the shop in a folder, and let it work until nothing moves any more."""

    async def work() -> None:
        async with shop(folder) as app:
            for begin in range(0, len(messages), together):
                some = messages[begin : begin + together]
                await asyncio.gather(*(app.send(message, actor=actor) for message, actor in some))

            async def nothing_moves() -> bool:
                stats = await app.stats()
                return not stats.inbox and not stats.outbox

            await until(nothing_moves)

    # A browser may be open here, whose event loop lets no other one run beside it.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, work()).result()


def stocked(folder: Path) -> None:
    """Fill a shop with something of everything."""
    orders: list[Sent] = [(PlaceOrder(f"o-{number}", number * 100, "please"), None) for number in range(1, 21)]
    refused: list[Sent] = [(PlaceOrder(f"refused-{number}", -number, f"card {number}"), None) for number in range(1, 4)]
    leave: list[Sent] = [(RequestLeave(f"l-{who}"), who) for who in ("ann", "kim", "mia", "tom")]
    ticks: list[Sent] = [(Tick("m-1", number), None) for number in range(1, 61)]
    fill(folder, [*orders, *refused, *leave, *ticks, (MoveHouse("h-1"), None)])
