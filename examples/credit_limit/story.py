from examples.credit_limit.workflow import (
    CreditCheckTimedOut,
    CreditReserved,
    CustomerCredit,
    OrderOnCredit,
    PlaceOrder,
    ReleaseCredit,
    ReserveCredit,
    SetCreditLimit,
)
from examples.stories import Story
from mainspring import Kind

STORIES = [
    Story(
        "An order whose credit is granted too late",
        OrderOnCredit(),
        (
            PlaceOrder("o-1", "c-1", "bicycle", 80_000),
            CreditCheckTimedOut("o-1"),
            (CreditReserved("o-1", 80_000), Kind.REPLY),
        ),
    ),
    Story(
        "A customer's credit, asked for three times and given back once",
        CustomerCredit(),
        (
            SetCreditLimit("c-1", 100_000),
            ReserveCredit("c-1", "o-1", 80_000),
            ReserveCredit("c-1", "o-2", 50_000),
            ReleaseCredit("c-1", "o-1"),
            ReserveCredit("c-1", "o-3", 50_000),
        ),
    ),
]
