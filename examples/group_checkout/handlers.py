"""The hotel's desk. A stay's answer hangs on its account alone, so asking twice is safe."""

from __future__ import annotations

from examples.group_checkout.workflow import CheckOutGuest, GuestCheckedOut, GuestCheckoutFailed

OPEN_BALANCES_CENTS = {"stay-3": 4_200}


async def check_out_guest(command: CheckOutGuest) -> GuestCheckedOut | GuestCheckoutFailed:
    balance_cents = OPEN_BALANCES_CENTS.get(command.stay, 0)
    if balance_cents:
        return GuestCheckoutFailed(command.group_id, command.stay, f"{balance_cents / 100:.2f} is not paid")
    return GuestCheckedOut(command.group_id, command.stay)
