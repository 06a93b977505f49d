"""Money goes from one account to another, or back where it came from. As decide and evolve."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from examples.both_styles.bank import Bank, InsufficientFunds, InvalidAccount
from mainspring import Compensate, Complete, Decisions, Event, Mainspring, Received, Retry, Send, SendFailed, Workflow
from mainspring.errors import DoNotRetryError

RETRY = Retry(cap=timedelta(seconds=2))
PATIENCE = timedelta(seconds=5)


@dataclass(frozen=True)
class Transfer:
    reference: str
    source: str
    target: str
    cents: int


@dataclass(frozen=True)
class Withdrawn:
    reference: str
    booking: str


@dataclass(frozen=True)
class Deposited:
    reference: str
    booking: str


Input = Transfer | Withdrawn | Deposited | SendFailed


@dataclass(frozen=True)
class Withdraw:
    account: str
    cents: int
    reference: str


@dataclass(frozen=True)
class Refund:
    account: str
    cents: int
    reference: str


@dataclass(frozen=True)
class Deposit:
    account: str
    cents: int
    reference: str


@dataclass(frozen=True)
class Bookings:
    withdrawal: str
    deposit: str


Output = Withdraw | Refund | Deposit | Bookings


@dataclass(frozen=True)
class New:
    pass


@dataclass(frozen=True)
class Withdrawing:
    order: Transfer


@dataclass(frozen=True)
class Depositing:
    withdrawal: str


State = New | Withdrawing | Depositing


class MoneyTransfer(Workflow[Input, State, Output, Bookings]):
    begins = Transfer
    initial_state = New()

    def route(self, message: Input) -> str | None:
        return None if isinstance(message, SendFailed) else message.reference

    def evolve(self, state: State, event: Event[Input, Output]) -> State | None:
        match state, event:
            case New(), Received(Transfer() as order):
                return Withdrawing(order)
            case Withdrawing(), Received(Withdrawn(_, booking)):
                return Depositing(booking)

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        match message, state:
            case Transfer(reference, source, _, cents), New():
                return [
                    Send(Withdraw(source, cents, reference), compensate=Refund(source, cents, reference)),
                ]
            case Withdrawn(), Withdrawing(order):
                return [Send(Deposit(order.target, order.cents, order.reference))]
            case Deposited(_, booking), Depositing(withdrawal):
                return [Complete(Bookings(withdrawal, booking))]
            case SendFailed(error=error), _:
                return [Compensate(error)]


app = Mainspring("sqlite:///transfers.db")
app.add(MoneyTransfer())
bank = Bank()


@app.handler(retry=RETRY, timeout=PATIENCE)
def withdraw(command: Withdraw) -> Withdrawn:
    try:
        booking = bank.withdraw(command.account, command.cents, f"{command.reference}-withdrawal")
    except (InvalidAccount, InsufficientFunds) as error:
        raise DoNotRetryError(str(error)) from error
    return Withdrawn(command.reference, booking)


@app.handler(retry=RETRY, timeout=PATIENCE)
def deposit(command: Deposit) -> Deposited:
    try:
        booking = bank.deposit(command.account, command.cents, f"{command.reference}-deposit")
    except InvalidAccount as error:
        raise DoNotRetryError(str(error)) from error
    return Deposited(command.reference, booking)


@app.handler(retry=RETRY, timeout=PATIENCE)
def refund(command: Refund) -> None:
    bank.deposit(command.account, command.cents, f"{command.reference}-refund")
