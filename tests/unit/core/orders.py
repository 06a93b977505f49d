"""The order workflow of the design, as the tests' common ground."""

from dataclasses import dataclass
from datetime import timedelta

from mainspring import (
    CancelSchedule,
    Complete,
    Decisions,
    Event,
    Publish,
    Received,
    Schedule,
    Send,
    Workflow,
)


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


Input = PlaceOrder | CardCharged | OrderShipped | PaymentTimedOut


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


Output = ChargeCard | ShipOrder | OrderAbandoned


@dataclass(frozen=True)
class New:
    pass


@dataclass(frozen=True)
class AwaitingPayment:
    order_id: str


@dataclass(frozen=True)
class AwaitingShipment:
    order_id: str


State = New | AwaitingPayment | AwaitingShipment


class OrderFulfilment(Workflow[Input, State, Output]):
    begins = PlaceOrder
    initial_state = New()

    def route(self, message: Input) -> str | None:
        return message.order_id

    def evolve(self, state: State, event: Event[Input, Output]) -> State | None:
        match state, event:
            case New(), Received(PlaceOrder(order_id)):
                return AwaitingPayment(order_id)
            case AwaitingPayment(order_id), Received(CardCharged()):
                return AwaitingShipment(order_id)

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        match message, state:
            case PlaceOrder(order_id, amount), New():
                return [
                    Send(ChargeCard(order_id, amount)),
                    Schedule(PaymentTimedOut(order_id), after=timedelta(minutes=5)),
                ]
            case CardCharged(order_id), AwaitingPayment():
                return [CancelSchedule(PaymentTimedOut), Send(ShipOrder(order_id))]
            case OrderShipped(), AwaitingShipment():
                return [Complete()]
            case PaymentTimedOut(order_id), AwaitingPayment():
                return [Publish(OrderAbandoned(order_id)), Complete()]
