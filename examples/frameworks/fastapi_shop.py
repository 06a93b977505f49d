"""FastAPI, on SQLite or PostgreSQL: the row and the message in a transaction that the app lends.

uvicorn examples.frameworks.fastapi_shop:web --reload
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

from examples.frameworks.orders import OrderConfirmation, PlaceOrder, shop
from mainspring import Mainspring
from mainspring.errors import NoSuchInstanceError
from mainspring.frameworks.fastapi import App, InTransaction, lifespan


class Order(BaseModel):
    order_id: str
    product: str


def make(app: Mainspring, *, work: bool = True) -> FastAPI:
    @asynccontextmanager
    async def tables(_web: FastAPI) -> AsyncGenerator[None]:
        """A lifespan of the shop's own, inside which the app runs."""
        async with app.transaction() as transaction:
            await transaction.execute("CREATE TABLE IF NOT EXISTS shop_orders (id text PRIMARY KEY, product text)")
        yield

    web = FastAPI(title="shop", lifespan=lifespan(app, work=work, inner=tables))

    @web.post("/orders", status_code=202)
    async def place(order: Order, transaction: InTransaction) -> dict[str, str]:
        taken = await transaction.fetchval("SELECT id FROM shop_orders WHERE id = $1", order.order_id)
        if taken is not None:
            raise HTTPException(409, "There is such an order.")
        await transaction.execute("INSERT INTO shop_orders VALUES ($1, $2)", order.order_id, order.product)
        receipt = transaction.send(PlaceOrder(order.order_id, order.product))
        return {"instance": str(receipt)}

    @web.get("/orders/{order_id}")
    async def look(order_id: str, app: App) -> dict[str, Any]:
        try:
            row = await app.instance(OrderConfirmation, order_id).row()
        except NoSuchInstanceError as error:
            raise HTTPException(404, "There is no such order.") from error
        return {"order_id": order_id, "status": row.status}

    return web


web = make(shop(os.environ.get("SHOP_URL", "sqlite:///shop.db")), work=os.environ.get("SHOP_WORK", "1") == "1")
