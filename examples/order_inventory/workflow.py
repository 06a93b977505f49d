"""An order that needs stock, and asks the inventory for it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from examples.order_inventory.inventory import ReserveStock, StockReserved, StockShort, TakeStock
from mainspring import (
    CancelSchedule,
    Complete,
    Decisions,
    Event,
    Publish,
    Published,
    Received,
    Schedule,
    Send,
    Workflow,
)

REPLY_PATIENCE = timedelta(seconds=30)
PACKING_PATIENCE = timedelta(days=1)


@dataclass(frozen=True)
class PlaceOrder:
    order_id: str
    product: str
    quantity: int


@dataclass(frozen=True)
class InventoryTimedOut:
    order_id: str


@dataclass(frozen=True)
class OrderPacked:
    order_id: str
    parcel: str


@dataclass(frozen=True)
class PackingOverdue:
    order_id: str


Input = PlaceOrder | StockReserved | StockShort | InventoryTimedOut | OrderPacked | PackingOverdue


@dataclass(frozen=True)
class PackOrder:
    order_id: str
    product: str
    quantity: int


@dataclass(frozen=True)
class OrderDelayed:
    order_id: str


@dataclass(frozen=True)
class OrderConfirmed:
    order_id: str
    parcel: str


@dataclass(frozen=True)
class OrderRejected:
    order_id: str
    reason: str


Output = ReserveStock | TakeStock | PackOrder | OrderDelayed | OrderConfirmed | OrderRejected


@dataclass(frozen=True)
class New:
    pass


@dataclass(frozen=True)
class AwaitingStock:
    pass


@dataclass(frozen=True)
class AwaitingPacking:
    pass


@dataclass(frozen=True)
class Confirmed:
    parcel: str


@dataclass(frozen=True)
class Rejected:
    reason: str


State = New | AwaitingStock | AwaitingPacking | Confirmed | Rejected


class Order(Workflow[Input, State, Output]):
    """One order, which is packed when the inventory has put its goods aside."""

    begins = PlaceOrder
    again = "refuse"
    initial_state = New()

    def route(self, message: Input) -> str | None:
        return message.order_id

    def evolve(self, state: State, event: Event[Input, Output]) -> State | None:
        match state, event:
            case New(), Received(PlaceOrder()):
                return AwaitingStock()
            case AwaitingStock(), Received(StockReserved()):
                return AwaitingPacking()
            case AwaitingPacking(), Received(OrderPacked(_, parcel)):
                return Confirmed(parcel)
            case AwaitingStock(), Published(OrderRejected(_, reason)):
                return Rejected(reason)

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        match message, state:
            case PlaceOrder(order_id, product, quantity), New():
                return [
                    Send(ReserveStock(product, order_id, quantity)),
                    Schedule(InventoryTimedOut(order_id), after=REPLY_PATIENCE),
                ]
            case StockReserved(product, order_id, quantity), AwaitingStock():
                return [
                    CancelSchedule(InventoryTimedOut),
                    Send(TakeStock(product, order_id)),
                    Send(PackOrder(order_id, product, quantity)),
                    Schedule(PackingOverdue(order_id), after=PACKING_PATIENCE),
                ]
            case StockShort(product, order_id, available), AwaitingStock():
                return [Publish(OrderRejected(order_id, f"only {available} of {product} left")), Complete()]
            # Should a reply come after all, nothing is owed: what is not taken, the inventory gives up by itself.
            case InventoryTimedOut(order_id), AwaitingStock():
                return [Publish(OrderRejected(order_id, "the inventory did not reply")), Complete()]
            case OrderPacked(order_id, parcel), AwaitingPacking():
                return [Complete(OrderConfirmed(order_id, parcel))]
            case PackingOverdue(order_id), AwaitingPacking():
                return [Publish(OrderDelayed(order_id))]
