"""The shop's catalogue, its bank and its carrier. Asking them twice is safe: every answer hangs on the order alone."""

from __future__ import annotations

from hashlib import sha256

from examples.order_processing.workflow import (
    CardCharged,
    CardDeclined,
    ChargeCard,
    OrderInvalidated,
    OrderShipped,
    OrderValidated,
    ReturnPayment,
    ShipOrder,
    ShippingRefused,
    ValidateOrder,
)

PRICES_CENTS = {"teapot": 2_400, "teacup": 650, "grand piano": 1_890_000}
CARD_LIMITS_CENTS = {"card-ann": 2_000_000, "card-bob": 1_000}
PARCEL_LIMIT_CENTS = 100_000

# What the bank has taken, by order: charging an order again takes nothing more.
CHARGES_CENTS: dict[str, int] = {}
RETURNED: set[str] = set()


async def validate_order(command: ValidateOrder) -> OrderValidated | OrderInvalidated:
    price_cents = PRICES_CENTS.get(command.product)
    if price_cents is None:
        return OrderInvalidated(command.order_id, f"there is no {command.product} in the catalogue")
    if command.quantity < 1:
        return OrderInvalidated(command.order_id, "an order needs at least one piece")
    return OrderValidated(command.order_id, price_cents * command.quantity)


async def charge_card(command: ChargeCard) -> CardCharged | CardDeclined:
    # A charge that was on its way when the shop gave up must not take the money after it was given back.
    if command.order_id in RETURNED:
        return CardDeclined(command.order_id, "the order was given up")
    if command.amount_cents > CARD_LIMITS_CENTS.get(command.card, 0):
        return CardDeclined(command.order_id, "the card's limit is too low")
    CHARGES_CENTS[command.order_id] = command.amount_cents
    return CardCharged(command.order_id)


async def return_payment(command: ReturnPayment) -> None:
    RETURNED.add(command.order_id)
    CHARGES_CENTS.pop(command.order_id, None)


async def ship_order(command: ShipOrder) -> OrderShipped | ShippingRefused:
    if PRICES_CENTS[command.product] > PARCEL_LIMIT_CENTS:
        return ShippingRefused(command.order_id, f"a {command.product} does not fit into a parcel")
    return OrderShipped(command.order_id, f"PARCEL-{sha256(command.order_id.encode()).hexdigest()[:8].upper()}")
