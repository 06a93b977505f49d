"""Stories of order processing, for `python -m examples`."""

from __future__ import annotations

from examples.order_processing.workflow import (
    CardCharged,
    CardDeclined,
    OrderProcessing,
    OrderShipped,
    OrderValidated,
    PaymentTimedOut,
    PlaceOrder,
    ShippingRefused,
)
from examples.stories import Story
from mainspring import Kind

STORIES = [
    Story(
        "A teapot is ordered, paid for and shipped",
        OrderProcessing(),
        (
            PlaceOrder("o-1", "teapot", 1, "card-ann"),
            (OrderValidated("o-1", 2_400), Kind.RESULT),
            (CardCharged("o-1"), Kind.RESULT),
            (OrderShipped("o-1", "PARCEL-51F0C9A2"), Kind.RESULT),
        ),
    ),
    Story(
        "Six teapots are more than the card allows",
        OrderProcessing(),
        (
            PlaceOrder("o-2", "teapot", 6, "card-bob"),
            (OrderValidated("o-2", 14_400), Kind.RESULT),
            (CardDeclined("o-2", "the card's limit is too low"), Kind.RESULT),
        ),
    ),
    Story(
        "The bank is silent; whatever it took goes back",
        OrderProcessing(),
        (
            PlaceOrder("o-3", "teacup", 4, "card-ann"),
            (OrderValidated("o-3", 2_600), Kind.RESULT),
            PaymentTimedOut("o-3"),
        ),
    ),
    Story(
        "The carrier refuses a grand piano",
        OrderProcessing(),
        (
            PlaceOrder("o-4", "grand piano", 1, "card-ann"),
            (OrderValidated("o-4", 1_890_000), Kind.RESULT),
            (CardCharged("o-4"), Kind.RESULT),
            (ShippingRefused("o-4", "a grand piano does not fit into a parcel"), Kind.RESULT),
        ),
    ),
]
