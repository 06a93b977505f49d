"""A storefront: a widget is reserved, paid for and dispatched, or put back. As decide and evolve, in FastAPI.

uvicorn examples.both_styles.widget_store:web
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from fastapi import FastAPI, HTTPException

from mainspring import Complete, Context, Decisions, Event, Mainspring, Received, Reply, Schedule, Send, Workflow
from mainspring.errors import NoSuchInstanceError
from mainspring.frameworks.fastapi import App, lifespan

TAKE = "UPDATE products SET inventory = inventory - 1 WHERE inventory > 0 RETURNING inventory"
DISPATCH = timedelta(seconds=10)


@dataclass(frozen=True)
class Buy:
    order_id: str


@dataclass(frozen=True)
class Reserved:
    order_id: str
    granted: bool


@dataclass(frozen=True)
class PaymentTold:
    order_id: str
    paid: bool


@dataclass(frozen=True)
class PutAway:
    order_id: str


@dataclass(frozen=True)
class Due:
    order_id: str


Input = Buy | Reserved | PaymentTold | PutAway | Due


@dataclass(frozen=True)
class Reserve:
    order_id: str


@dataclass(frozen=True)
class PutBack:
    order_id: str


@dataclass(frozen=True)
class Outcome:
    text: str


Output = Reserve | PutBack | Reserved | Outcome


app = Mainspring(os.environ.get("STORE_URL", "sqlite:///store.db"))


@app.handler(transaction=timedelta(seconds=2))
async def reserve(command: Reserve, context: Context) -> Reserved:
    return Reserved(command.order_id, await context.connection.fetchval(TAKE) is not None)


@app.handler(transaction=timedelta(seconds=2))
async def put_back(command: PutBack, context: Context) -> PutAway:
    await context.connection.execute("UPDATE products SET inventory = inventory + 1")
    return PutAway(command.order_id)


@dataclass(frozen=True)
class New:
    pass


@dataclass(frozen=True)
class Pending:
    pass


@dataclass(frozen=True)
class Paid:
    pass


@dataclass(frozen=True)
class PuttingBack:
    pass


State = New | Pending | Paid | PuttingBack


class Checkout(Workflow[Input, State, Output, Outcome]):
    begins = Buy
    initial_state = New()

    def route(self, message: Input) -> str | None:
        return message.order_id

    def evolve(self, state: State, event: Event[Input, Output]) -> State | None:
        match event:
            case Received(Reserved(_, True)):
                return Pending()
            case Received(PaymentTold(_, paid)):
                return Paid() if paid else PuttingBack()

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        match message, state:
            case Buy(id), New():
                return [Send(Reserve(id))]
            case Reserved(_, granted), New():
                return [Reply(message)] if granted else [Reply(message), Complete(Outcome("cancelled"))]
            case PaymentTold(id, paid), Pending():
                return [Schedule(Due(id), after=DISPATCH)] if paid else [Send(PutBack(id))]
            case PutAway(), PuttingBack():
                return [Complete(Outcome("cancelled"))]
            case Due(), Paid():
                return [Complete(Outcome("dispatched"))]


app.add(Checkout())


@asynccontextmanager
async def tables(_web: FastAPI) -> AsyncGenerator[None]:
    async with app.transaction() as transaction:
        await transaction.execute("CREATE TABLE IF NOT EXISTS products (inventory integer)")
        if await transaction.fetchval("SELECT count(*) FROM products") == 0:
            await transaction.execute("INSERT INTO products VALUES (100)")
    yield


web = FastAPI(title="widgets", lifespan=lifespan(app, inner=tables))


@web.post("/checkout/{order_id}")
async def buy(order_id: str, app: App) -> dict[str, str]:
    if not (await app.request(Buy(order_id), Reserved, id=order_id)).granted:
        raise HTTPException(404, "There are no widgets left.")
    return {"payment": order_id}


@web.post("/payment_webhook/{order_id}/{status}")
async def payment(order_id: str, status: str, app: App) -> dict[str, str]:
    await app.send(PaymentTold(order_id, status == "paid"))
    return {"order": order_id}


@web.get("/order/{order_id}")
async def order(order_id: str, app: App) -> dict[str, Any]:
    try:
        row = await app.instance(Checkout, order_id).row()
    except NoSuchInstanceError as error:
        raise HTTPException(404, "There is no such order.") from error
    return {"order_id": order_id, "status": row.status, "stage": row.state}


@web.get("/orders")
async def orders(app: App) -> list[dict[str, Any]]:
    return [
        {"order_id": row.id, "status": row.status, "stage": row.state}
        for row in await app.instances(workflow="Checkout")
    ]


@web.get("/product")
async def product(app: App) -> dict[str, Any]:
    async with app.transaction() as transaction:
        return {"inventory": await transaction.fetchval("SELECT inventory FROM products")}


@web.post("/restock")
async def restock(app: App) -> None:
    async with app.transaction() as transaction:
        await transaction.execute("UPDATE products SET inventory = 100")
