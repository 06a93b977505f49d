"""From an order placed to an order fulfilled, with a way back for the money: each step says how it is undone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from mainspring import (
    CancelSchedule,
    Compensate,
    Compensating,
    Complete,
    Decisions,
    Event,
    Fail,
    Failed,
    Publish,
    Received,
    Schedule,
    Send,
    Workflow,
)

PAYMENT_PATIENCE = timedelta(minutes=5)
SHIPPING_PATIENCE = timedelta(days=2)


@dataclass(frozen=True)
class PlaceOrder:
    order_id: str
    product: str
    quantity: int
    card: str


@dataclass(frozen=True)
class OrderValidated:
    order_id: str
    amount_cents: int


@dataclass(frozen=True)
class OrderInvalidated:
    order_id: str
    reason: str


@dataclass(frozen=True)
class CardCharged:
    order_id: str


@dataclass(frozen=True)
class CardDeclined:
    order_id: str
    reason: str


@dataclass(frozen=True)
class PaymentTimedOut:
    order_id: str


@dataclass(frozen=True)
class OrderShipped:
    order_id: str
    tracking_number: str


@dataclass(frozen=True)
class ShippingRefused:
    order_id: str
    reason: str


@dataclass(frozen=True)
class ShippingOverdue:
    order_id: str


Input = (
    PlaceOrder
    | OrderValidated
    | OrderInvalidated
    | CardCharged
    | CardDeclined
    | PaymentTimedOut
    | OrderShipped
    | ShippingRefused
    | ShippingOverdue
)


@dataclass(frozen=True)
class ValidateOrder:
    order_id: str
    product: str
    quantity: int


@dataclass(frozen=True)
class ChargeCard:
    order_id: str
    card: str
    amount_cents: int


@dataclass(frozen=True)
class ShipOrder:
    order_id: str
    product: str
    quantity: int


@dataclass(frozen=True)
class ReturnPayment:
    """Give back whatever was taken for this order, which may be nothing, and take nothing for it any more."""

    order_id: str


@dataclass(frozen=True)
class OrderDelayed:
    order_id: str


@dataclass(frozen=True)
class OrderFailed:
    order_id: str
    reason: str


@dataclass(frozen=True)
class OrderFulfilled:
    order_id: str
    tracking_number: str


Output = ValidateOrder | ChargeCard | ShipOrder | ReturnPayment | OrderDelayed | OrderFailed | OrderFulfilled


@dataclass(frozen=True)
class New:
    pass


@dataclass(frozen=True)
class AwaitingValidation:
    order: PlaceOrder


@dataclass(frozen=True)
class AwaitingPayment:
    order: PlaceOrder


@dataclass(frozen=True)
class AwaitingShipment:
    order: PlaceOrder


@dataclass(frozen=True)
class ReturningPayment:
    reason: str


@dataclass(frozen=True)
class Fulfilled:
    tracking_number: str


@dataclass(frozen=True)
class Abandoned:
    reason: str


State = New | AwaitingValidation | AwaitingPayment | AwaitingShipment | ReturningPayment | Fulfilled | Abandoned


class OrderProcessing(Workflow[Input, State, Output]):
    """One order: validated, paid and shipped; or given up, with the money back."""

    begins = PlaceOrder
    again = "refuse"
    initial_state = New()

    def route(self, message: Input) -> str | None:
        return message.order_id

    def evolve(self, state: State, event: Event[Input, Output]) -> State | None:
        match state, event:
            case New(), Received(PlaceOrder() as order):
                return AwaitingValidation(order)
            case AwaitingValidation(order), Received(OrderValidated()):
                return AwaitingPayment(order)
            case AwaitingPayment(order), Received(CardCharged()):
                return AwaitingShipment(order)
            case AwaitingShipment(), Received(OrderShipped(_, tracking_number)):
                return Fulfilled(tracking_number)
            case AwaitingValidation(), Received(OrderInvalidated(_, reason)):
                return Abandoned(reason)
            case AwaitingPayment(), Received(CardDeclined(_, reason)):
                return Abandoned(reason)
            case AwaitingPayment() | AwaitingShipment(), Compensating(reason):
                return ReturningPayment(reason)
            case ReturningPayment(reason), Failed():
                return Abandoned(reason)

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        match message, state:
            case PlaceOrder(order_id, product, quantity), New():
                return [Send(ValidateOrder(order_id, product, quantity))]
            case OrderValidated(order_id, amount_cents), AwaitingValidation(order):
                return [
                    Send(ChargeCard(order_id, order.card, amount_cents), compensate=ReturnPayment(order_id)),
                    Schedule(PaymentTimedOut(order_id), after=PAYMENT_PATIENCE),
                ]
            case CardCharged(order_id), AwaitingPayment(order):
                return [
                    CancelSchedule(PaymentTimedOut),
                    Send(ShipOrder(order_id, order.product, order.quantity)),
                    Schedule(ShippingOverdue(order_id), after=SHIPPING_PATIENCE),
                ]
            case OrderShipped(order_id, tracking_number), AwaitingShipment():
                return [Complete(OrderFulfilled(order_id, tracking_number))]
            case OrderInvalidated(order_id, reason), AwaitingValidation():
                return [Publish(OrderFailed(order_id, reason)), Fail(reason)]
            case CardDeclined(order_id, reason), AwaitingPayment():
                return [Publish(OrderFailed(order_id, reason)), Fail(reason)]
            # Nobody knows whether the card was charged: that too is undone.
            case PaymentTimedOut(order_id), AwaitingPayment():
                reason = "the bank did not answer in time"
                return [Publish(OrderFailed(order_id, reason)), Compensate(reason)]
            case ShippingOverdue(order_id), AwaitingShipment():
                return [Publish(OrderDelayed(order_id))]
            case ShippingRefused(order_id, reason), AwaitingShipment():
                return [Publish(OrderFailed(order_id, reason)), Compensate(reason)]
