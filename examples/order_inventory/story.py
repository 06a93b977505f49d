"""Stories of the order and the inventory, for `python -m examples`."""

from __future__ import annotations

from examples.order_inventory.inventory import (
    Inventory,
    ReservationExpired,
    ReserveStock,
    StockDelivered,
    StockReserved,
    StockShort,
    TakeStock,
)
from examples.order_inventory.workflow import InventoryTimedOut, Order, OrderPacked, PlaceOrder
from examples.stories import Story
from mainspring import Kind

STORIES = [
    Story(
        "The inventory replies that the stock is reserved",
        Order(),
        (
            PlaceOrder("o-1", "teapot", 2),
            (StockReserved("teapot", "o-1", 2), Kind.REPLY),
            (OrderPacked("o-1", "PARCEL-51F0C9A2"), Kind.RESULT),
        ),
    ),
    Story(
        "The inventory replies that there is too little",
        Order(),
        (
            PlaceOrder("o-2", "teapot", 9),
            (StockShort("teapot", "o-2", 3), Kind.REPLY),
        ),
    ),
    Story(
        "The inventory does not reply",
        Order(),
        (
            PlaceOrder("o-3", "teapot", 1),
            InventoryTimedOut("o-3"),
        ),
    ),
    Story(
        "Five teapots and three orders, as the inventory sees them",
        Inventory(),
        (
            (StockDelivered("teapot", 5), Kind.EVENT),
            ReserveStock("teapot", "o-1", 2),
            TakeStock("teapot", "o-1"),
            ReserveStock("teapot", "o-2", 9),
            ReserveStock("teapot", "o-3", 1),
            ReservationExpired("teapot", "o-3"),
        ),
    ),
]
