"""All examples in one app, with their own handlers, and a file in which each handler's effect is written down."""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, get_type_hints

from examples.credit_limit import handlers as credit_limit
from examples.credit_limit import workflow as credit_workflow
from examples.document_approval import handlers as document_approval
from examples.document_approval.workflow import DocumentApproval
from examples.expense_approval import handlers as expense_approval
from examples.expense_approval.workflow import ExpenseApproval
from examples.group_checkout import handlers as group_checkout
from examples.group_checkout.workflow import GroupCheckout
from examples.order_inventory import handlers as order_inventory
from examples.order_inventory import workflow as inventory_workflow
from examples.order_inventory.inventory import Inventory
from examples.order_processing import handlers as order_processing
from examples.order_processing import workflow as processing_workflow
from examples.payment_gateway import handlers as payment_gateway
from examples.payment_gateway import workflow as payment_workflow
from examples.traffic_fine import handlers as traffic_fine
from examples.traffic_fine.workflow import TrafficFine
from mainspring import Context, Mainspring, message

DATABASE: Final = "demo.db"
EFFECTS: Final = "effects.jsonl"
SLOWEST_SECONDS: Final = 0.15

# An app has one message of each name, and eight examples were written as eight apps: so namesakes get a surname here.
NAMESAKES: Final = {
    "order_processing": (
        processing_workflow,
        ("PlaceOrder", "ChargeCard", "ShipOrder", "OrderShipped", "OrderDelayed"),
    ),
    "credit_limit": (credit_workflow, ("PlaceOrder", "ShipOrder", "OrderShipped", "OrderRejected")),
    "order_inventory": (inventory_workflow, ("PlaceOrder", "OrderRejected", "OrderDelayed")),
    "payment_gateway": (payment_workflow, ("ChargeCard",)),
}
HANDLERS: Final[dict[str, tuple[Callable[[Any], Awaitable[Any]], ...]]] = {
    "credit_limit": (credit_limit.ship_order,),
    "document_approval": (document_approval.archive_document,),
    "expense_approval": (
        expense_approval.remind_managers,
        expense_approval.notify_employee,
        expense_approval.reimburse_employee,
    ),
    "group_checkout": (group_checkout.check_out_guest,),
    "order_inventory": (order_inventory.pack_order,),
    "order_processing": (
        order_processing.validate_order,
        order_processing.charge_card,
        order_processing.return_payment,
        order_processing.ship_order,
    ),
    "payment_gateway": (payment_gateway.charge_card, payment_gateway.void_charge),
    "traffic_fine": (
        traffic_fine.generate_system_number,
        traffic_fine.generate_identification_code,
        traffic_fine.issue_traffic_fine,
    ),
}


class Effects:
    """What handlers did to the world outside, one line each. A handler that honours its key does nothing twice."""

    def __init__(self, path: Path) -> None:
        self._done = {line["effect"] for line in read_effects(path) if "effect" in line}
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def called(self, key: str) -> None:
        self._write({"called": key})

    def make(self, key: str) -> None:
        if key not in self._done:
            self._done.add(key)
            self._write({"effect": key})

    def _write(self, line: dict[str, str]) -> None:
        # One write each: a process that is killed leaves whole lines.
        os.write(self._file, f"{json.dumps(line)}\n".encode())


def read_effects(path: Path) -> list[dict[str, str]]:
    """Return what was written down so far."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def app_of(folder: Path) -> Mainspring:
    """Return the app with all examples, on the file in this folder."""
    for example, (module, names) in NAMESAKES.items():
        for name in names:
            message(name=f"{example}.{name}")(getattr(module, name))
    app = Mainspring(f"sqlite:///{folder / DATABASE}")
    app.add(
        TrafficFine(),
        processing_workflow.OrderProcessing(),
        GroupCheckout(),
        inventory_workflow.Order(),
        Inventory(),
        payment_workflow.Payment(),
        ExpenseApproval(),
        DocumentApproval(),
        credit_workflow.OrderOnCredit(),
        credit_workflow.CustomerCredit(),
    )
    effects = Effects(folder / EFFECTS)
    for example, handlers in HANDLERS.items():
        for handler in handlers:
            app.handler(name=f"{example}.{handler.__name__}")(_observed(handler, effects))
    return app


def _observed(handler: Callable[[Any], Awaitable[Any]], effects: Effects) -> Callable[..., Awaitable[Any]]:
    """Return a handler that takes its time, as the world does, and whose effect is written down under its key."""

    async def carry_out(command: Any, context: Context) -> Any:
        effects.called(context.idempotency_key)
        # A real one talks to another service here.
        await asyncio.sleep(random.random() * SLOWEST_SECONDS)  # noqa: S311  no secret
        result = await handler(command)
        effects.make(context.idempotency_key)
        return result

    hints = get_type_hints(handler)
    command = next(name for name in hints if name != "return")
    carry_out.__annotations__ |= {"command": hints[command], "return": hints["return"]}
    return carry_out
