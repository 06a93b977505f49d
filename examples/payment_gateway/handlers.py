"""The gateway's side of a payment, as its sandbox would behave: the card's token says what will happen.

The payment's own id is the gateway's idempotency key: the same command gets the same answer, however often it comes.
"""

from examples.payment_gateway.workflow import ChargeAccepted, ChargeCard, ChargeDeclined, ChargeVoided, VoidCharge

DECLINED_CARDS = {
    "tok-expired": "the card has expired",
    "tok-stolen": "the card was reported stolen",
}
LIMIT_CENTS = 500_000


class GatewayUnreachableError(Exception):
    """No answer from the gateway: nobody knows whether it took the charge, so trying again is the only way to learn."""


async def charge_card(command: ChargeCard) -> ChargeAccepted | ChargeDeclined:
    if command.card_token == "tok-unreachable":  # noqa: S105  a sandbox card, no secret
        raise GatewayUnreachableError(command.payment_id)
    if command.card_token in DECLINED_CARDS:
        return ChargeDeclined(command.payment_id, DECLINED_CARDS[command.card_token])
    if command.amount_cents > LIMIT_CENTS:
        return ChargeDeclined(command.payment_id, "the amount is over the gateway's limit")
    return ChargeAccepted(command.payment_id, charge_id=f"ch-{command.payment_id}")


async def void_charge(command: VoidCharge) -> ChargeVoided:
    # The gateway promises more than an undo: a charge for this payment that arrives afterwards is refused as well.
    return ChargeVoided(command.payment_id)
