"""The stock of one product: filled by deliveries, reserved by whoever asks first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from mainspring import CancelSchedule, Decisions, Event, Publish, Received, Replied, Reply, Schedule, Workflow

RESERVED_FOR = timedelta(hours=1)


@dataclass(frozen=True)
class StockDelivered:
    product: str
    quantity: int


@dataclass(frozen=True)
class ReserveStock:
    product: str
    order_id: str
    quantity: int


@dataclass(frozen=True)
class TakeStock:
    product: str
    order_id: str


@dataclass(frozen=True)
class ReservationExpired:
    product: str
    order_id: str


Input = StockDelivered | ReserveStock | TakeStock | ReservationExpired


@dataclass(frozen=True)
class StockReserved:
    product: str
    order_id: str
    quantity: int


@dataclass(frozen=True)
class StockShort:
    product: str
    order_id: str
    available: int


@dataclass(frozen=True)
class ReservationMissed:
    """Stock was to be taken after its reservation expired: somebody must see whether it is still there."""

    product: str
    order_id: str


Output = StockReserved | StockShort | ReservationMissed


@dataclass(frozen=True)
class Reservation:
    order_id: str
    quantity: int


@dataclass(frozen=True)
class Stock:
    available: int = 0
    reservations: tuple[Reservation, ...] = ()

    def reserved_by(self, order_id: str) -> int:
        return sum(reservation.quantity for reservation in self.reservations if reservation.order_id == order_id)

    def without(self, order_id: str) -> tuple[Reservation, ...]:
        return tuple(reservation for reservation in self.reservations if reservation.order_id != order_id)


class Inventory(Workflow[Input, Stock, Output]):
    """One product's stock. It answers everybody who asks for some, and never completes."""

    begins = StockDelivered | ReserveStock
    initial_state = Stock()

    def route(self, message: Input) -> str | None:
        return message.product

    def evolve(self, state: Stock, event: Event[Input, Output]) -> Stock | None:
        match event:
            case Received(StockDelivered(_, quantity)):
                return replace(state, available=state.available + quantity)
            case Replied(StockReserved(_, order_id, quantity)) if not state.reserved_by(order_id):
                return Stock(state.available - quantity, (*state.reservations, Reservation(order_id, quantity)))
            case Received(TakeStock(_, order_id)):
                return replace(state, reservations=state.without(order_id))
            case Received(ReservationExpired(_, order_id)):
                return Stock(state.available + state.reserved_by(order_id), state.without(order_id))

    def decide(self, message: Input, state: Stock) -> Decisions[Input, Output] | None:
        match message:
            case StockDelivered():
                return []
            case ReserveStock(product, order_id) if reserved := state.reserved_by(order_id):
                return [Reply(StockReserved(product, order_id, reserved))]
            case ReserveStock(product, order_id, quantity) if 0 < quantity <= state.available:
                return [
                    Reply(StockReserved(product, order_id, quantity)),
                    Schedule(ReservationExpired(product, order_id), after=RESERVED_FOR, key=order_id),
                ]
            case ReserveStock(product, order_id):
                return [Reply(StockShort(product, order_id, state.available))]
            case TakeStock(_, order_id) if state.reserved_by(order_id):
                return [CancelSchedule(order_id)]
            case TakeStock(product, order_id):
                return [Publish(ReservationMissed(product, order_id))]
            case ReservationExpired():
                return []
