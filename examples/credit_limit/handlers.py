"""The warehouse, as far as an order can see it. Credit needs no handler: another workflow replies."""

from examples.credit_limit.workflow import OrderShipped, ShipmentFailed, ShipOrder

OUT_OF_STOCK = frozenset({"lawn mower"})


async def ship_order(command: ShipOrder) -> OrderShipped | ShipmentFailed:
    if command.product in OUT_OF_STOCK:
        return ShipmentFailed(command.order_id, f"no {command.product} in stock")
    # Named after the order, so that a repeated command packs no second parcel.
    return OrderShipped(command.order_id, parcel_id=f"parcel-{command.order_id}")
