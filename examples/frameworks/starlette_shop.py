"""Starlette on PostgreSQL: the shop has connections of its own, and posts in its own transaction. Workers run apart.

uvicorn examples.frameworks.starlette_shop:web
mainspring worker examples.frameworks.starlette_shop:app
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg  # pyright: ignore[reportMissingTypeStubs]  it has none
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from examples.frameworks.orders import OrderConfirmation, PlaceOrder, shop
from mainspring import Mainspring
from mainspring.errors import NoSuchInstanceError
from mainspring.frameworks.asgi import app_of, lifespan

DATABASE = os.environ.get("SHOP_DATABASE", "postgresql://localhost/shop")


def make(app: Mainspring, database: str) -> Starlette:
    @asynccontextmanager
    async def pool(_web: Starlette) -> AsyncGenerator[dict[str, Any]]:
        library: Any = asyncpg
        async with library.create_pool(database, min_size=1) as made:
            await made.execute("CREATE TABLE IF NOT EXISTS shop_orders (id text PRIMARY KEY, product text)")
            yield {"pool": made}

    async def place(request: Request) -> JSONResponse:
        order = await request.json()
        async with request.state.pool.acquire() as connection, connection.transaction():
            await connection.execute("INSERT INTO shop_orders VALUES ($1, $2)", order["order_id"], order["product"])
            posted = await app.post(PlaceOrder(order["order_id"], order["product"]), connection)
        return JSONResponse({"instances": posted.instances}, status_code=202)

    async def look(request: Request) -> JSONResponse:
        order_id: str = request.path_params["order_id"]
        try:
            row = await app_of(request).instance(OrderConfirmation, order_id).row()
        except NoSuchInstanceError:
            return JSONResponse({"order_id": order_id, "status": "not taken in yet"}, status_code=404)
        return JSONResponse({"order_id": order_id, "status": row.status})

    routes = [Route("/orders", place, methods=["POST"]), Route("/orders/{order_id}", look)]
    return Starlette(routes=routes, lifespan=lifespan(app, work=False, inner=pool))


app = shop(DATABASE)
web = make(app, DATABASE)
