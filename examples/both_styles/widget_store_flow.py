"""A storefront: a widget is reserved, paid for and dispatched, or put back. As a flow, in FastAPI.

uvicorn examples.both_styles.widget_store_flow:web
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from fastapi import FastAPI, HTTPException

from mainspring import Context, Mainspring
from mainspring.errors import NoSuchInstanceError
from mainspring.flows import call, receive, reply, stage
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
class Reserve:
    order_id: str


@dataclass(frozen=True)
class PutBack:
    order_id: str


app = Mainspring(os.environ.get("STORE_URL", "sqlite:///store.db"))


@app.handler(transaction=timedelta(seconds=2))
async def reserve(command: Reserve, context: Context) -> Reserved:
    return Reserved(command.order_id, await context.connection.fetchval(TAKE) is not None)


@app.handler(transaction=timedelta(seconds=2))
async def put_back(command: PutBack, context: Context) -> PutAway:
    await context.connection.execute("UPDATE products SET inventory = inventory + 1")
    return PutAway(command.order_id)


@app.flow(id="order_id")
async def checkout(order: Buy) -> str:
    granted = (await call(Reserve(order.order_id), Reserved)).granted
    reply(Reserved(order.order_id, granted))
    if not granted:
        return "cancelled"
    stage("pending")
    if not (await receive(PaymentTold)).paid:
        await call(PutBack(order.order_id), PutAway)
        return "cancelled"
    stage("paid")
    await asyncio.sleep(DISPATCH.total_seconds())  # a timer of the stream, as all that a flow sleeps
    return "dispatched"


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
        row = await app.instance(checkout, order_id).row()
    except NoSuchInstanceError as error:
        raise HTTPException(404, "There is no such order.") from error
    return {"order_id": order_id, "status": row.status, "stage": row.state}


@web.get("/orders")
async def orders(app: App) -> list[dict[str, Any]]:
    return [
        {"order_id": row.id, "status": row.status, "stage": row.state}
        for row in await app.instances(workflow="checkout")
    ]


@web.get("/product")
async def product(app: App) -> dict[str, Any]:
    async with app.transaction() as transaction:
        return {"inventory": await transaction.fetchval("SELECT inventory FROM products")}


@web.post("/restock")
async def restock(app: App) -> None:
    async with app.transaction() as transaction:
        await transaction.execute("UPDATE products SET inventory = 100")
