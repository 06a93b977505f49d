"""The payment service. It charges a card once for each order, and tells whoever listens how that went."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from examples.two_services.bank import Bank
from mainspring import Complete, Context, Decisions, Event, Mainspring, Publish, Received, Send, Workflow
from mainspring.brokers import Brokers
from mainspring.brokers.nats import NatsBroker
from mainspring.brokers.rabbitmq import RabbitBroker

# ---- messages


@dataclass(frozen=True)
class ChargeCard:
    order_id: str
    amount_cents: int
    card: str


@dataclass(frozen=True)
class AskBank:
    order_id: str
    amount_cents: int
    card: str


@dataclass(frozen=True)
class BankAnswered:
    order_id: str
    charge_id: str | None
    reason: str | None


@dataclass(frozen=True)
class CardCharged:
    order_id: str
    charge_id: str


@dataclass(frozen=True)
class CardRefused:
    order_id: str
    reason: str


PaymentInput = ChargeCard | BankAnswered
PaymentOutput = AskBank | CardCharged | CardRefused

# ---- states


@dataclass(frozen=True)
class New:
    pass


@dataclass(frozen=True)
class AtTheBank:
    pass


@dataclass(frozen=True)
class Settled:
    charge_id: str | None


PaymentState = New | AtTheBank | Settled

# ---- evolve and decide


class Payment(Workflow[PaymentInput, PaymentState, PaymentOutput]):
    begins = ChargeCard
    initial_state = New()

    def route(self, message: PaymentInput) -> str:
        return message.order_id

    def evolve(self, state: PaymentState, event: Event[PaymentInput, PaymentOutput]) -> PaymentState | None:
        match state, event:
            case New(), Received(ChargeCard()):
                return AtTheBank()
            case AtTheBank(), Received(BankAnswered(_, charge_id)):
                return Settled(charge_id)

    def decide(self, message: PaymentInput, state: PaymentState) -> Decisions[PaymentInput, PaymentOutput] | None:
        match message, state:
            case ChargeCard(order_id, amount_cents, card), New():
                return [Send(AskBank(order_id, amount_cents, card))]
            case BankAnswered(order_id, str(charge_id)), AtTheBank():
                return [Publish(CardCharged(order_id, charge_id)), Complete()]
            case BankAnswered(order_id, None, reason), AtTheBank():
                return [Publish(CardRefused(order_id, reason or "the bank gave no reason")), Complete()]


# ---- the app

app = Mainspring(os.environ.get("PAYMENTS_DATABASE", "postgresql://postgres@localhost:5432/postgres?schema=payments"))
app.add(Payment())
bank = Bank(Path(os.environ.get("BANK_BOOK", "bank.jsonl")))


@app.handler
def ask_bank(command: AskBank, context: Context) -> BankAnswered:
    # The key is the same at every attempt: a bank that knows it answers as before, and charges nothing more.
    answer = bank.charge(context.idempotency_key, command.order_id, command.amount_cents, command.card)
    return BankAnswered(command.order_id, answer.charge_id, answer.reason)


brokers = Brokers(app, "payments")
brokers.add("events", NatsBroker(os.environ.get("NATS_URL", "nats://localhost:4222"), streams={"SHOP": ["shop.>"]}))
brokers.add("commands", RabbitBroker(os.environ.get("RABBITMQ_URL", "amqp://guest:guest@localhost:5672/")))
brokers.endpoint("commands", "commands", os.environ.get("PAYMENTS_QUEUE", "payments"))
brokers.configure(Path(__file__).with_name("payments.toml"))
