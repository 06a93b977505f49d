"""A bank, as its sandbox would behave: it knows a reference again, and does nothing twice."""

from __future__ import annotations

ACCOUNTS = {"ann": 50_000, "bob": 5_000, "shop": 0}


class InvalidAccount(Exception):  # noqa: N818  as the bank's own client calls it
    """There is no such account."""


class InsufficientFunds(Exception):  # noqa: N818  as above
    """The account holds less than that."""


class Bank:
    """Books amounts, each reference once."""

    def __init__(self) -> None:
        self.balances = dict(ACCOUNTS)
        self._booked: set[str] = set()

    def withdraw(self, account: str, cents: int, reference: str) -> str:
        if account in self.balances and self.balances[account] < cents and reference not in self._booked:
            raise InsufficientFunds(f"{account} has no {cents} cents")
        return self._book(account, -cents, reference)

    def deposit(self, account: str, cents: int, reference: str) -> str:
        return self._book(account, cents, reference)

    def _book(self, account: str, cents: int, reference: str) -> str:
        if account not in self.balances:
            raise InvalidAccount(f"there is no account {account}")
        if reference not in self._booked:
            self._booked.add(reference)
            self.balances[account] += cents
        return f"booked-{reference}"
