"""One process, written twice: as a flow, and as decide and evolve. What tools say of one, they say of the other."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from mainspring import (
    Ask,
    CancelSchedule,
    ChildFailed,
    Compensate,
    Complete,
    Decisions,
    DoNotRetryError,
    Event,
    FanOut,
    InitiatedBy,
    Mainspring,
    Publish,
    Received,
    Schedule,
    Send,
    SendFailed,
    StartChild,
    Workflow,
)
from mainspring.app.flows import handler_of
from mainspring.flows import Flow, Undo, ask, child, each, publish, receive, reply, stage

PATIENCE = timedelta(minutes=5)


@dataclass(frozen=True)
class PlaceOrder:
    order_id: str
    cents: int = 500
    parts: int = 2


@dataclass(frozen=True)
class Confirmed:
    order_id: str


@dataclass(frozen=True)
class Release:
    order_id: str


@dataclass(frozen=True)
class Charge:
    id: str


@dataclass(frozen=True)
class Packed:
    order_id: str


@dataclass(frozen=True)
class Receipt:
    order_id: str
    charge: str
    parts: int


class CardDeclined(Exception): ...  # noqa: N818  as the docs have it


app = Mainspring("memory://")


@app.step(raises=CardDeclined)
async def charge(order_id: str, cents: int) -> Charge:
    if cents == 13:
        raise CardDeclined("no funds")
    return Charge(f"c-{order_id}")


@app.step
def refund(order_id: str) -> None:
    """Give the money back."""


@app.step
def pack(order_id: str, part: int) -> int:
    return part


@app.flow(id="order_id")
async def fulfil(order: PlaceOrder) -> Receipt:
    charged = await charge(order.order_id, order.cents).undone_by(refund(order.order_id))
    try:
        async with asyncio.timeout(PATIENCE.total_seconds()):
            await receive(Confirmed)
    except TimeoutError:
        raise Undo("not confirmed") from None
    stage("confirmed")
    await ask("Release?", Release, role="lead")
    parts = await each(pack(order.order_id, part) for part in range(order.parts))
    publish(Packed(order.order_id))
    return Receipt(order.order_id, charged.id, len(parts))


# ---- the same by hand


@dataclass(frozen=True)
class PlaceByHand:
    order_id: str
    cents: int = 500
    parts: int = 2


@dataclass(frozen=True)
class ConfirmByHand:
    order_id: str


@dataclass(frozen=True)
class ReleaseByHand:
    order_id: str


@dataclass(frozen=True)
class Overdue:
    order_id: str


@dataclass(frozen=True)
class ChargeByHand:
    order_id: str
    cents: int


@dataclass(frozen=True)
class RefundByHand:
    order_id: str


@dataclass(frozen=True)
class PackByHand:
    order_id: str
    part: int


@dataclass(frozen=True)
class PartPacked:
    part: int


@dataclass(frozen=True)
class PartsPacked:
    results: tuple[PartPacked, ...]
    failures: tuple[ChildFailed, ...]


@dataclass(frozen=True)
class PackedByHand:
    order_id: str


@dataclass(frozen=True)
class ReceiptByHand:
    order_id: str
    charge: str
    parts: int


@dataclass(frozen=True)
class New: ...


@dataclass(frozen=True)
class Running:
    order: PlaceByHand
    charge: str | None = None


@dataclass(frozen=True)
class Accepted(Running): ...


In = PlaceByHand | Charge | ConfirmByHand | Overdue | ReleaseByHand | PartsPacked | SendFailed
Out = ChargeByHand | RefundByHand | PackByHand | PackedByHand | ReceiptByHand


class ByHand(Workflow[In, New | Running | Accepted, Out, ReceiptByHand]):
    begins = PlaceByHand
    initial_state = New()

    def route(self, message: In) -> str | None:
        return getattr(message, "order_id", None)

    def decide(self, message: In, state: New | Running | Accepted) -> Decisions[In, Out] | None:
        match message, state:
            case PlaceByHand(order_id, cents), New():
                return [Send(ChargeByHand(order_id, cents), compensate=RefundByHand(order_id))]
            case Charge(), Running(order):
                return [Schedule(Overdue(order.order_id), after=PATIENCE)]
            case ConfirmByHand(), Running(order):
                return [CancelSchedule(Overdue), Ask("Release?", ReleaseByHand, role="lead")]
            case Overdue(), Running():
                return [Compensate("not confirmed")]
            case ReleaseByHand(order_id), Accepted(order):
                return [FanOut([PackByHand(order_id, part) for part in range(order.parts)], into=PartsPacked)]
            case PartsPacked(results), Accepted(order, str(charge)):
                done = ReceiptByHand(order.order_id, charge, len(results))
                return [Publish(PackedByHand(order.order_id)), Complete(done)]
            case SendFailed(error=error), _:
                return [Compensate(error)]
            case _:
                return []

    def evolve(self, state: New | Running | Accepted, event: Event[In, Out]) -> Running | Accepted | None:
        match event, state:
            case InitiatedBy(PlaceByHand() as order), _:
                return Running(order)
            case Received(Charge(id)), Running(order):
                return Running(order, id)
            case Received(ConfirmByHand()), Running(order, charge):
                return Accepted(order, charge)
            case _:
                return None


@app.handler
def charge_by_hand(command: ChargeByHand) -> Charge:
    if command.cents == 13:
        raise DoNotRetryError("no funds")
    return Charge(f"c-{command.order_id}")


@app.handler
def refund_by_hand(command: RefundByHand) -> None:
    """Give the money back."""


@app.handler
def pack_by_hand(command: PackByHand) -> PartPacked:
    return PartPacked(command.part)


# ---- each a child of the other


@dataclass(frozen=True)
class Ship:
    id: str


@dataclass(frozen=True)
class Shipped:
    id: str
    receipts: int


@app.flow
async def ship(order: Ship) -> Shipped:
    """A flow whose children are a flow and a workflow by hand."""
    mine = await fulfil(PlaceOrder(f"{order.id}-a"))
    hand = await child(PlaceByHand(f"{order.id}-b"), ReceiptByHand)
    return Shipped(order.id, mine.parts + hand.parts)


@dataclass(frozen=True)
class Bundle:
    id: str


@dataclass(frozen=True)
class Bundled:
    id: str
    charge: str


@dataclass(frozen=True)
class Bundling: ...


class Bundler(Workflow[Bundle | Receipt, Bundling, PlaceOrder | Bundled, Bundled]):
    """A workflow by hand whose child is a flow."""

    begins = Bundle
    initial_state = Bundling()

    def route(self, message: Bundle | Receipt) -> str | None:
        return message.id if isinstance(message, Bundle) else None

    def decide(self, message: Bundle | Receipt, state: Bundling) -> Decisions[Bundle, PlaceOrder | Bundled] | None:
        match message:
            case Bundle(id):
                return [StartChild(PlaceOrder(f"{id}-c"))]
            case Receipt(order_id, charge):
                return [Complete(Bundled(order_id, charge))]

    def evolve(self, state: Bundling, event: Event[Bundle | Receipt, PlaceOrder | Bundled]) -> None:
        return None


# ---- asked by somebody who waits


@dataclass(frozen=True)
class Price:
    id: str
    cents: int


@dataclass(frozen=True)
class Priced:
    cents: int


@app.flow
async def price(question: Price) -> None:
    reply(Priced(question.cents * 2))


# ---- with branches


@dataclass(frozen=True)
class Choose:
    id: str
    parts: int


@app.flow
async def choose(question: Choose) -> int:
    if question.parts < 1:
        raise Undo("nothing to pack")
    packed = await pack(question.id, question.parts)
    if packed > 3:
        return 3
    return packed


app.add(ByHand(), Bundler())

STEPS = (charge, refund, pack)
HANDLERS = (charge_by_hand, refund_by_hand, pack_by_hand)


def orders(url: str = "memory://", *flows: Flow[Any, Any], **settings: Any) -> Mainspring:
    """Return an app of its own, on another store."""
    made = Mainspring(url, **settings)
    for step in STEPS:
        made.handler(name=step.name)(handler_of(step))
    for handler in HANDLERS:
        made.handler(handler)
    made.add(*(flows or (fulfil,)), ship, price, choose, ByHand(), Bundler())
    return made
