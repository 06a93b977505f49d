"""An order as the design tells it, for the kit's own tests."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from mainspring import CancelSchedule, Complete, Decisions, Event, Publish, Received, Schedule, Send, Workflow


@dataclass(frozen=True)
class PlaceOrder:
    order_id: str
    amount: int


@dataclass(frozen=True)
class CardCharged:
    order_id: str


@dataclass(frozen=True)
class OrderShipped:
    order_id: str


@dataclass(frozen=True)
class PaymentTimedOut:
    order_id: str


@dataclass(frozen=True)
class ChargeCard:
    order_id: str
    amount: int


@dataclass(frozen=True)
class ShipOrder:
    order_id: str


@dataclass(frozen=True)
class OrderAbandoned:
    order_id: str


@dataclass(frozen=True)
class New:
    pass


@dataclass(frozen=True)
class AwaitingPayment:
    order_id: str
    amount: int


@dataclass(frozen=True)
class AwaitingShipment:
    order_id: str


Input: TypeAlias = PlaceOrder | CardCharged | OrderShipped | PaymentTimedOut
State: TypeAlias = New | AwaitingPayment | AwaitingShipment
Output: TypeAlias = ChargeCard | ShipOrder | OrderAbandoned


class Orders(Workflow[Input, State, Output]):
    begins = PlaceOrder
    initial_state = New()

    def route(self, message: Input) -> str | None:
        return message.order_id

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        match message, state:
            case PlaceOrder(order_id, amount), New():
                timeout = Schedule(PaymentTimedOut(order_id), after=timedelta(minutes=5))
                return [Send(ChargeCard(order_id, amount)), timeout]
            case CardCharged(order_id), AwaitingPayment():
                return [CancelSchedule(PaymentTimedOut), Send(ShipOrder(order_id))]
            case OrderShipped(), AwaitingShipment():
                return [Complete()]
            case PaymentTimedOut(order_id), AwaitingPayment():
                return [Publish(OrderAbandoned(order_id)), Complete()]

    def evolve(self, state: State, event: Event[Input, Output]) -> State | None:
        match state, event:
            case New(), Received(PlaceOrder(order_id, amount)):
                return AwaitingPayment(order_id, amount)
            case AwaitingPayment(order_id), Received(CardCharged()):
                return AwaitingShipment(order_id)


ORDER = "o-1"
PLACE = PlaceOrder(ORDER, 4200)
CHARGED = CardCharged(ORDER)
SHIPPED = OrderShipped(ORDER)
TIMED_OUT = PaymentTimedOut(ORDER)
MESSAGES: list[Input] = [PLACE, CHARGED, SHIPPED]
