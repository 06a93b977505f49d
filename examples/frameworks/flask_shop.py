"""Flask, on SQLite or PostgreSQL: the same without `await`.

flask --app examples.frameworks.flask_shop:web run
"""

from __future__ import annotations

import os
from typing import Any

from flask import Flask, request

from examples.frameworks.orders import OrderConfirmation, PlaceOrder, shop
from mainspring import Mainspring
from mainspring.frameworks.flask import FlaskMainspring

TABLE = "CREATE TABLE IF NOT EXISTS shop_orders (id text PRIMARY KEY, product text)"


def make(app: Mainspring, *, work: bool = True) -> Flask:
    web = Flask("shop")
    spring = FlaskMainspring(app, web, work=work)

    @web.post("/orders")
    def place() -> tuple[dict[str, str], int]:
        order: Any = request.get_json()
        with spring.transaction() as transaction:
            transaction.execute(TABLE)
            transaction.execute("INSERT INTO shop_orders VALUES ($1, $2)", order["order_id"], order["product"])
            receipt = transaction.send(PlaceOrder(order["order_id"], order["product"]))
        return {"instance": str(receipt)}, 202

    @web.get("/orders/<order_id>")
    def look(order_id: str) -> dict[str, str]:
        return {"order_id": order_id, "status": spring.app.instance(OrderConfirmation, order_id).row().status}

    return web


web = make(shop(os.environ.get("SHOP_URL", "sqlite:///shop.db")))
