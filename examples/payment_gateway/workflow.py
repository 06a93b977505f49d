"""A payment: charge the card, wait for the bank's word, void the charge when it does not come.

The workflow knows nothing of networks that break. The handler is retried until the gateway has answered, and only that
answer comes back here. What the workflow has to know is time: how long is each answer worth waiting for?
"""

from dataclasses import dataclass
from datetime import timedelta

from mainspring import CancelSchedule, Complete, Decisions, Event, Fail, Publish, Received, Schedule, Send, Workflow

TIME_TO_ACCEPT = timedelta(minutes=10)
TIME_TO_CONFIRM = timedelta(hours=24)


@dataclass(frozen=True)
class CollectPayment:
    payment_id: str
    order_id: str
    card_token: str
    amount_cents: int


@dataclass(frozen=True)
class ChargeAccepted:
    payment_id: str
    charge_id: str


@dataclass(frozen=True)
class ChargeDeclined:
    payment_id: str
    reason: str


@dataclass(frozen=True)
class PaymentConfirmed:
    payment_id: str
    transaction_id: str


@dataclass(frozen=True)
class PaymentRefused:
    payment_id: str
    reason: str


@dataclass(frozen=True)
class AcceptanceTimedOut:
    payment_id: str


@dataclass(frozen=True)
class ConfirmationTimedOut:
    payment_id: str


@dataclass(frozen=True)
class ChargeVoided:
    payment_id: str


Input = (
    CollectPayment
    | ChargeAccepted
    | ChargeDeclined
    | PaymentConfirmed
    | PaymentRefused
    | AcceptanceTimedOut
    | ConfirmationTimedOut
    | ChargeVoided
)


@dataclass(frozen=True)
class ChargeCard:
    payment_id: str
    card_token: str
    amount_cents: int


@dataclass(frozen=True)
class VoidCharge:
    payment_id: str


@dataclass(frozen=True)
class PaymentCollected:
    payment_id: str
    order_id: str
    transaction_id: str


@dataclass(frozen=True)
class PaymentFailed:
    payment_id: str
    order_id: str
    reason: str


Output = ChargeCard | VoidCharge | PaymentCollected | PaymentFailed


@dataclass(frozen=True)
class New:
    pass


@dataclass(frozen=True)
class Charging:
    order_id: str


@dataclass(frozen=True)
class AwaitingConfirmation:
    order_id: str
    charge_id: str


@dataclass(frozen=True)
class Voiding:
    order_id: str
    reason: str


@dataclass(frozen=True)
class Collected:
    transaction_id: str


@dataclass(frozen=True)
class NotCollected:
    reason: str


State = New | Charging | AwaitingConfirmation | Voiding | Collected | NotCollected


class Payment(Workflow[Input, State, Output]):
    """One payment, from the shop's wish to the bank's word."""

    begins = CollectPayment
    initial_state = New()

    def route(self, message: Input) -> str | None:
        return message.payment_id

    def evolve(self, state: State, event: Event[Input, Output]) -> State | None:
        match state, event:
            case New(), Received(CollectPayment(order_id=order_id)):
                return Charging(order_id)
            case Charging(order_id), Received(ChargeAccepted(charge_id=charge_id)):
                return AwaitingConfirmation(order_id, charge_id)
            case Charging(order_id), Received(AcceptanceTimedOut()):
                return Voiding(order_id, "the gateway did not answer")
            case AwaitingConfirmation(order_id), Received(ConfirmationTimedOut()):
                return Voiding(order_id, "the bank did not confirm")
            case Charging() | AwaitingConfirmation(), Received(PaymentConfirmed(_, transaction_id)):
                return Collected(transaction_id)
            case Charging() | AwaitingConfirmation(), Received(ChargeDeclined(_, reason) | PaymentRefused(_, reason)):
                return NotCollected(reason)
            case Voiding(_, reason), Received(ChargeVoided()):
                return NotCollected(reason)

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        match message, state:
            case CollectPayment(payment_id, _, card_token, amount_cents), New():
                return [
                    Send(ChargeCard(payment_id, card_token, amount_cents)),
                    Schedule(AcceptanceTimedOut(payment_id), after=TIME_TO_ACCEPT),
                ]
            case ChargeAccepted(payment_id), Charging():
                return [
                    CancelSchedule(AcceptanceTimedOut),
                    Schedule(ConfirmationTimedOut(payment_id), after=TIME_TO_CONFIRM),
                ]
            # The gateway's event may overtake the handler's result: the bank's word counts, whenever it comes. No timer
            # is cancelled here, for Complete cancels whatever is still scheduled.
            case PaymentConfirmed(payment_id, transaction_id), Charging(order_id) | AwaitingConfirmation(order_id):
                return [Publish(PaymentCollected(payment_id, order_id, transaction_id)), Complete()]
            # A refused card ends the process as planned, so it completes; Fail is for what somebody should look into.
            case (
                ChargeDeclined(payment_id, reason) | PaymentRefused(payment_id, reason),
                Charging(order_id) | AwaitingConfirmation(order_id),
            ):
                return [Publish(PaymentFailed(payment_id, order_id, reason)), Complete()]
            # Voiding has no timeout of its own: with money at stake there is no giving up, only trying on until it is
            # done or until somebody is called.
            case AcceptanceTimedOut(payment_id), Charging():
                return [Send(VoidCharge(payment_id))]
            case ConfirmationTimedOut(payment_id), AwaitingConfirmation():
                return [Send(VoidCharge(payment_id))]
            case ChargeVoided(payment_id), Voiding(order_id, reason):
                return [Publish(PaymentFailed(payment_id, order_id, reason)), Fail(reason)]
            # Voiding takes back even a charge that came through meanwhile, so late answers change nothing.
            case ChargeAccepted() | ChargeDeclined() | PaymentConfirmed() | PaymentRefused(), Voiding():
                return []
            case CollectPayment(), Charging() | AwaitingConfirmation() | Voiding():
                return []
