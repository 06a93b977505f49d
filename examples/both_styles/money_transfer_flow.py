"""Money goes from one account to another, or back where it came from. As a flow."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from examples.both_styles.bank import Bank, InsufficientFunds, InvalidAccount
from mainspring import Mainspring, Retry

RETRY = Retry(cap=timedelta(seconds=2))
PATIENCE = timedelta(seconds=5)


@dataclass(frozen=True)
class Transfer:
    reference: str
    source: str
    target: str
    cents: int


app = Mainspring("sqlite:///transfers.db")
bank = Bank()


@app.step(retry=RETRY, timeout=PATIENCE, raises=(InvalidAccount, InsufficientFunds))
def withdraw(account: str, cents: int, reference: str) -> str:
    return bank.withdraw(account, cents, f"{reference}-withdrawal")


@app.step(retry=RETRY, timeout=PATIENCE, raises=InvalidAccount)
def deposit(account: str, cents: int, reference: str) -> str:
    return bank.deposit(account, cents, f"{reference}-deposit")


@app.step(retry=RETRY, timeout=PATIENCE)
def refund(account: str, cents: int, reference: str) -> None:
    bank.deposit(account, cents, f"{reference}-refund")


@app.flow(id="reference")
async def transfer(order: Transfer) -> str:
    taken = await withdraw(order.source, order.cents, order.reference).undone_by(
        refund(order.source, order.cents, order.reference)
    )
    given = await deposit(order.target, order.cents, order.reference)
    return f"{taken}, {given}"
