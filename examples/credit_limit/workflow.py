"""Two workflows and the messages between them: an order that asks for credit, and a customer's credit that replies.

The question carries no return address. A reply finds its way to the instance that asked, so the customer's side
serves any service that speaks these messages, and need not know that orders exist.
"""

from dataclasses import dataclass, replace
from datetime import timedelta

from mainspring import (
    CancelSchedule,
    Complete,
    Decisions,
    Event,
    Publish,
    Published,
    Received,
    Replied,
    Reply,
    Schedule,
    Send,
    Workflow,
)

TIME_TO_ANSWER = timedelta(seconds=30)
NO_ANSWER = "the credit check took too long"


@dataclass(frozen=True)
class PlaceOrder:
    order_id: str
    customer_id: str
    product: str
    amount_cents: int


@dataclass(frozen=True)
class CreditReserved:
    order_id: str
    amount_cents: int


@dataclass(frozen=True)
class CreditRefused:
    order_id: str
    available_cents: int


@dataclass(frozen=True)
class CreditCheckTimedOut:
    order_id: str


@dataclass(frozen=True)
class OrderShipped:
    order_id: str
    parcel_id: str


@dataclass(frozen=True)
class ShipmentFailed:
    order_id: str
    reason: str


OrderInput = PlaceOrder | CreditReserved | CreditRefused | CreditCheckTimedOut | OrderShipped | ShipmentFailed


@dataclass(frozen=True)
class ReserveCredit:
    customer_id: str
    order_id: str
    amount_cents: int


@dataclass(frozen=True)
class ReleaseCredit:
    customer_id: str
    order_id: str


@dataclass(frozen=True)
class ShipOrder:
    order_id: str
    product: str


@dataclass(frozen=True)
class OrderAccepted:
    order_id: str
    parcel_id: str


@dataclass(frozen=True)
class OrderRejected:
    order_id: str
    reason: str


OrderOutput = ReserveCredit | ReleaseCredit | ShipOrder | OrderAccepted | OrderRejected


@dataclass(frozen=True)
class SetCreditLimit:
    customer_id: str
    limit_cents: int


CreditInput = SetCreditLimit | ReserveCredit | ReleaseCredit
CreditOutput = CreditReserved | CreditRefused


@dataclass(frozen=True)
class New:
    pass


@dataclass(frozen=True)
class CheckingCredit:
    customer_id: str
    product: str


@dataclass(frozen=True)
class AwaitingLateAnswer:
    customer_id: str


@dataclass(frozen=True)
class Shipping:
    customer_id: str


@dataclass(frozen=True)
class Accepted:
    parcel_id: str


@dataclass(frozen=True)
class Rejected:
    reason: str


OrderState = New | CheckingCredit | AwaitingLateAnswer | Shipping | Accepted | Rejected


@dataclass(frozen=True)
class Reservation:
    order_id: str
    amount_cents: int


@dataclass(frozen=True)
class CreditLine:
    limit_cents: int = 0
    reservations: tuple[Reservation, ...] = ()

    @property
    def available_cents(self) -> int:
        reserved = sum(reservation.amount_cents for reservation in self.reservations)
        # A limit may be lowered below what is reserved already; what was promised stays promised.
        return max(0, self.limit_cents - reserved)

    def reserved_for(self, order_id: str) -> Reservation | None:
        return next((reservation for reservation in self.reservations if reservation.order_id == order_id), None)

    def without(self, order_id: str) -> tuple[Reservation, ...]:
        return tuple(reservation for reservation in self.reservations if reservation.order_id != order_id)


CreditState = CreditLine


