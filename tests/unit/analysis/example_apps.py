"""The eight examples as eight apps, each with its own handlers, on a file in the current directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from examples.credit_limit.workflow import CustomerCredit, OrderOnCredit
from examples.demo.app import HANDLERS
from examples.document_approval.workflow import DocumentApproval
from examples.expense_approval.workflow import ExpenseApproval
from examples.group_checkout.workflow import GroupCheckout
from examples.order_inventory.inventory import Inventory
from examples.order_inventory.workflow import Order
from examples.order_processing.workflow import OrderProcessing
from examples.payment_gateway.workflow import Payment
from examples.traffic_fine.workflow import TrafficFine
from mainspring import Mainspring, Workflow

WORKFLOWS: dict[str, tuple[type[Workflow[Any, Any, Any]], ...]] = {
    "traffic_fine": (TrafficFine,),
    "order_processing": (OrderProcessing,),
    "group_checkout": (GroupCheckout,),
    "order_inventory": (Order, Inventory),
    "payment_gateway": (Payment,),
    "expense_approval": (ExpenseApproval,),
    "document_approval": (DocumentApproval,),
    "credit_limit": (OrderOnCredit, CustomerCredit),
}


def app_of(example: str, folder: Path = Path()) -> Mainspring:
    """Return the app of one example, on a file in a folder."""
    app = Mainspring(f"sqlite:///{folder / example}.db")
    app.add(*(workflow() for workflow in WORKFLOWS[example]))
    for handler in HANDLERS[example]:
        app.handler(handler)
    return app


APPS = {example: app_of(example) for example in WORKFLOWS}

# By these names the command line finds them: `tests.unit.analysis.example_apps:order_processing`.
traffic_fine = APPS["traffic_fine"]
order_processing = APPS["order_processing"]
group_checkout = APPS["group_checkout"]
order_inventory = APPS["order_inventory"]
payment_gateway = APPS["payment_gateway"]
expense_approval = APPS["expense_approval"]
document_approval = APPS["document_approval"]
credit_limit = APPS["credit_limit"]
