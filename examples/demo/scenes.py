"""What is sent: for each example a few dozen instances, in which things go well, go wrong, or wait for somebody."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from examples.credit_limit import workflow as credit
from examples.document_approval import workflow as documents
from examples.expense_approval import workflow as expenses
from examples.group_checkout import workflow as hotel
from examples.order_inventory import inventory
from examples.order_inventory import workflow as orders
from examples.order_processing import workflow as shop
from examples.payment_gateway import workflow as payments
from examples.traffic_fine import workflow as fines

CUSTOMERS: Final = 5
PRODUCTS: Final = 4
CARDS_ORDERS: Final = (
    ("teapot", 1, "card-ann"),
    ("teacup", 4, "card-ann"),
    ("teapot", 6, "card-bob"),  # more than the card allows
    ("unicorn", 1, "card-ann"),  # not in the catalogue
    ("grand piano", 1, "card-ann"),  # does not fit into a parcel
)


@dataclass(frozen=True)
class Line:
    """One message, from whom it comes, and whether it is an event for whoever listens."""

    message: Any
    actor: str | None = None
    published: bool = False


@dataclass(frozen=True)
class Answer:
    """What people do with the task that is open now, all at the same moment: somebody's answer, and who clicks it.

    A person who is refused may not answer, however often they click; of the others, one wins.
    """

    message: Any
    people: tuple[str, ...]
    role: str | None = None
    refused: bool = False


@dataclass(frozen=True)
class Scene:
    """One instance: what comes to it from outside, in order, and whether that leads to its end.

    What does not end by itself waits: for a person, for a timer of days, or because it lives as long as its customer.
    """

    example: str
    lines: tuple[Line | Answer, ...]
    ends: bool = True


def openings() -> list[Scene]:
    """Return what must be there first: customers with a credit limit, and stock."""
    limits = [Line(credit.SetCreditLimit(f"customer-{n}", 250_000)) for n in range(CUSTOMERS)]
    stock = [Line(inventory.StockDelivered(f"product-{n}", 100), published=True) for n in range(PRODUCTS)]
    return [
        *(Scene("credit_limit", (line,), ends=False) for line in limits),
        *(Scene("order_inventory", (line,), ends=False) for line in stock),
    ]


def scenes(count: int) -> Iterator[Scene]:
    """Return so many instances, the examples by turns."""
    makers = (_fine, _card_order, _group, _stock_order, _payment, _expense, _document, _credit_order)
    return (makers[n % len(makers)](n // len(makers)) for n in range(count))


def _fine(n: int) -> Scene:
    offence = fines.ParkingViolation("Mill Lane") if n % 4 == 3 else fines.SpeedingViolation(50, 55 + n)
    report = fines.PoliceReportPublished(f"report-{n}", f"1-ABC-{100 + n}", offence)
    return Scene("traffic_fine", (Line(report, published=True),))


def _card_order(n: int) -> Scene:
    product, quantity, card = CARDS_ORDERS[n % len(CARDS_ORDERS)]
    return Scene("order_processing", (Line(shop.PlaceOrder(f"order-{n}", product, quantity, card)),))


def _group(n: int) -> Scene:
    stays = tuple(f"stay-{stay}" for stay in range(1 + n % 2, 5 + n % 3))
    return Scene("group_checkout", (Line(hotel.InitiateGroupCheckout(f"group-{n}", stays)),))


def _stock_order(n: int) -> Scene:
    quantity = 999 if n % 7 == 6 else 1 + n % 3
    return Scene("order_inventory", (Line(orders.PlaceOrder(f"order-{n}", f"product-{n % PRODUCTS}", quantity)),))


def _payment(n: int) -> Scene:
    id = f"payment-{n}"
    collect = Line(payments.CollectPayment(id, f"order-{n}", "tok-expired" if n % 5 == 4 else "tok-visa", 1_000 + n))
    confirmed = Line(payments.PaymentConfirmed(id, f"tx-{n}"), published=True)
    match n % 5:
        case 3:
            return Scene("payment_gateway", (collect,), ends=False)  # the bank has a day to answer
        case 4:
            return Scene("payment_gateway", (collect,))
        case _:
            return Scene("payment_gateway", (collect, confirmed))


def _expense(n: int) -> Scene:
    id = f"expense-{n}"
    expense = expenses.Expense(f"employee-{n}", "the train to Lyon", 4_900 + n)
    submit = Line(expenses.SubmitExpense(id, expense, senior_manager="cho"), f"employee-{n}")
    match n % 5:
        case 2:
            # Two managers at once, and one of them clicks twice: the money goes out once.
            clicks = Answer(expenses.ApproveExpense(id), ("bob", "dora", "bob"), "manager")
            return Scene("expense_approval", (submit, clicks))
        case 3:
            rejected = Answer(expenses.RejectExpense(id, "no receipt"), ("bob",), "manager")
            return Scene("expense_approval", (submit, rejected))
        case 4:
            return Scene("expense_approval", (submit,), ends=False)  # the managers are away
        case _:
            return Scene("expense_approval", (submit, Answer(expenses.ApproveExpense(id), ("bob",), "manager")))


def _document(n: int) -> Scene:
    id = f"document-{n}"
    submit = Line(documents.SubmitDocument(id, "draft-1.pdf"), "ann")
    match n % 5:
        case 3:
            revised = (
                Answer(documents.ApproveDocument(id), ("ann", "ann"), "checker", refused=True),  # she made it herself
                Answer(documents.RejectDocument(id, "a typo"), ("bob",), "checker"),
                Answer(documents.ReviseDocument(id, "draft-2.pdf"), ("ann",)),
                Answer(documents.ApproveDocument(id), ("bob",), "checker"),
            )
            return Scene("document_approval", (submit, *revised))
        case 4:
            return Scene("document_approval", (submit,), ends=False)  # nobody has checked it yet
        case _:
            return Scene("document_approval", (submit, Answer(documents.ApproveDocument(id), ("bob",), "checker")))


def _credit_order(n: int) -> Scene:
    product = "lawn mower" if n % 6 == 5 else "bicycle"
    order = credit.PlaceOrder(f"order-{n}", f"customer-{n % CUSTOMERS}", product, 60_000)
    return Scene("credit_limit", (Line(order),))