class OrderOnCredit(Workflow[OrderInput, OrderState, OrderOutput]):
    """One order, which ships only when the customer's credit covers it."""

    begins = PlaceOrder
    initial_state = New()

    def route(self, message: OrderInput) -> str | None:
        return message.order_id

    def evolve(self, state: OrderState, event: Event[OrderInput, OrderOutput]) -> OrderState | None:
        match state, event:
            case New(), Received(PlaceOrder(_, customer_id, product)):
                return CheckingCredit(customer_id, product)
            case CheckingCredit(customer_id), Received(CreditReserved()):
                return Shipping(customer_id)
            case CheckingCredit(customer_id), Received(CreditCheckTimedOut()):
                return AwaitingLateAnswer(customer_id)
            case AwaitingLateAnswer(), Received(CreditReserved() | CreditRefused()):
                return Rejected(NO_ANSWER)
            case Shipping(), Received(OrderShipped(_, parcel_id)):
                return Accepted(parcel_id)
            case CheckingCredit() | Shipping(), Published(OrderRejected(_, reason)):
                return Rejected(reason)

    def decide(self, message: OrderInput, state: OrderState) -> Decisions[OrderInput, OrderOutput] | None:
        match message, state:
            case PlaceOrder(order_id, customer_id, _, amount_cents), New():
                return [
                    Send(ReserveCredit(customer_id, order_id, amount_cents)),
                    Schedule(CreditCheckTimedOut(order_id), after=TIME_TO_ANSWER),
                ]
            case CreditReserved(order_id), CheckingCredit(_, product):
                return [CancelSchedule(CreditCheckTimedOut), Send(ShipOrder(order_id, product))]
            case CreditRefused(order_id, available_cents), CheckingCredit():
                return [
                    Publish(OrderRejected(order_id, f"the customer's credit covers only {available_cents} cents")),
                    Complete(),
                ]
            # mainspring: intended waits-without-timeout the answer is late, not lost: the customer always replies
            case CreditCheckTimedOut(order_id), CheckingCredit():
                return [Publish(OrderRejected(order_id, NO_ANSWER))]
            # Giving the credit back before the answer is here could overtake the question, and what is reserved after
            # its release stays reserved for ever.
            case CreditReserved(order_id), AwaitingLateAnswer(customer_id):
                return [Send(ReleaseCredit(customer_id, order_id)), Complete()]
            case CreditRefused(), AwaitingLateAnswer():
                return [Complete()]
            case OrderShipped(order_id, parcel_id), Shipping():
                return [Publish(OrderAccepted(order_id, parcel_id)), Complete()]
            case ShipmentFailed(order_id, reason), Shipping(customer_id):
                return [
                    Send(ReleaseCredit(customer_id, order_id)),
                    Publish(OrderRejected(order_id, reason)),
                    Complete(),
                ]
            case PlaceOrder(), CheckingCredit() | AwaitingLateAnswer() | Shipping():
                return []


class CustomerCredit(Workflow[CreditInput, CreditState, CreditOutput]):
    """One customer's credit. It lives as long as the customer does, so it never completes."""

    # Asking about a customer whose limit is not set yet is no mistake: the answer is no.
    begins = SetCreditLimit | ReserveCredit
    initial_state = CreditLine()

    def route(self, message: CreditInput) -> str | None:
        return message.customer_id

    def evolve(self, state: CreditState, event: Event[CreditInput, CreditOutput]) -> CreditState | None:
        match event:
            case Received(SetCreditLimit(_, limit_cents)):
                return replace(state, limit_cents=limit_cents)
            # The reply is what was promised, so it is the reply that counts, not the question.
            case Replied(CreditReserved(order_id, amount_cents)):
                return replace(state, reservations=(*state.without(order_id), Reservation(order_id, amount_cents)))
            case Received(ReleaseCredit(_, order_id)):
                return replace(state, reservations=state.without(order_id))

    def decide(self, message: CreditInput, state: CreditState) -> Decisions[CreditInput, CreditOutput] | None:
        match message:
            case SetCreditLimit() | ReleaseCredit():
                return []
            case ReserveCredit(_, order_id, amount_cents):
                reserved = state.reserved_for(order_id)
                if reserved is not None:
                    return [Reply(CreditReserved(order_id, reserved.amount_cents))]
                if amount_cents <= state.available_cents:
                    return [Reply(CreditReserved(order_id, amount_cents))]
                return [Reply(CreditRefused(order_id, state.available_cents))]
