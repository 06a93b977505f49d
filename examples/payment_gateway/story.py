from examples.payment_gateway.workflow import (
    ChargeAccepted,
    ChargeVoided,
    CollectPayment,
    ConfirmationTimedOut,
    Payment,
    PaymentConfirmed,
)
from examples.stories import Story
from mainspring import Kind

STORIES = [
    Story(
        "A payment that the bank confirms",
        Payment(),
        (
            CollectPayment("p-1", "o-1", "tok-visa", 4_200),
            (ChargeAccepted("p-1", "ch-p-1"), Kind.RESULT),
            (PaymentConfirmed("p-1", "tx-9"), Kind.EVENT),
        ),
    ),
    Story(
        "A payment that the bank never confirms",
        Payment(),
        (
            CollectPayment("p-2", "o-2", "tok-visa", 9_900),
            (ChargeAccepted("p-2", "ch-p-2"), Kind.RESULT),
            ConfirmationTimedOut("p-2"),
            (ChargeVoided("p-2"), Kind.RESULT),
        ),
    ),
]
