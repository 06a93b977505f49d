"""What an endpoint of FastAPI asks for: the app, or a transaction of its database that also sends."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator
from typing import Annotated, Any

from mainspring.app import Mainspring
from mainspring.app.transactions import Transaction
from mainspring.errors import SettingError
from mainspring.frameworks.asgi import app_of, lifespan

try:
    from fastapi import Depends
    from starlette.requests import HTTPConnection
except ModuleNotFoundError as missing:
    raise SettingError("FastAPI", "not installed", "Install mainspring[web].") from missing

__all__ = ["App", "InTransaction", "lifespan"]

if "scope" not in inspect.signature(Depends).parameters:
    # Before, what follows a `yield` ran when the answer was under way already: it would have promised too much.
    raise SettingError("FastAPI", "too old", "Use 0.121 or newer, which can commit before it answers.")


def current(request: HTTPConnection) -> Mainspring:
    """Return the app of the server."""
    return app_of(request)


App = Annotated[Mainspring, Depends(current)]
"""The app: `async def place(order: Order, app: App)`."""


async def begun(app: App) -> AsyncGenerator[Transaction]:
    """Give a transaction that is committed when the endpoint has returned, before the client is answered."""
    async with app.transaction() as transaction:
        yield transaction


function_scope: dict[str, Any] = {"scope": "function"}

InTransaction = Annotated[Transaction, Depends(begun, **function_scope)]
"""A transaction of the app's database, committed before the request is answered; an exception undoes it."""
